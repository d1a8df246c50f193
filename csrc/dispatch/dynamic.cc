// Ops whose result size depends on data: size and payload are computed on the device, one number is read, the payload
// is sliced.
#include "dispatch/dynamic.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/all.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>

#include "dispatch/bound_op.h"
#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

at::Tensor Leading(const at::Tensor& padded, const at::Tensor& count) {
  return padded.narrow(0, 0, count.item<int64_t>());
}

at::Tensor NoElements(const at::Tensor& like) { return MakeTensor(c10::ScalarType::Long, {0}, like.device().index()); }

// (values, inverse, counts) of a flat tensor; the flags say what is wanted.
std::tuple<at::Tensor, at::Tensor, at::Tensor> UniqueFlat(const at::Tensor& self, bool consecutive, bool return_inverse,
                                                          bool return_counts) {
  static InternalOp& unique =
      *new InternalOp("tpu::unique(Tensor x, bool consecutive) -> (Tensor, Tensor, Tensor, Tensor)");
  const std::vector<at::Tensor> parts = unique.Run({self.reshape({-1}), consecutive}, self.device().index());
  const int64_t count = parts[0].item<int64_t>();
  return {parts[1].narrow(0, 0, count), return_inverse ? parts[2].view(self.sizes()) : NoElements(self),
          return_counts ? parts[3].narrow(0, 0, count) : NoElements(self)};
}

}  // namespace

at::Tensor Nonzero(const at::Tensor& self) {
  static InternalOp& nonzero = *new InternalOp("tpu::nonzero(Tensor x) -> (Tensor, Tensor)");
  const std::vector<at::Tensor> parts = nonzero.Run({self}, self.device().index());
  return Leading(parts[1], parts[0]);
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

std::tuple<at::Tensor, at::Tensor, at::Tensor> Unique2(const at::Tensor& self, bool sorted, bool return_inverse,
                                                       bool return_counts) {
  return UniqueFlat(self, false, return_inverse, return_counts);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> UniqueConsecutive(const at::Tensor& self, bool return_inverse,
                                                                 bool return_counts, std::optional<int64_t> dim) {
  TORCH_CHECK_NOT_IMPLEMENTED(!dim || self.dim() == 1,
                              "unique_consecutive: the tpu device compares elements, not slices along a dim of ",
                              self.sizes());
  return UniqueFlat(self, true, return_inverse, return_counts);
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
