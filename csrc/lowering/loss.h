// The classification half of LossRows.
#pragma once

#include <span>

#include "lowering/table.h"

namespace torch_tpu {

std::span<const OpRow> NllLossRows();

}  // namespace torch_tpu
