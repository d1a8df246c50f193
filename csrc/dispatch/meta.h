// PyTorch's own shape functions: errors and result layouts come from the meta kernel of the same op.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>

namespace torch_tpu {

// Runs the op on meta tensors shaped like the arguments `stack[begin..]`. Gives its results and, appended behind them
// in argument order, the meta stand-ins of all arguments (so that resized out= arguments can be read). nullopt when the
// op has no meta kernel. Whatever the kernel raises about the arguments passes through: it is what CPU PyTorch raises.
struct MetaResult {
  torch::jit::Stack results;
  torch::jit::Stack arguments;
};
std::optional<MetaResult> RunMeta(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t begin);

// What the CPU kernel gives for arguments of the same shapes, strides and dtypes (zeros). nullopt when they are too
// large to try, or it raises.
std::optional<torch::jit::Stack> RunCpu(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t begin);

// For a call that is wrong: throws what PyTorch's CPU kernel throws on arguments of the same shapes and dtypes (zeros).
// Returns when it finds nothing wrong, or when the arguments are too large to try.
void ThrowAsCpu(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t begin);

}  // namespace torch_tpu
