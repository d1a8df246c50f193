#include "dispatch/meta.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstring>
#include <unordered_map>

#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

// More elements than this are not made just for the sake of an error's text.
constexpr int64_t kMaxElements = 1 << 24;

class StandIns {
 public:
  explicit StandIns(c10::DeviceType device) : device_(device) {}

  int64_t elements() const { return elements_; }

  at::Tensor Of(const at::Tensor& tensor) {
    // A number from Python stays one; a 0-d host tensor stands for one on the device, as the kernels take it.
    if (!tensor.defined() || (!IsTpu(tensor) && tensor.unsafeGetTensorImpl()->is_wrapped_number())) return tensor;
    at::Tensor& made = made_[tensor.unsafeGetTensorImpl()];
    if (!made.defined()) {
      elements_ += tensor.numel();
      if (device_ == c10::DeviceType::Meta || elements_ > kMaxElements) {
        made = at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type());
      } else {
        made = at::detail::empty_strided_cpu(tensor.sizes(), tensor.strides(), tensor.scalar_type());
        std::memset(made.mutable_data_ptr(), 0, made.storage().nbytes());
      }
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
    if (value.isDevice()) return c10::Device(device_);
    if (value.isGenerator()) return c10::IValue();
    return value;
  }

 private:
  c10::DeviceType device_;
  int64_t elements_ = 0;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> made_;
};

bool RunsOnCpu(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

// Below autograd and outside every Python mode: this is a question to PyTorch, not an op of the user's program.
struct Aside {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_python{c10::DispatchKeySet(
      {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::PythonDispatcher})};
};

}  // namespace

std::optional<MetaResult> RunMeta(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t begin) {
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::Meta) &&
      !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) &&
      !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional)) {
    return std::nullopt;
  }
  StandIns stand_ins(c10::DeviceType::Meta);
  MetaResult result;
  for (size_t i = begin; i < stack.size(); ++i) result.arguments.push_back(stand_ins.Of(stack[i]));
  result.results = result.arguments;
  Aside aside;
  try {
    op.callBoxed(result.results);
  } catch (const c10::NotImplementedError&) {
    return std::nullopt;
  }
  return result;
}

void ThrowAsCpu(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t begin) {
  StandIns stand_ins(c10::DeviceType::CPU);
  torch::jit::Stack arguments;
  for (size_t i = begin; i < stack.size(); ++i) arguments.push_back(stand_ins.Of(stack[i]));
  if (stand_ins.elements() > kMaxElements || !RunsOnCpu(op)) return;
  Aside aside;
  op.callBoxed(arguments);
}

std::optional<torch::jit::Stack> RunCpu(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t begin) {
  StandIns stand_ins(c10::DeviceType::CPU);
  torch::jit::Stack arguments;
  for (size_t i = begin; i < stack.size(); ++i) arguments.push_back(stand_ins.Of(stack[i]));
  if (stand_ins.elements() > kMaxElements || !RunsOnCpu(op)) return std::nullopt;
  Aside aside;
  try {
    op.callBoxed(arguments);
  } catch (const c10::Error&) {
    return std::nullopt;
  }
  return arguments;
}

}  // namespace torch_tpu
