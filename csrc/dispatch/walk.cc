#include "dispatch/walk.h"

#include <ATen/core/List.h>
#include <c10/util/Exception.h>

#include <bit>
#include <cstring>

#include "device/context.h"
#include "dispatch/capture.h"
#include "dispatch/dtype_map.h"
#include "dispatch/host_kernels/host_kernels.h"
#include "dispatch/host_values.h"
#include "dispatch/mode.h"
#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

// Tags keep neighbours in the key from running into each other.
enum Tag : uint64_t { kNone = 1, kWhole, kView, kUnwritten, kHost, kOutWhole, kListOf, kConst, kOperand, kText };
// For None where an integer may stand: a number nobody passes (a tag would equal a small integer).
constexpr uint64_t kNothing = 0x8000'0000'0000'0a57;

// Types of host values, which tapes and walks refer to.
const TensorType& NumberType(DType dtype) {
  static const auto* types = [] {
    auto* made = new std::vector<TensorType>;
    for (int i = 0; i < 64; ++i) made->push_back({static_cast<DType>(i), {}});
    return made;
  }();
  return types->at(static_cast<size_t>(dtype));
}
constexpr size_t kMaxStarts = 8;
const TensorType& StartsType(size_t n) {
  static const auto* types = [] {
    auto* made = new std::vector<TensorType>;
    for (size_t i = 0; i <= kMaxStarts; ++i) made->push_back({DType::kInt64, {static_cast<int64_t>(i)}});
    return made;
  }();
  return types->at(n);
}
const TensorType& StateType() {
  static const auto* type = new TensorType{DType::kUInt64, {2}};
  return *type;
}

uint64_t Word(Tag tag, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) { return tag | a << 8 | b << 16 | c << 32; }

template <class F>
void ForEachTensor(const c10::IValue& value, F&& f) {
  if (value.isTensor()) {
    f(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& t : value.toTensorList()) f(t);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      if (element.isTensor()) f(element.toTensor());
    }
  }
}

// A storage that grew keeps its smaller value until somebody looks further: then zeros follow it.
void CoverView(StorageContext& context, const c10::TensorImpl& impl) {
  int64_t last = impl.storage_offset();
  for (int64_t i = 0; i < impl.dim(); ++i) last += (impl.size(i) - 1) * impl.stride(i);
  const TensorType base = *BaseType(context);
  if ((last + 1) * impl.itemsize() <= base.bytes()) return;
  Materialize(context, "a storage that grew");
  static InternalOp& resize = *new InternalOp("tpu::resize_flat(Tensor base, int numel) -> Tensor");
  const int64_t numel = static_cast<int64_t>((context.nbytes + ItemSize(base.dtype) - 1) / ItemSize(base.dtype));
  at::Tensor grown = resize.Run({WrapBuffer(context.value, ToScalarType(base.dtype)), numel}, context.device)[0];
  StorageContext& made = ContextOf(*grown.unsafeGetTensorImpl());
  context.value = made.value;
  context.pending = made.pending;
}

}  // namespace

int Walk::FindDevice(const BoundOp& op, const torch::jit::Stack& stack, size_t begin, int otherwise) {
  int device = -1;
  for (size_t i = 0; i < op.params().size(); ++i) {
    if (op.params()[i].kind != BoundOp::Kind::kTensor && op.params()[i].kind != BoundOp::Kind::kTensorList) continue;
    ForEachTensor(stack[begin + i], [&](const at::Tensor& t) {
      if (!t.defined()) return;
      if (IsTpu(t)) {
        const int index = t.device().index();
        TORCH_CHECK(device < 0 || device == index,
                    "Expected all tensors to be on the same device, but found at least two devices, tpu:", device,
                    " and tpu:", index, "! (when running ", op.name(), ")");
        device = index;
      } else {
        TORCH_CHECK(t.dim() == 0 && t.is_cpu() && !op.params()[i].written,
                    "Expected all tensors to be on the same device, but found at least two devices, tpu and ",
                    t.device(), "! (when running ", op.name(), " with a ", t.device(), " tensor of shape ", t.sizes(),
                    ")");
      }
    });
  }
  return device >= 0 ? device : otherwise;
}

