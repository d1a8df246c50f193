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
  explicit StandIns(c10::DeviceType device, double fill = 0) : device_(device), fill_(fill) {}

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
        if (fill_ != 0) FillStorage(made);
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
  // All of it, since strides may overlap.
  void FillStorage(const at::Tensor& made) {
    const auto count = static_cast<int64_t>(made.storage().nbytes() / made.itemsize());
    at::Tensor all = at::detail::empty_cpu({0}, made.scalar_type());
    all.set_(made.storage(), 0, {count}, {1}).fill_(fill_);
  }

  c10::DeviceType device_;
  double fill_ = 0;
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

namespace {

// What the CPU kernel throws, for tensors full of `fill`.
std::exception_ptr CpuError(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t begin, double fill,
                            std::string* text) {
  StandIns stand_ins(c10::DeviceType::CPU, fill);
  torch::jit::Stack arguments;
  if (!RunsOnCpu(op)) return nullptr;
  Aside aside;
  try {
    for (size_t i = begin; i < stack.size(); ++i) arguments.push_back(stand_ins.Of(stack[i]));
    if (stand_ins.elements() > kMaxElements) return nullptr;
    op.callBoxed(arguments);
  } catch (const c10::Error& error) {
    *text = error.what_without_backtrace();
    return std::current_exception();
  } catch (const std::exception& error) {
    *text = error.what();
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

void ThrowAsCpu(const c10::OperatorHandle& op, const torch::jit::Stack& stack, size_t begin) {
  std::string text, again;
  const std::exception_ptr error = CpuError(op, stack, begin, 0, &text);
  if (error == nullptr || CpuError(op, stack, begin, 1, &again) == nullptr) return;
  // A text that depends on the elements ("singular", "index 0 is out of bounds") is not about the arguments.
  if (text == again) std::rethrow_exception(error);
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
