#include "dispatch/capture.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "device/context.h"
#include "device/generator.h"
#include "device/queue.h"
#include "dispatch/bound_op.h"
#include "dispatch/dtype_map.h"
#include "dispatch/lower_options.h"
#include "dispatch/mode.h"
#include "dispatch/tensors.h"
#include "lowering/table.h"

namespace torch_tpu {
namespace {

// Host values of this many elements become literals; larger ones stay buffers.
constexpr int64_t kMaxLiteral = 16;

uint64_t NextId() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

Dims ToDims(c10::IntArrayRef ints) { return Dims(ints.begin(), ints.end()); }

const OpRow& Row(const char* name) {
  const OpRow* row = FindRow(name);
  Check(row != nullptr, name, ": expected a row of the lowering table");
  return *row;
}

Arg IntsArg(Arg::Kind kind, Dims ints) {
  Arg arg;
  arg.kind = kind;
  arg.ints = std::move(ints);
  return arg;
}

template <class T>
void AppendWords(const std::vector<char>& bytes, Dims& words) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    if constexpr (std::is_integral_v<T>) {
      words.push_back(static_cast<int64_t>(value));
    } else {
      words.push_back(std::bit_cast<int64_t>(static_cast<double>(value)));
    }
  }
}

// A small buffer as a call that gives its value; nothing for one that has to stay a buffer.
std::optional<OpCall> Literal(const Buffer& buffer) {
  const TensorType& type = buffer.type();
  if (type.dims.size() > 1 || Product(type.dims) > kMaxLiteral) return std::nullopt;
  std::vector<char> bytes(type.bytes());
  Dims words;
  auto read = [&]<class T>(T) {
    buffer.Await();
    buffer.ToHost(bytes.data());
    AppendWords<T>(bytes, words);
  };
  switch (type.dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      if (type.dtype == DType::kComplex128 && !type.dims.empty()) return std::nullopt;
      read(double());
      break;
    case DType::kFloat32:
      read(float());
      break;
    case DType::kInt64:
      read(int64_t());
      break;
    case DType::kInt32:
      read(int32_t());
      break;
    case DType::kBool:
    case DType::kUInt8:
      read(uint8_t());
      break;
    default:
      return std::nullopt;
  }
  OpCall call;
  call.row = &Row("tpu::literal");
  Arg dtype;
  dtype.kind = Arg::Kind::kDType;
  dtype.dtype = type.dtype;
  call.args = {dtype, IntsArg(Arg::Kind::kInts, type.dims), IntsArg(Arg::Kind::kInts, std::move(words))};
  return call;
}

}  // namespace

TensorLayout LayoutOf(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const StorageContext& context = ContextOf(impl);
  TensorLayout layout;
  layout.dtype = tensor.scalar_type();
  layout.sizes = ToDims(impl.sizes());
  layout.strides = ToDims(impl.strides());
  layout.offset = impl.storage_offset();
  layout.nbytes = context.nbytes;
  if (const TensorType* base = BaseType(context)) layout.base = *base;
  layout.conjugate = tensor.is_conj();
  layout.negative = tensor.is_neg();
  layout.whole = IsWholeValue(impl, context, ToDType(layout.dtype));
  return layout;
}

TensorLayout LayoutFor(c10::ScalarType dtype, const Dims& sizes, const Dims& strides) {
  TensorLayout layout;
  layout.dtype = dtype;
  layout.sizes = sizes;
  layout.strides = strides;
  const DType type = CheckedDType(dtype, "abstract tensor");
  int64_t numel = 1;
  for (size_t i = 0; i < sizes.size(); ++i) numel += (sizes[i] - 1) * strides[i];
  if (Product(sizes) == 0) numel = 0;
  layout.nbytes = static_cast<size_t>(numel) * ItemSize(type);
  if (const std::optional<Dims> order = DenseOrder(sizes, strides)) {
    layout.base = TensorType{type, {}};
    for (int64_t d : *order) layout.base->dims.push_back(sizes[static_cast<size_t>(d)]);
    layout.whole = layout.base->dims == sizes;
  } else {
    layout.base = TensorType{type, {numel}};
  }
  return layout;
}

Capture::Capture(int device) : device_(device), id_(NextId()), tape_(device, id_) {}

