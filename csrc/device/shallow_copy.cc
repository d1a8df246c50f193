// Module.to("tpu") keeps parameters the same objects, tied weights tied, and their hooks and weak references valid.
//
// nn.Module's conversions assign `param.data` where the two tensors are shallow-copy compatible, and make new
// Parameters where they are not. TensorImpl counts the in-tree dense backends as compatible with each other; this says
// the same of `tpu`.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace torch_tpu {
namespace {

bool IsDense(const at::Tensor& tensor) {
  return tensor.layout() == c10::kStrided && (tensor.device().is_cpu() || tensor.device().is_privateuseone()) &&
         !tensor.is_quantized() && !tensor.is_nested();
}

bool HasCompatibleShallowCopyType(const at::Tensor& self, const at::Tensor& from) {
  if (self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set())) {
    return true;
  }
  // Subclasses (FakeTensor, DTensor) keep their own rule.
  const bool plain = !self.key_set().has(c10::DispatchKey::Python) && !from.key_set().has(c10::DispatchKey::Python);
  return plain && IsDense(self) && IsDense(from);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(HasCompatibleShallowCopyType));
}
// The answer is a bool: nothing to differentiate, and PyTorch would otherwise warn that it knows no derivative.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(HasCompatibleShallowCopyType));
}

}  // namespace torch_tpu
