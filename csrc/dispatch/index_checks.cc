#include "dispatch/index_checks.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "dispatch/mode.h"

namespace torch_tpu {
namespace {

struct Bounds {
  int64_t low, high;
};

Bounds BoundsOf(const at::Tensor& index) { return {index.min().item<int64_t>(), index.max().item<int64_t>()}; }

// self, dim, index, ..: what gather and scatter say about an index, which may not be negative.
void Along(const torch::jit::Stack& stack, size_t begin) {
  const at::Tensor self = stack[begin].toTensor(), index = stack[begin + 2].toTensor();
  if (CurrentMode() != EagerMode::kDebug || index.numel() == 0) return;
  const int64_t dim = c10::maybe_wrap_dim(stack[begin + 1].toInt(), std::max<int64_t>(self.dim(), 1));
  const int64_t size = self.dim() == 0 ? 1 : self.size(dim);
  const Bounds b = BoundsOf(index);
  TORCH_CHECK(b.low >= 0 && b.high < size, "index ", b.low < 0 ? b.low : b.high, " is out of bounds for dimension ",
              dim, " with size ", size);
}

// self, dim, index, ..: index_select and its kin raise IndexError.
void Selected(const torch::jit::Stack& stack, size_t begin) {
  const at::Tensor self = stack[begin].toTensor(), index = stack[begin + 2].toTensor();
  if (CurrentMode() != EagerMode::kDebug || index.numel() == 0) return;
  const int64_t dim = c10::maybe_wrap_dim(stack[begin + 1].toInt(), std::max<int64_t>(self.dim(), 1));
  const int64_t size = self.dim() == 0 ? 1 : self.size(dim);
  const Bounds b = BoundsOf(index);
  TORCH_CHECK_INDEX(b.low >= 0 && b.high < size, "index out of range in self");
}

// self, index, ..: by element, negative ones from the end
void Taken(const torch::jit::Stack& stack, size_t begin) {
  const at::Tensor self = stack[begin].toTensor(), index = stack[begin + 1].toTensor();
  if (CurrentMode() != EagerMode::kDebug || index.numel() == 0) return;
  const int64_t size = self.numel();
  const Bounds b = BoundsOf(index);
  TORCH_CHECK_INDEX(b.low >= -size && b.high < size, "out of range: tried to access index ",
                    b.low < -size ? b.low : b.high, " on a tensor of ", size, " elements.");
}

// weight, indices, ..
void Embedded(const torch::jit::Stack& stack, size_t begin) {
  const at::Tensor weight = stack[begin].toTensor(), index = stack[begin + 1].toTensor();
  if (CurrentMode() != EagerMode::kDebug || index.numel() == 0) return;
  const Bounds b = BoundsOf(index);
  TORCH_CHECK_INDEX(b.low >= 0 && b.high < weight.size(0), "index out of range in self");
}

struct Row {
  std::string_view name;
  ScalarCheck check;
};

constexpr Row kRows[] = {
    {"gather", Along},
    {"scatter.src", Along},
    {"scatter.value", Along},
    {"scatter.reduce", Along},
    {"scatter.value_reduce", Along},
    {"scatter_add", Along},
    {"scatter_reduce.two", Along},
    {"index_select", Selected},
    {"index_add", Selected},
    {"index_copy", Selected},
    {"index_reduce", Selected},
    {"index_fill.int_Scalar", Selected},
    {"index_fill.int_Tensor", Selected},
    {"take", Taken},
    {"put", Taken},
    {"embedding", Embedded},
    {"_embedding_bag", Embedded},
    {"_embedding_bag_forward_only", Embedded},
};

}  // namespace

ScalarCheck IndexCheckOf(std::string_view row) {
  const auto found = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.name == row; });
  return found == std::end(kRows) ? nullptr : found->check;
}

}  // namespace torch_tpu
