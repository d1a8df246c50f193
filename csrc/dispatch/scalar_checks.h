// Checks of numbers that are operands: a program cannot raise, and a hit runs no meta kernel, so they run at each call.
#pragma once

#include <ATen/core/stack.h>

#include <string_view>

namespace torch_tpu {

using ScalarCheck = void (*)(const torch::jit::Stack& stack, size_t begin);
// nullptr for rows whose numbers may be anything. Texts and types are CPU PyTorch's.
ScalarCheck ScalarCheckOf(std::string_view row);

}  // namespace torch_tpu
