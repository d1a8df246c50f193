// Parts of ActivationRows.
#pragma once

#include <span>

#include "lowering/table.h"

namespace torch_tpu {

std::span<const OpRow> ActivationBackwardRows();
std::span<const OpRow> RecurrentRows();  // recurrent.cc

}  // namespace torch_tpu
