// Ops whose result size depends on data: size and payload are computed on the device, one number is read, the payload
// is sliced.
#include "dispatch/dynamic.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/all.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>

#include "dispatch/bound_op.h"
#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

at::Tensor Leading(const at::Tensor& padded, const at::Tensor& count) {
  return padded.narrow(0, 0, count.item<int64_t>());
}

}  // namespace

at::Tensor Nonzero(const at::Tensor& self) {
  static InternalOp& nonzero = *new InternalOp("tpu::nonzero(Tensor x) -> (Tensor, Tensor)");
  const std::vector<at::Tensor> parts = nonzero.Run({self}, self.device().index());
  return parts[1].narrow(1, 0, parts[0].item<int64_t>()).contiguous().t();
}

at::Tensor MaskedSelect(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == c10::ScalarType::Bool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(mask.device() == self.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ", self.device(), " and ",
              mask.device(), "! (when running masked_select)");
  at::infer_size(self.sizes(), mask.sizes());  // throws PyTorch's text when they don't broadcast
  static InternalOp& select = *new InternalOp("tpu::masked_select(Tensor x, Tensor mask) -> (Tensor, Tensor)");
  const std::vector<at::Tensor> parts = select.Run({self, mask}, self.device().index());
  return Leading(parts[1], parts[0]);
}

at::Tensor RepeatInterleave(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(repeats.scalar_type() == c10::ScalarType::Long || repeats.scalar_type() == c10::ScalarType::Int,
              "repeats has to be Long or Int tensor");
  if (repeats.numel() == 0) return MakeTensor(repeats.scalar_type(), {0}, repeats.device().index());
  TORCH_CHECK(repeats.min().item<int64_t>() >= 0, "repeats can not be negative");
  const int64_t total = output_size ? *output_size : repeats.sum().item<int64_t>();
  static InternalOp& repeat = *new InternalOp("tpu::repeat_interleave(Tensor repeats, int total) -> Tensor");
  return repeat.Run({repeats, total}, repeats.device().index())[0].to(repeats.scalar_type());
}

at::Tensor Bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights, c10::SymInt minlength) {
  const int64_t least = minlength.guard_int(__FILE__, __LINE__);
  TORCH_CHECK(least >= 0, "minlength should be >= 0");
  TORCH_CHECK(c10::isIntegralType(self.scalar_type(), /*includeBool=*/true), "\"bincount_cpu\" not implemented for '",
              toString(self.scalar_type()), "'");
  const bool weighted = weights && weights->defined();
  if (self.dim() == 1 && self.numel() == 0) {
    return MakeTensor(c10::ScalarType::Long, {least}, self.device().index()).zero_();
  }
  TORCH_CHECK(self.dim() == 1 && self.min().item<int64_t>() >= 0,
              "bincount only supports 1-d non-negative integral inputs.");
  TORCH_CHECK(!weighted || (weights->dim() == 1 && weights->numel() == self.numel()),
              "weights should be 1-d and have the same length as input");
  const int64_t size = std::max(self.max().item<int64_t>() + 1, least);
  static InternalOp& bincount = *new InternalOp("tpu::bincount(Tensor x, Tensor? weights, int size) -> Tensor");
  c10::IValue weight;
  if (weighted) weight = weights->scalar_type() == c10::ScalarType::Float ? *weights : weights->to(at::kDouble);
  return bincount.Run({self, weight, size}, self.device().index())[0];
}

bool Equal(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device(), "Cannot compare two tensors on different devices. Got: ", self.device(),
              " and ", other.device());
  TORCH_CHECK(self.dtype() == other.dtype(), "Expected all tensors to have the same dtype, got ", self.dtype(), " and ",
              other.dtype());
  if (self.sizes() != other.sizes()) return false;
  return self.numel() == 0 || at::eq(self, other).all().item<bool>();
}

void AssertAsync(const at::Tensor& self) {
  AssertAsyncMessage(self, "Expected Tensor with single nonzero value, but got zero");
}

void AssertAsyncMessage(const at::Tensor& self, std::string_view message) {
  TORCH_CHECK(self.numel() == 1, "_assert_async: expected a tensor with one element, got sizes ", self.sizes());
  TORCH_CHECK(self.item().toBool(), std::string(message));
}

}  // namespace torch_tpu