Walk::Walk(const BoundOp& op, int device) : op_(op), device_(device) {
  const ThreadState state = CurrentState();
  fused_ = state.mode == EagerMode::kFused;
  capture_ = state.capture;
}

int Walk::Input(StorageContext& owner) {
  Buffer* buffer = owner.value.get();
  Pending* pending = buffer == nullptr ? owner.pending.get() : nullptr;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].buffer == buffer && inputs_[i].pending == pending) return static_cast<int>(i);
  }
  inputs_.push_back({buffer, pending, &owner, -1});
  return static_cast<int>(inputs_.size()) - 1;
}

int Walk::Kept(BufferPtr buffer) {
  // Never merged with an equal one: a program's operands stay where its schema has them.
  inputs_.push_back({buffer.get(), nullptr, nullptr, static_cast<int>(kept_.size())});
  kept_.push_back(std::move(buffer));
  return static_cast<int>(inputs_.size()) - 1;
}

int Walk::Words(const TensorType& type, std::initializer_list<uint64_t> words) {
  InputRef input;
  input.host = &type;
  input.first_word = static_cast<int>(words_.size());
  words_.append(words.begin(), words.end());
  inputs_.push_back(input);
  return static_cast<int>(inputs_.size()) - 1;
}

int Walk::Starts(const Dims& starts) {
  if (!packs() || starts.size() > kMaxStarts) return Kept(StartsValue(device_, starts));
  const int input = Words(StartsType(starts.size()), {});
  for (int64_t start : starts) words_.push_back(static_cast<uint64_t>(start));
  return input;
}

void Walk::AddState(const uint64_t (&words)[2]) {
  if (packs()) {
    Words(StateType(), {words[0], words[1]});
    return;
  }
  DeviceContext& context = DeviceContext::Get();
  Kept(context.client().FromHost(context.device(device_), words, StateType()));
}

void Walk::PushAll(c10::IntArrayRef words) {
  key_.push_back(words.size());
  for (int64_t word : words) key_.push_back(static_cast<uint64_t>(word));
}

void Walk::HostNumber(const at::Tensor& tensor, TensorUse use) {
  use.wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  const c10::ScalarType type = tensor.scalar_type();
  const DType dtype = CheckedDType(type, op_.schema().name().c_str());
  const void* data = tensor.const_data_ptr();
  if (packs() && dtype == DType::kFloat64) {
    use.input = Words(NumberType(dtype), {std::bit_cast<uint64_t>(*static_cast<const double*>(data))});
  } else if (packs() && dtype == DType::kFloat32) {
    const double value = *static_cast<const float*>(data);
    use.input = Words(NumberType(dtype), {std::bit_cast<uint64_t>(value)});
  } else if (packs() && dtype == DType::kInt64) {
    use.input = Words(NumberType(dtype), {static_cast<uint64_t>(*static_cast<const int64_t*>(data))});
  } else if (packs() && dtype == DType::kBool) {
    use.input = Words(NumberType(dtype), {*static_cast<const bool*>(data)});
  } else {
    use.input = Kept(HostValue(device_, dtype, data, tensor.itemsize(), {}));
  }
  Push(Word(kHost, static_cast<uint64_t>(dtype), use.wrapped, use.input));
  tensors_.push_back(use);
}

