// Ranges of index tensors, checked before the launch in debug mode: a read of two numbers for CPU PyTorch's exception
// in place of a filled value or a dropped write.
#pragma once

#include <string_view>

#include "dispatch/scalar_checks.h"

namespace torch_tpu {

// nullptr for rows that take no indices. The check does nothing outside of debug mode.
ScalarCheck IndexCheckOf(std::string_view row);

}  // namespace torch_tpu
