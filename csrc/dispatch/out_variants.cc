#include "dispatch/out_variants.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/mvlgamma.h>

#include "dispatch/dynamic.h"
#include "dispatch/factories.h"
#include "dispatch/normalization.h"

namespace torch_tpu {
namespace {

at::Tensor& Give(at::Tensor& out, const at::Tensor& result) {
  TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()), "result type ", result.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

}  // namespace

at::Tensor& SquareEyeOut(int64_t n, at::Tensor& out) { return EyeOut(n, n, out); }

at::Tensor& NonzeroOut(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "nonzero: Expected out tensor to have scalar type Long but got scalar type", out.scalar_type());
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  const at::Tensor result = Nonzero(self);
  if (at::native::resize_output(out, result.sizes())) {  // column-major, as a new result is
    out.unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes(), result.strides());
  }
  return out.copy_(result);
}

at::Tensor& MaskedSelectOut(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == self.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, mask);
  const at::Tensor result = MaskedSelect(self, mask);
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

at::Tensor NarrowCopy(const at::Tensor& self, int64_t dim, c10::SymInt start, c10::SymInt length) {
  return self.narrow_symint(dim, std::move(start), std::move(length)).clone(at::MemoryFormat::Contiguous);
}

at::Tensor& NarrowCopyOut(const at::Tensor& self, int64_t dim, int64_t start, int64_t length, at::Tensor& out) {
  TORCH_CHECK(dim < self.dim(), "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.");
  return Give(out, self.narrow(dim, start, length));
}

at::Tensor& MvLGammaOut(const at::Tensor& self, int64_t p, at::Tensor& out) { return Give(out, at::mvlgamma(self, p)); }

namespace {

ThreeOutputs GiveAll(const ThreeTensors& results, at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd) {
  Give(out, std::get<0>(results));
  Give(save_mean, std::get<1>(results));
  Give(save_invstd, std::get<2>(results));
  return {out, save_mean, save_invstd};
}

}  // namespace

ThreeOutputs NativeBatchNormOut(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& running_mean,
                                const std::optional<at::Tensor>& running_var, bool training, double momentum,
                                double eps, at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd) {
  return GiveAll(NativeBatchNorm(input, weight, bias, running_mean, running_var, training, momentum, eps), out,
                 save_mean, save_invstd);
}

ThreeOutputs NativeBatchNormLegitOut(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                     const std::optional<at::Tensor>& bias, at::Tensor& running_mean,
                                     at::Tensor& running_var, bool training, double momentum, double eps,
                                     at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd) {
  return GiveAll(NativeBatchNormLegit(input, weight, bias, running_mean, running_var, training, momentum, eps), out,
                 save_mean, save_invstd);
}

ThreeOutputs NativeBatchNormNoStatsOut(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                       const std::optional<at::Tensor>& bias, bool training, double momentum,
                                       double eps, at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd) {
  return GiveAll(NativeBatchNormNoStats(input, weight, bias, training, momentum, eps), out, save_mean, save_invstd);
}

}  // namespace torch_tpu
