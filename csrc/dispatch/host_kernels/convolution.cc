// oneDNN's convolutions, chosen among PyTorch's CPU kernels as eager CPU PyTorch does.
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>

#include <array>
#include <optional>

#include "dispatch/host_kernels/kernel.h"

namespace torch_tpu {
namespace {

// Numbers: n, stride[n], padding[n], dilation[n], output_padding[n], transposed, groups.
struct Geometry {
  explicit Geometry(const HostCall& call) {
    const auto n = static_cast<size_t>(call.number(0));
    stride = call.numbers(1, n);
    padding = call.numbers(1 + n, n);
    dilation = call.numbers(1 + 2 * n, n);
    output_padding = call.numbers(1 + 3 * n, n);
    transposed = call.number(1 + 4 * n) != 0;
    groups = call.number(2 + 4 * n);
    next = 3 + 4 * n;
  }
  c10::IntArrayRef stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
  size_t next;  // the first number that is not geometry
};

// (input, weight, bias?) -> output
void Convolution(const HostCall& call) {
  const Geometry g(call);
  std::optional<at::Tensor> bias;
  if (call.num_arguments() > 2) bias = call.argument(2);
  call.Store(0, at::convolution(call.argument(0), call.argument(1), bias, g.stride, g.padding, g.dilation, g.transposed,
                                g.output_padding, g.groups));
}

// (grad_output, input, weight) -> those gradients of input, weight and bias that the last three numbers ask for
void ConvolutionBackward(const HostCall& call) {
  const Geometry g(call);
  const at::Tensor grad = call.argument(0);
  std::array<bool, 3> mask{};
  for (size_t i = 0; i < 3; ++i) mask[i] = call.number(g.next + i) != 0;
  const std::array<int64_t, 1> bias_sizes = {grad.size(1)};
  const auto gradients = at::convolution_backward(
      grad, call.argument(1), call.argument(2), mask[2] ? at::OptionalIntArrayRef(bias_sizes) : std::nullopt, g.stride,
      g.padding, g.dilation, g.transposed, g.output_padding, g.groups, mask);
  size_t result = 0;
  if (mask[0]) call.Store(result++, std::get<0>(gradients));
  if (mask[1]) call.Store(result++, std::get<1>(gradients));
  if (mask[2]) call.Store(result++, std::get<2>(gradients));
}

constexpr std::array kKernels = {
    TORCH_TPU_HOST_KERNEL("convolution", &Convolution),
    TORCH_TPU_HOST_KERNEL("convolution_backward", &ConvolutionBackward),
};

}  // namespace

std::span<const HostKernel> ConvolutionKernels() { return kKernels; }

}  // namespace torch_tpu
