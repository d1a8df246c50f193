#include "device/autocast.h"

#include <ATen/autocast_mode.h>

namespace torch_tpu {
namespace {

// PyTorch's lists spell these without a namespace.
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

Tensor RefuseBinaryCrossEntropy(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(
      false,
      "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
      "Many models use a sigmoid layer right before the binary cross entropy layer. Combine the two with "
      "torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss: both are safe to autocast.");
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define TORCH_TPU_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define TORCH_TPU_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TORCH_TPU_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define TORCH_TPU_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(TORCH_TPU_LOWER_PRECISION)
  AT_FORALL_FP32(TORCH_TPU_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(TORCH_TPU_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(TORCH_TPU_PROMOTE)
#undef TORCH_TPU_LOWER_PRECISION
#undef TORCH_TPU_FP32
#undef TORCH_TPU_FP32_SET_OPT_DTYPE
#undef TORCH_TPU_PROMOTE
  m.impl("binary_cross_entropy", &RefuseBinaryCrossEntropy);
}

thread_local bool t_has_default = false;

}  // namespace

void EnsureAutocastDefault() {
  if (t_has_default) [[likely]]
    return;
  t_has_default = true;
  if (!at::autocast::is_autocast_enabled(at::kPrivateUse1)) {
    at::autocast::set_autocast_dtype(at::kPrivateUse1, at::kBFloat16);
  }
}

}  // namespace torch_tpu
