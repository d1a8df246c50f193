// The backward half of ActivationRows.
#pragma once

#include <span>

#include "lowering/table.h"

namespace torch_tpu {

std::span<const OpRow> ActivationBackwardRows();

}  // namespace torch_tpu
