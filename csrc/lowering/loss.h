// Parts of LossRows.
#pragma once

#include <span>

#include "lowering/table.h"

namespace torch_tpu {

std::span<const OpRow> NllLossRows();
std::span<const OpRow> CtcLossRows();

}  // namespace torch_tpu
