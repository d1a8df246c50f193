#include "dispatch/unique.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/empty.h>

#include "dispatch/bound_op.h"
#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

at::Tensor NoElements(const at::Tensor& like) { return MakeTensor(c10::ScalarType::Long, {0}, like.device().index()); }

// (values, inverse, counts) of a flat tensor; the flags say what is wanted.
UniqueResults UniqueFlat(const at::Tensor& self, bool consecutive, bool return_inverse, bool return_counts) {
  static InternalOp& unique =
      *new InternalOp("tpu::unique(Tensor x, bool consecutive) -> (Tensor, Tensor, Tensor, Tensor)");
  const std::vector<at::Tensor> parts = unique.Run({self.reshape({-1}), consecutive}, self.device().index());
  const int64_t count = parts[0].item<int64_t>();
  return {parts[1].narrow(0, 0, count), return_inverse ? parts[2].view(self.sizes()) : NoElements(self),
          return_counts ? parts[3].narrow(0, 0, count) : NoElements(self)};
}

// Slices along dim as rows. PyTorch gives inverse and counts always.
UniqueResults UniqueSlices(const at::Tensor& self, int64_t dim, bool consecutive) {
  dim = c10::maybe_wrap_dim(dim, self.dim());
  int64_t empty = 0;
  for (int64_t i = 0; i < self.dim(); ++i) empty += self.size(i) == 0 && i != dim;
  if (self.size(dim) == 0) {
    TORCH_CHECK(empty == 0, "Number of zero sized dimensions is more than one, so unique cannot be applied ");
    return {MakeTensor(self.scalar_type(), self.sizes(), self.device().index()), NoElements(self), NoElements(self)};
  }
  TORCH_CHECK(empty == 0, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  static InternalOp& unique =
      *new InternalOp("tpu::unique_rows(Tensor x, bool consecutive) -> (Tensor, Tensor, Tensor, Tensor)");
  const at::Tensor front = self.movedim(dim, 0).contiguous();
  const std::vector<at::Tensor> parts =
      unique.Run({front.view({self.size(dim), -1}), consecutive}, self.device().index());
  const int64_t count = parts[0].item<int64_t>();
  std::vector<int64_t> sizes = front.sizes().vec();
  sizes[0] = count;
  return {parts[1].narrow(0, 0, count).view(sizes).movedim(0, dim), parts[2], parts[3].narrow(0, 0, count)};
}

}  // namespace

UniqueResults Unique2(const at::Tensor& self, bool sorted, bool return_inverse, bool return_counts) {
  return UniqueFlat(self, false, return_inverse, return_counts);
}

std::tuple<at::Tensor, at::Tensor> UniqueInverse(const at::Tensor& self, bool sorted, bool return_inverse) {
  auto [values, inverse, counts] = UniqueFlat(self, false, return_inverse, false);
  return {values, inverse};
}

UniqueResults UniqueConsecutive(const at::Tensor& self, bool return_inverse, bool return_counts,
                                std::optional<int64_t> dim) {
  if (!dim || (self.dim() == 1 && c10::maybe_wrap_dim(*dim, 1) == 0)) {
    return UniqueFlat(self, true, return_inverse, return_counts);
  }
  return UniqueDimConsecutive(self, *dim, return_inverse, return_counts);
}

UniqueResults UniqueDim(const at::Tensor& self, int64_t dim, bool sorted, bool return_inverse, bool return_counts) {
  return UniqueSlices(self, dim, false);
}

UniqueResults UniqueDimConsecutive(const at::Tensor& self, int64_t dim, bool return_inverse, bool return_counts) {
  return UniqueSlices(self, dim, true);
}

}  // namespace torch_tpu