void Walk::Tensor(const at::Tensor& tensor, const BoundOp::Param& param) {
  TensorUse use;
  if (!tensor.defined()) {
    use.undefined = true;
    Push(Word(kNone));
    tensors_.push_back(use);
    return;
  }
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  use.impl = &impl;
  if (!IsTpu(tensor)) return HostNumber(tensor, use);
  const DType dtype = CheckedDType(tensor.scalar_type(), op_.schema().name().c_str());
  StorageContext& context = ContextOf(impl);
  use.context = &context;
  largest_ = std::max(largest_, impl.numel());
  if (context.pending != nullptr) [[unlikely]] {
    // Values of another tape than the one that records now have to be there, or are abstract and cannot be.
    const bool here = fused_ && context.pending->capture == (capture_ != nullptr ? capture_->id() : 0);
    here ? Settle(context) : Materialize(context, "another mode");
  }
  use.fills = param.written && FillsStorage(impl, context);
  const auto sizes = impl.sizes();
  const uint64_t facts = static_cast<uint64_t>(dtype) | (use.fills ? 64u : 0u) | (impl.is_contiguous() ? 128u : 0u);
  if (param.is_out && use.fills) {
    Push(Word(kOutWhole, facts, sizes.size()));
    for (int64_t size : sizes) Push(size);
    if (!impl.is_contiguous()) PushAll(impl.strides());
  } else if (IsWholeValue(impl, context, dtype)) {
    use.input = Input(context);
    Push(Word(kWhole, facts, sizes.size(), use.input));
    for (int64_t size : sizes) Push(size);
  } else if (BaseType(context) == nullptr || impl.numel() == 0) {
    // Never written: zeros are part of the program. A partial write needs to know how large the base is.
    Push(Word(kUnwritten, facts, sizes.size()));
    for (int64_t size : sizes) Push(size);
    PushAll(impl.strides());
    if (param.written && !use.fills) {
      Push(context.nbytes);
      if (impl.numel() > 0) {
        const int64_t numel = static_cast<int64_t>(context.nbytes / impl.itemsize());
        plans_.push_back(SolveView({dtype, {numel}}, SpecOf(impl, dtype)));
        use.plan = static_cast<int>(plans_.size()) - 1;
        PushAll(plans_.back().Encode());
        if (!plans_.back().starts.empty()) use.starts = Starts(plans_.back().starts);
      }
    }
  } else {
    CoverView(context, impl);
    const TensorType& base = *BaseType(context);
    use.input = Input(context);
    plans_.push_back(SolveView(base, SpecOf(impl, dtype)));
    const ViewPlan& plan = plans_.back();
    use.plan = static_cast<int>(plans_.size()) - 1;
    if (!plan.starts.empty()) use.starts = Starts(plan.starts);
    Push(Word(kView, facts, sizes.size(), use.input));
    Push(static_cast<uint64_t>(base.dtype));
    PushAll(base.dims);
    PushAll(plan.Encode());
    PushAll(impl.strides());  // for the meta kernel: of dims the plan does not move through too
  }
  tensors_.push_back(use);
}

void Walk::Number(const c10::IValue& value, const BoundOp::Param& param) {
  ScalarUse use;
  double real = 0;
  if (value.isDouble()) {
    use.category = DType::kFloat64;
    real = value.toDouble();
  } else if (value.isInt()) {
    use.category = DType::kInt64;
    real = static_cast<double>(value.toInt());
  } else if (value.isBool()) {
    use.category = DType::kBool;
    real = value.toBool();
  } else if (value.isComplexDouble()) {
    use.category = DType::kComplex128;
  } else {
    const at::Scalar scalar = value.toScalar();  // symbolic numbers that hold a plain one
    return Number(scalar.isFloatingPoint() ? c10::IValue(scalar.toDouble()) : c10::IValue(scalar.toLong()), param);
  }
  const bool exact = use.category != DType::kComplex128;
  const bool constant =
      exact &&
      (param.always_constant || (param.one_is_constant && real == 1.0) || (param.zero_is_constant && real == 0.0) ||
       (param.small_is_constant &&
        (real == 0.5 || real == -0.5 || (real >= -2 && real <= 4 && real == static_cast<int>(real)))));
  if (constant) {
    use.constant = real;
    Push(Word(kConst, static_cast<uint64_t>(use.category)));
    Push(std::bit_cast<uint64_t>(real));
  } else {
    switch (use.category) {
      case DType::kFloat64:
        use.input = packs() ? Words(NumberType(use.category), {std::bit_cast<uint64_t>(real)})
                            : Kept(ScalarValue(device_, real));
        break;
      case DType::kInt64:
        use.input = packs() ? Words(NumberType(use.category), {static_cast<uint64_t>(value.toInt())})
                            : Kept(ScalarValue(device_, value.toInt()));
        break;
      case DType::kBool:
        use.input = packs() ? Words(NumberType(use.category), {static_cast<uint64_t>(value.toBool())})
                            : Kept(ScalarValue(device_, value.toBool()));
        break;
      default: {
        const c10::complex<double> z = value.toComplexDouble();
        use.input = Kept(ScalarValue(device_, std::complex<double>(z.real(), z.imag())));
      }
    }
    Push(Word(kOperand, static_cast<uint64_t>(use.category)));
  }
  scalars_.push_back(use);
}