at::Tensor Capture::Argument(const TensorLayout& layout) {
  if (layout.dtype == c10::ScalarType::Undefined) {
    arguments_.emplace_back();
    values_.emplace_back();
    layouts_.push_back(layout);
    return {};
  }
  at::Tensor tensor = MakeTensor(layout.dtype, layout.sizes, layout.strides, static_cast<c10::DeviceIndex>(device_));
  c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  impl.set_storage_offset(layout.offset);
  ResizeStorage(*impl.unsafe_storage().unsafeGetStorageImpl(), layout.nbytes);
  if (layout.conjugate) tensor._set_conj(true);
  if (layout.negative) tensor._set_neg(true);
  std::shared_ptr<Pending> value;
  std::lock_guard lock(Queue::Of(device_).mutex());
  if (layout.base) {
    value = std::make_shared<Pending>();
    value->device = device_;
    value->id = tape_.Placeholder(*layout.base);
    value->own = *layout.base;
    value->type = &value->own;
    value->capture = id_;
    ContextOf(impl).pending = value;
  }
  arguments_.push_back(tensor);
  values_.push_back(std::move(value));
  layouts_.push_back(layout);
  return tensor;
}

Tape::Ref Capture::StateAt(Random& use, uint64_t words) {
  if (use.words == 0) {
    use.words = words;
    return use.state;
  }
  const TensorType state{DType::kUInt64, {2}};
  Entry& entry = entries_.emplace_back();
  entry.graph.inputs = {state};
  OpCall call;
  call.row = &Row("tpu::random_state_at");
  Arg arg;
  arg.kind = Arg::Kind::kTensor;
  arg.count = 1;
  call.operands = {{0, false}};
  call.args = {arg, IntsArg(Arg::Kind::kInt, {static_cast<int64_t>(use.words)})};
  entry.graph.outputs = {entry.graph.Add(std::move(call))};
  entry.outputs = {state};
  use.words += words;
  return tape_.Reference(*tape_.Add(entry, {use.state}, {Tape::kNone}).front());
}

Tape::Ref Capture::RandomState(const at::Generator* generator, uint64_t words) {
  words = (words + 3) / 4 * 4;  // whole blocks, as the generator itself moves on
  if (generator == nullptr && replayed_) return StateAt(*replayed_, words);
  for (Random& random : random_) {
    const bool same = generator == nullptr ? !random.generator : random.generator && *random.generator == *generator;
    if (same) return StateAt(random, words);
  }
  const auto given = generator == nullptr ? std::nullopt : std::optional<at::Generator>(*generator);
  random_.push_back({given, tape_.Placeholder(TensorType{DType::kUInt64, {2}}), 0});
  return StateAt(random_.back(), words);
}

at::Tensor Capture::SaveRandomState() {
  std::lock_guard lock(Queue::Of(device_).mutex());
  const Tape::Ref state = RandomState(nullptr, 0);
  // Through a step of its own: a tensor's value is one of the tape.
  Entry& entry = entries_.emplace_back();
  const TensorType type{DType::kUInt64, {2}};
  entry.graph.inputs = {type};
  OpCall call;
  call.row = &Row("tpu::identity");
  Arg arg;
  arg.kind = Arg::Kind::kTensor;
  arg.count = 1;
  call.operands = {{0, false}};
  call.args = {arg};
  entry.graph.outputs = {entry.graph.Add(std::move(call))};
  entry.outputs = {type};
  at::Tensor tensor = MakeTensor(ToScalarType(type.dtype), {2}, static_cast<c10::DeviceIndex>(device_));
  ContextOf(*tensor.unsafeGetTensorImpl()).pending = tape_.Add(entry, {state}, {Tape::kNone}).front();
  return tensor;
}

void Capture::UseRandomState(const at::Tensor& state) {
  replayed_.reset();
  if (!state.defined()) return;
  std::lock_guard lock(Queue::Of(device_).mutex());
  replayed_ = Random{std::nullopt, RefOf(ContextOf(*state.unsafeGetTensorImpl())), 0};
}

Tape::Ref Capture::RefOf(const StorageContext& context) {
  if (context.value != nullptr) return tape_.Input(context.value, true);
  Check(context.pending != nullptr && context.pending->capture == id_,
        "capture: expected a value of this capture, got none or one of another");
  return context.pending->id;
}

