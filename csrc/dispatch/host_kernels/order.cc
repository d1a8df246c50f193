// Sorting and selection.
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>

#include <array>

#include "dispatch/host_kernels/kernel.h"

namespace torch_tpu {
namespace {

// Numbers: dim, descending. x -> values, their positions; stable
void Sort(const HostCall& call) {
  const auto [values, positions] =
      at::sort(call.argument(0), /*stable=*/true, call.number(0), /*descending=*/call.number(1) != 0);
  call.Store(0, values);
  call.Store(1, positions);
}

// Numbers: k, dim, largest. x -> values in order, their positions
void TopK(const HostCall& call) {
  const auto [values, positions] =
      at::topk(call.argument(0), call.number(0), call.number(1), call.number(2) != 0, /*sorted=*/true);
  call.Store(0, values);
  call.Store(1, positions);
}

constexpr std::array kKernels = {
    TORCH_TPU_HOST_KERNEL("sort", &Sort),
    TORCH_TPU_HOST_KERNEL("topk", &TopK),
};

}  // namespace

std::span<const HostKernel> OrderKernels() { return kKernels; }

}  // namespace torch_tpu
