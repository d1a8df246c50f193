// Checks of indices, where a program may stop with an error as PyTorch's CPU kernels do.
#include <ATen/Dispatch.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>

#include "dispatch/host_kernels/kernel.h"

namespace torch_tpu {
namespace {

// Numbers: how many rows there are. index -> the same; an IndexError where one names no row
void CheckRows(const HostCall& call) {
  const at::Tensor index = call.argument(0), result = call.result(0);
  const int64_t rows = call.number(0), count = index.numel();
  AT_DISPATCH_INDEX_TYPES(index.scalar_type(), "check_rows", [&] {
    const index_t* data = index.const_data_ptr<index_t>();
    const bool good = std::all_of(data, data + count, [&](index_t i) { return i >= 0 && i < rows; });
    TORCH_CHECK_INDEX(good, "index out of range in self");
    std::copy_n(data, count, result.mutable_data_ptr<index_t>());
  });
}

constexpr std::array kKernels = {
    TORCH_TPU_HOST_KERNEL("check_rows", &CheckRows),
};

}  // namespace

std::span<const HostKernel> IndexKernels() { return kKernels; }

}  // namespace torch_tpu