Capture::Region Capture::FinishRegion(const std::vector<at::Tensor>& outputs) {
  static InternalOp& identity = *new InternalOp("tpu::identity(Tensor x) -> Tensor");
  std::vector<Tape::Ref> results;
  for (const at::Tensor& output : outputs) {
    Check(output.defined(), "control flow: expected tensors from a branch or body, got None");
    const at::Tensor dense = identity.Run({output}, device_)[0];
    results.push_back(RefOf(ContextOf(*dense.unsafeGetTensorImpl())));
  }
  for (size_t i = 0; i < arguments_.size(); ++i) {
    Check(!arguments_[i].defined() || ContextOf(*arguments_[i].unsafeGetTensorImpl()).pending == values_[i],
          "control flow: expected a branch or body that changes none of its inputs");
  }
  if (!random_.empty()) {
    Fail(Code::kFailedPrecondition,
         "control flow: expected a branch or body without random numbers, got an abstract one");
  }
  Region region;
  std::vector<bool> used(tape_.num_inputs(), true);
  std::vector<std::optional<OpCall>> literals(used.size());
  for (size_t k = 0; k < used.size(); ++k) {
    const BufferPtr& buffer = tape_.buffer(k);
    if (buffer == nullptr) continue;
    literals[k] = Literal(*buffer);
    if (!literals[k]) region.constants.push_back(buffer);
  }
  region.graph = std::make_shared<Graph>(tape_.Join(tape_.size(), results, used, literals));
  return region;
}

std::vector<at::Tensor> Capture::ControlFlow(const char* row, const std::vector<std::vector<at::Tensor>>& lists,
                                             const std::vector<bool>& single, std::vector<Region> regions) {
  static InternalOp& identity = *new InternalOp("tpu::identity(Tensor x) -> Tensor");
  std::lock_guard lock(Queue::Of(device_).mutex());
  Entry& entry = entries_.emplace_back();
  std::vector<Tape::Ref> refs;
  OpCall call;
  call.row = &Row(row);
  auto add = [&](Tape::Ref ref) {
    call.operands.push_back({static_cast<int32_t>(refs.size()), false});
    entry.graph.inputs.push_back(tape_.TypeOf(ref));
    refs.push_back(ref);
  };
  for (size_t l = 0; l < lists.size(); ++l) {
    Arg arg;
    arg.kind = single[l] ? Arg::Kind::kTensor : Arg::Kind::kTensorList;
    arg.first = static_cast<int32_t>(call.operands.size());
    arg.count = static_cast<int32_t>(lists[l].size());
    for (const at::Tensor& tensor : lists[l]) {
      const at::Tensor dense = identity.Run({tensor}, device_)[0];
      add(RefOf(ContextOf(*dense.unsafeGetTensorImpl())));
    }
    call.args.push_back(arg);
  }
  Dims counts;
  for (Region& region : regions) {
    counts.push_back(static_cast<int64_t>(region.constants.size()));
    for (const BufferPtr& constant : region.constants) add(tape_.Input(constant, true));
  }
  call.args.push_back(IntsArg(Arg::Kind::kInts, std::move(counts)));
  const size_t num_results = regions.back().graph->outputs.size();
  for (Region& region : regions) call.regions.push_back(std::move(region.graph));
  const int32_t first = entry.graph.Add(std::move(call), static_cast<int32_t>(num_results));
  for (size_t i = 0; i < num_results; ++i) entry.graph.outputs.push_back(first + static_cast<int32_t>(i));
  entry.outputs = Lower(entry.graph, OptionsFor(DeviceContext::Get().client(), CurrentPrecision())).outputs;
  const auto values = tape_.Add(entry, refs, std::vector<Tape::Ref>(num_results, Tape::kNone));
  std::vector<at::Tensor> results;
  for (size_t i = 0; i < num_results; ++i) {
    const TensorType& type = entry.outputs[i];
    results.push_back(MakeTensor(ToScalarType(type.dtype), type.dims, static_cast<c10::DeviceIndex>(device_)));
    ContextOf(*results.back().unsafeGetTensorImpl()).pending = values[i];
  }
  return results;
}

