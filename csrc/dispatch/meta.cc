#include "dispatch/meta.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <unordered_map>

#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

class StandIns {
 public:
  at::Tensor Of(const at::Tensor& tensor) {
    if (!tensor.defined() || !IsTpu(tensor)) return tensor;
    at::Tensor& made = made_[tensor.unsafeGetTensorImpl()];
    if (!made.defined()) {
      made = at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type());
      if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) made.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
    return made;
  }

  c10::IValue Of(const c10::IValue& value) {
    if (value.isTensor()) return Of(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : value.toTensorList()) list.push_back(Of(t));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& t : value.toOptionalTensorList()) {
        list.push_back(t ? std::optional<at::Tensor>(Of(*t)) : std::nullopt);
      }
      return list;
    }
    if (value.isDevice()) return c10::Device(c10::DeviceType::Meta);
    if (value.isGenerator()) return c10::IValue();
    return value;
  }

 private:
  std::unordered_map<const c10::TensorImpl*, at::Tensor> made_;
};

}  // namespace

std::optional<MetaResult> RunMeta(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t begin) {
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::Meta) &&
      !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) &&
      !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) {
    return std::nullopt;
  }
  StandIns stand_ins;
  MetaResult result;
  for (size_t i = begin; i < stack.size(); ++i) result.arguments.push_back(stand_ins.Of(stack[i]));
  result.results = result.arguments;
  // Below autograd and outside every Python mode: this is a question to PyTorch, not an op of the user's program.
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_python(c10::DispatchKeySet(
      {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::PythonDispatcher}));
  try {
    op.callBoxed(result.results);
  } catch (const c10::NotImplementedError&) {
    return std::nullopt;
  }
  return result;
}

}  // namespace torch_tpu