void Walk::Ints(const c10::IValue& value) {
  if (value.isIntList()) {
    PushAll(value.toDimVector());
  } else if (value.isBoolList()) {
    Push(value.toBoolList().size());
    for (bool flag : value.toBoolList()) Push(flag);
  } else {
    Push(value.toListRef().size());
    for (const c10::IValue& element : value.toListRef()) {
      Push(static_cast<uint64_t>(element.isBool() ? element.toBool()
                                                  : element.toSymInt().guard_int(__FILE__, __LINE__)));
    }
  }
}

void Walk::Run(const torch::jit::Stack& stack, size_t begin) {
  // Looking the precision up costs as much as the rest of a small key: ops without products do without.
  Push(static_cast<uint64_t>(device_) | (op_.precise() ? static_cast<uint64_t>(CurrentPrecision()) + 1 : 0) << 16 |
       static_cast<uint64_t>(HostKernels()) << 24);
  for (size_t i = 0; i < op_.params().size(); ++i) {
    const BoundOp::Param& param = op_.params()[i];
    const c10::IValue& value = stack[begin + i];
    if (value.isNone()) {
      if (param.kind == BoundOp::Kind::kTensor) {
        Tensor(at::Tensor(), param);
      } else {
        Push(kNothing);
      }
      continue;
    }
    switch (param.kind) {
      case BoundOp::Kind::kTensor:
        Tensor(value.toTensor(), param);
        break;
      case BoundOp::Kind::kTensorList: {
        const auto list = value.toListRef();
        Push(Word(kListOf, 0, 0, list.size()));
        for (const c10::IValue& element : list) Tensor(element.isNone() ? at::Tensor() : element.toTensor(), param);
        break;
      }
      case BoundOp::Kind::kScalar:
        Number(value, param);
        break;
      case BoundOp::Kind::kScalarList: {
        const auto list = value.toListRef();
        Push(Word(kListOf, 0, 0, list.size()));
        for (const c10::IValue& element : list) Number(element, param);
        break;
      }
      case BoundOp::Kind::kInt:
      case BoundOp::Kind::kDType:
      case BoundOp::Kind::kKeyOnly:
        Push(static_cast<uint64_t>(value.isInt() ? value.toInt() : value.toSymInt().guard_int(__FILE__, __LINE__)));
        break;
      case BoundOp::Kind::kBool:
        Push(value.toBool());
        break;
      case BoundOp::Kind::kInts:
      case BoundOp::Kind::kBools:
        Ints(value);
        break;
      case BoundOp::Kind::kFloats:
        Push(value.toDoubleVector().size());
        for (double number : value.toDoubleVector()) Push(std::bit_cast<uint64_t>(number));
        break;
      case BoundOp::Kind::kString: {
        const std::string& text = value.toStringRef();
        Push(Word(kText, 0, 0, text.size()));
        for (char c : text) Push(static_cast<unsigned char>(c));
        break;
      }
      case BoundOp::Kind::kGenerator:
        generator_ = value.toGenerator();
        break;
      case BoundOp::Kind::kIgnored:
        break;
      case BoundOp::Kind::kUnsupported:
        TORCH_CHECK_NOT_IMPLEMENTED(false, op_.name(), ": expected arguments that programs can take, got '",
                                    op_.schema().arguments()[i].name(), "' of type ",
                                    *op_.schema().arguments()[i].type());
    }
  }
}

}  // namespace torch_tpu