CapturedGraph Capture::Finish(const std::vector<at::Tensor>& outputs) {
  std::lock_guard lock(Queue::Of(device_).mutex());
  CapturedGraph captured;
  captured.device = device_;
  captured.arguments = layouts_;
  captured.precision = static_cast<Precision>(tape_.precision());
  captured.ops = static_cast<int64_t>(tape_.size());
  std::unordered_map<Tape::Ref, int> argument_of;  // placeholder -> argument
  std::unordered_map<const StorageContext*, int> owner;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (!arguments_[i].defined()) continue;
    if (values_[i] != nullptr) argument_of[values_[i]->id] = static_cast<int>(i);
    owner[&ContextOf(*arguments_[i].unsafeGetTensorImpl())] = static_cast<int>(i);
  }

  std::vector<Tape::Ref> results;
  std::unordered_map<Tape::Ref, int> result_of;
  auto source = [&](const StorageContext& context) {
    CapturedGraph::Source from;
    if (context.value != nullptr) {
      from.constant = context.value;
    } else if (context.pending != nullptr) {
      Check(context.pending->capture == id_, "capture: expected values of this capture, got one of another");
      const Tape::Ref ref = context.pending->id;
      if (auto it = argument_of.find(ref); it != argument_of.end()) {
        from.argument = it->second;
      } else {
        const auto [place, fresh] = result_of.try_emplace(ref, static_cast<int>(results.size()));
        if (fresh) results.push_back(ref);
        from.output = place->second;
      }
    }
    return from;
  };

  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (!arguments_[i].defined()) continue;
    const StorageContext& context = ContextOf(*arguments_[i].unsafeGetTensorImpl());
    if (context.pending == values_[i] && context.value == nullptr) continue;
    captured.stores.push_back({static_cast<int>(i), source(context)});
  }
  std::unordered_map<const StorageContext*, int> made;
  for (const at::Tensor& tensor : outputs) {
    CapturedGraph::Output& output = captured.outputs.emplace_back();
    if (!tensor.defined()) continue;
    output.defined = true;
    output.layout = LayoutOf(tensor);
    const StorageContext& context = ContextOf(*tensor.unsafeGetTensorImpl());
    if (auto it = owner.find(&context); it != owner.end()) {
      output.argument = it->second;
      continue;
    }
    const auto [place, fresh] = made.try_emplace(&context, static_cast<int>(captured.storages.size()));
    if (fresh) captured.storages.push_back({context.nbytes, source(context)});
    output.storage = place->second;
  }

  // Literals, and the inputs that are left.
  const std::vector<bool> used = tape_.UsedInputs(results);
  std::vector<std::optional<OpCall>> literals(used.size());
  std::unordered_map<int, int> input_of_argument;
  for (size_t k = 0; k < used.size(); ++k) {
    if (!used[k]) continue;
    const Tape::Ref ref = ~static_cast<int32_t>(k);
    CapturedGraph::Input input;
    if (const BufferPtr& buffer = tape_.buffer(k)) {
      literals[k] = Literal(*buffer);
      if (literals[k]) continue;
      input.constant = buffer;
    } else if (auto it = argument_of.find(ref); it != argument_of.end()) {
      input.argument = it->second;
      input_of_argument[it->second] = static_cast<int>(captured.inputs.size());
    } else {
      for (size_t r = 0; r < random_.size(); ++r) {
        if (random_[r].state == ref) input.random = static_cast<int>(r);
      }
    }
    captured.inputs.push_back(std::move(input));
  }
  captured.graph = tape_.Join(tape_.size(), results, used, literals);
  for (const Random& random : random_) captured.random.push_back({random.generator, random.words});

  // An argument that is written gives its memory to the new value.
  for (const CapturedGraph::Store& store : captured.stores) {
    const auto input = input_of_argument.find(store.argument);
    if (store.value.output < 0 || input == input_of_argument.end()) continue;
    if (tape_.TypeOf(results[store.value.output]) != *layouts_[store.argument].base) continue;
    bool taken = false;
    for (const auto& [in, out] : captured.graph.aliases) taken |= out == store.value.output;
    if (!taken) captured.graph.aliases.emplace_back(input->second, store.value.output);
  }
  return captured;
}

Capture* Capture::Current() { return CurrentCapture(); }

Capture::Scope::Scope(Capture* capture) : before_(CurrentCapture()) { SetThreadCapture(capture); }
Capture::Scope::~Scope() { SetThreadCapture(before_); }

}  // namespace torch_tpu
