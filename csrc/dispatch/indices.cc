#include "dispatch/indices.h"

#include <ATen/core/List.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <ATen/ops/masked_fill.h>

#include "dispatch/mode.h"
#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

// Debug mode pays a read of two numbers for an IndexError in place of a filled value.
void CheckRange(const at::Tensor& index, int64_t size, int64_t dim) {
  if (index.numel() == 0) return;
  const int64_t low = index.min().item<int64_t>(), high = index.max().item<int64_t>();
  const int64_t bad = low < -size ? low : high;
  TORCH_CHECK_INDEX(low >= -size && high < size, "index ", bad, " is out of bounds for dimension ", dim, " with size ",
                    size);
}

}  // namespace

void PrepareIndices(torch::jit::Stack& stack, size_t begin) {
  const at::Tensor self = stack[begin].toTensor();
  c10::List<std::optional<at::Tensor>> given = stack[begin + 1].toOptionalTensorList();
  TORCH_CHECK_INDEX(static_cast<int64_t>(given.size()) <= self.dim(), "too many indices for tensor of dimension ",
                    self.dim(), " (got ", given.size(), ")");
  at::native::checkIndexTensorTypes(given, /*allow_int=*/true);
  const std::vector<at::Tensor> expanded = at::native::expandTensors(self, given, /*ensure_same_device=*/true);
  TORCH_CHECK_INDEX(static_cast<int64_t>(expanded.size()) <= self.dim(), "too many indices for tensor of dimension ",
                    self.dim(), " (got ", expanded.size(), ")");
  c10::List<std::optional<at::Tensor>> indices;
  for (size_t i = 0; i < expanded.size(); ++i) {
    at::Tensor index = expanded[i];
    if (!index.defined()) {
      indices.push_back(std::nullopt);
      continue;
    }
    if (index.device() != self.device()) index = index.to(self.device());
    if (CurrentMode() == EagerMode::kDebug)
      CheckRange(index, self.size(static_cast<int64_t>(i)), static_cast<int64_t>(i));
    indices.push_back(index);
  }
  stack[begin + 1] = std::move(indices);
}

bool PutAsMaskedFill(torch::jit::Stack& stack, size_t begin) {
  at::Tensor self = stack[begin].toTensor();
  const at::Tensor value = stack[begin + 2].toTensor();
  const bool accumulate = stack.size() > begin + 3 && stack[begin + 3].toBool();
  if (accumulate || value.numel() != 1 || value.dim() != 0) return false;
  const auto indices = stack[begin + 1].toOptionalTensorList();
  for (const std::optional<at::Tensor>& index : indices) {
    if (index && index->defined() && index->device() != self.device()) return false;
  }
  auto [fits, mask] = at::native::canDispatchToMaskedFill(self, indices, value);
  if (!fits) return false;
  self.masked_fill_(mask, value);
  stack.resize(begin);
  stack.emplace_back(std::move(self));
  return true;
}

}  // namespace torch_tpu
