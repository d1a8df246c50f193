// A miss: from a call's arguments to a compiled entry.
#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>

#include <unordered_map>

#include "device/context.h"
#include "device/queue.h"
#include "dispatch/bound_op.h"
#include "dispatch/dtype_map.h"
#include "dispatch/errors.h"
#include "dispatch/graph_maker.h"
#include "dispatch/lower_options.h"
#include "dispatch/meta.h"
#include "dispatch/mode.h"
#include "dispatch/tensors.h"
#include "dispatch/walk.h"
#include "program/graph.h"

namespace torch_tpu {
namespace {

// The call's arguments as data; operands refer to the graph's values.
OpCall MakeCall(const BoundOp& op, const Plan& plan, const torch::jit::Stack& stack, size_t begin, GraphMaker& maker) {
  OpCall call;
  call.row = &op.row();
  size_t tensor = 0, scalar = 0;
  auto add_tensor = [&](Arg& arg) {
    const int32_t value = maker.Read(tensor);
    call.operands.push_back({value, plan.tensors[tensor].wrapped});
    ++arg.count;
    ++tensor;
    return value;
  };
  auto add_scalar = [&](Arg& arg) {
    const ScalarUse& use = plan.scalars[scalar++];
    arg.dtype = use.category;
    if (use.input < 0) {
      arg.kind = Arg::Kind::kConstant;
      arg.floats = {use.constant};
      if (use.category != DType::kFloat64) arg.ints = {static_cast<int64_t>(use.constant)};  // small by construction
      return;
    }
    call.operands.push_back({use.input, true});
    ++arg.count;
  };
  for (size_t i = 0; i < op.params().size(); ++i) {
    const BoundOp::Param& param = op.params()[i];
    const c10::IValue& value = stack[begin + i];
    Arg arg;
    arg.first = static_cast<int32_t>(call.operands.size());
    if (param.is_out) {  // written only: not an argument of emit
      tensor += param.kind == BoundOp::Kind::kTensorList ? value.toListRef().size() : 1;
      continue;
    }
    if (value.isNone()) {
      if (param.kind == BoundOp::Kind::kTensor) ++tensor;
      call.args.push_back(arg);
      continue;
    }
    switch (param.kind) {
      case BoundOp::Kind::kTensor:
        if (plan.tensors[tensor].undefined) {
          ++tensor;
        } else {
          arg.kind = Arg::Kind::kTensor;
          add_tensor(arg);
        }
        break;
      case BoundOp::Kind::kTensorList: {
        arg.kind = Arg::Kind::kTensorList;
        const size_t n = value.toListRef().size();
        for (size_t k = 0; k < n; ++k) add_tensor(arg);
        break;
      }
      case BoundOp::Kind::kScalar:
        arg.kind = Arg::Kind::kScalar;
        add_scalar(arg);
        break;
      case BoundOp::Kind::kScalarList: {
        arg.kind = Arg::Kind::kScalarList;
        const size_t n = value.toListRef().size();
        for (size_t k = 0; k < n; ++k) add_scalar(arg);
        break;
      }
      case BoundOp::Kind::kInt:
        arg.kind = Arg::Kind::kInt;
        arg.ints = {value.isInt() ? value.toInt() : value.toSymInt().guard_int(__FILE__, __LINE__)};
        break;
      case BoundOp::Kind::kBool:
        arg.kind = Arg::Kind::kBool;
        arg.ints = {value.toBool()};
        break;
      case BoundOp::Kind::kInts:
      case BoundOp::Kind::kBools:
        arg.kind = Arg::Kind::kInts;
        for (const c10::IValue& element : value.toListRef()) {
          arg.ints.push_back(element.isBool() ? element.toBool() : element.toSymInt().guard_int(__FILE__, __LINE__));
        }
        break;
      case BoundOp::Kind::kFloats:
        arg.kind = Arg::Kind::kFloats;
        arg.floats = value.toDoubleVector();
        break;
      case BoundOp::Kind::kString:
        arg.kind = Arg::Kind::kString;
        arg.text = value.toStringRef();
        break;
      case BoundOp::Kind::kDType:
        arg.kind = Arg::Kind::kDType;
        arg.dtype = CheckedDType(static_cast<c10::ScalarType>(value.toInt()), op.schema().name().c_str());
        break;
      default:
        break;
    }
    call.args.push_back(std::move(arg));
  }
  return call;
}

void Flatten(const c10::IValue& value, std::vector<at::Tensor>& out) {
  if (value.isTensor()) {
    out.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& t : value.toTensorList()) out.push_back(t);
  } else if (value.isNone()) {
    out.emplace_back();
  }
}

}  // namespace

void BoundOp::ResizeOut(const at::Tensor& out, const Entry::Resize& resize) {
  at::native::resize_output(out, resize.sizes);
  if (out.strides() != c10::IntArrayRef(resize.strides)) {
    out.unsafeGetTensorImpl()->set_sizes_and_strides(resize.sizes, resize.strides);
  }
}

Plan BoundOp::Snapshot(const torch::jit::Stack& stack, size_t begin, int device) const {
  Plan plan;
  std::lock_guard lock(Queue::Of(device).mutex());
  Walk walk(*this, device);
  walk.Run(stack, begin);
  plan.key = walk.key();
  for (const InputRef& input : walk.inputs()) plan.inputs.push_back(input.type());
  plan.tensors.assign(walk.tensors().begin(), walk.tensors().end());
  plan.scalars.assign(walk.scalars().begin(), walk.scalars().end());
  plan.plans = walk.plans();
  for (const TensorUse& use : plan.tensors) {
    const bool ours = !use.undefined && use.context != nullptr;
    plan.dtypes.push_back(ours ? ToDType(c10::typeMetaToScalarType(use.impl->dtype())) : DType::kInvalid);
    plan.specs.push_back(ours ? SpecOf(*use.impl, plan.dtypes.back()) : ViewSpec{});
    plan.nbytes.push_back(ours ? use.context->nbytes : 0);
  }
  if (row_.traits & kRandom) plan.inputs.push_back(TensorType{DType::kUInt64, {2}});
  return plan;
}

std::unique_ptr<Entry> BoundOp::Miss(const torch::jit::Stack& stack, size_t begin, int device, std::string* key) const {
  const Plan plan = Snapshot(stack, begin, device);
  *key = plan.key;
  auto entry = std::make_unique<Entry>();
  std::optional<MetaResult> meta;
  try {
    if (handle_ && !(row_.traits & kNoMeta)) meta = RunMeta(*handle_, stack, begin);
  } catch (...) {
    ThrowAsCpu(*handle_, stack, begin);  // the same mistake in CPU's words, and of CPU's type
    throw;
  }

  if (meta && row_.traits & kLayoutOfCpu && form_ == Form::kOut) {
    if (std::optional<torch::jit::Stack> results = RunCpu(*handle_, stack, begin)) {
      size_t next = 0;
      for (size_t i = 0; i < params_.size(); ++i) {
        if (params_[i].is_out) meta->arguments[i] = results->at(next++);
      }
    }
  }

  const std::vector<size_t> written = WrittenUses(plan, stack, begin, meta, entry.get());
  if (!entry->resizes.empty()) return entry;
  std::vector<at::Tensor> expected;  // functional results as the meta kernel made them
  if (meta && form_ == Form::kFunctional) {
    std::optional<torch::jit::Stack> results;
    if (row_.traits & kLayoutOfCpu) results = RunCpu(*handle_, stack, begin);
    for (const c10::IValue& value : results ? *results : meta->results) Flatten(value, expected);
  }
  const size_t num_results = form_ != Form::kFunctional ? written.size()
                             : meta                     ? expected.size()
                                                        : CountResults(stack, begin);

  // The op alone first: its types say what has to be done to its results.
  GraphMaker maker(plan);
  OpCall call = MakeCall(*this, plan, stack, begin, maker);
  if (row_.traits & kRandom) call.operands.push_back(Operand{static_cast<int32_t>(plan.inputs.size()) - 1, false});
  const int32_t first = maker.graph().Add(std::move(call), static_cast<int32_t>(num_results));
  DeviceContext& context = DeviceContext::Get();
  const LowerOptions options = OptionsFor(context.client(), CurrentPrecision());
  Graph& graph = maker.graph();
  std::optional<Lowering> lowering;
  try {
    lowering.emplace(graph, options);
  } catch (const Error& error) {
    if (handle_ && (error.code() == Code::kInvalidArgument || error.code() == Code::kOutOfRange)) {
      ThrowAsCpu(*handle_, stack, begin);
    }
    throw;
  }
  std::vector<TensorType> types;
  for (size_t i = 0; i < num_results; ++i) types.push_back(lowering->type(first + static_cast<int32_t>(i)));
  if (form_ == Form::kOut && !meta && AddResizes(plan, stack, begin, types, entry.get())) return entry;

  if (form_ == Form::kFunctional) {
    for (size_t i = 0; i < num_results; ++i) {
      int32_t value = first + static_cast<int32_t>(i);
      const at::Tensor* like = i < expected.size() ? &expected[i] : nullptr;
      entry->results.push_back(ResultOf(types[i], like, value, maker, plan));
      if (entry->results.back().dtype == c10::ScalarType::Undefined) continue;
      entry->results.back().output = static_cast<int>(graph.outputs.size());
      graph.outputs.push_back(value);
    }
  } else {
    AddStores(plan, written, types, first, maker, entry.get());
  }
  if (graph.outputs.empty()) return entry;
  const Program program = lowering->Finish(graph);
  entry->graph = graph;
  entry->outputs = program.outputs;
  entry->precise = program.text.find("precision_config") != std::string::npos;
  // The first program with products: from here keys name their precision, and this one's does already.
  if (entry->precise && !precise_.exchange(true)) *key = Snapshot(stack, begin, device).key;
  if (CurrentMode() == EagerMode::kFused) return entry;
  entry->executable = Translated(
      name(), [&] { return context.compiler().Compile(program, context.compiler().DefaultOptions(device)); });
  entry->executable->SetName(std::string(row_.name.substr(row_.name.find("::") == std::string_view::npos ? 0 : 5)));
  return entry;
}

std::vector<size_t> BoundOp::WrittenUses(const Plan& plan, const torch::jit::Stack& stack, size_t begin,
                                         const std::optional<MetaResult>& meta, Entry* entry) const {
  std::vector<size_t> written;
  size_t use = 0;
  for (size_t i = 0; i < params_.size(); ++i) {
    const c10::IValue& value = stack[begin + i];
    if (params_[i].kind != Kind::kTensor && params_[i].kind != Kind::kTensorList) continue;
    const size_t n = params_[i].kind == Kind::kTensor ? 1 : (value.isNone() ? 0 : value.toListRef().size());
    for (size_t k = 0; k < n; ++k, ++use) {
      if (params_[i].written) written.push_back(use);
    }
    if (params_[i].written && !(row_.traits & kIdempotent)) {
      for (size_t k = 0; k < n; ++k) {
        const at::Tensor& t = params_[i].kind == Kind::kTensor ? value.toTensor() : value.toListRef()[k].toTensor();
        if (t.defined()) at::assert_no_internal_overlap(t);
      }
    }
    if (!params_[i].is_out || !meta || params_[i].kind != Kind::kTensor) continue;
    const at::Tensor& wanted = meta->arguments[i].toTensor();
    if (!wanted.defined() || wanted.sizes() == value.toTensor().sizes()) continue;
    const Dims sizes(wanted.sizes().begin(), wanted.sizes().end());
    Dims strides = value.toTensor().numel() == 0 ? OutStrides(sizes, plan) : Dims();
    if (strides.empty()) strides.assign(wanted.strides().begin(), wanted.strides().end());
    entry->resizes.push_back({i, sizes, strides});
  }
  return written;
}

// Without a meta kernel the lowering decides the sizes of out= arguments. Whether there is one to resize.
bool BoundOp::AddResizes(const Plan& plan, const torch::jit::Stack& stack, size_t begin,
                         const std::vector<TensorType>& types, Entry* entry) const {
  size_t result = 0;
  for (size_t i = 0; i < params_.size() && result < types.size(); ++i) {
    if (!params_[i].is_out || params_[i].kind != Kind::kTensor) continue;
    const Dims& sizes = types[result++].dims;
    const at::Tensor& out = stack[begin + i].toTensor();
    if (!out.defined() || out.sizes() == c10::IntArrayRef(sizes)) continue;
    Dims strides = out.numel() == 0 ? OutStrides(sizes, plan) : Dims();
    if (strides.empty()) strides = ContiguousStrides(sizes);
    entry->resizes.push_back({i, sizes, strides});
  }
  return !entry->resizes.empty();
}

size_t BoundOp::CountResults(const torch::jit::Stack& stack, size_t begin) const {
  size_t list = 0;
  for (size_t i = 0; i < params_.size() && list == 0; ++i) {
    if (params_[i].kind == Kind::kTensorList) list = stack[begin + i].toListRef().size();
  }
  size_t count = 0;
  for (const c10::Argument& returned : schema_.returns()) {
    count += returned.type()->kind() == c10::TypeKind::ListType ? list : 1;
  }
  return count;
}

// Those of a result of the first tensor's rank, column-major in the last two dims; empty: another rank.
Dims BoundOp::ColumnMajor(const Dims& sizes, const Plan& plan) {
  const c10::TensorImpl* first = plan.tensors.empty() ? nullptr : plan.tensors[0].impl;
  if (first == nullptr || sizes.size() < 2 || Product(sizes) == 0 || first->dim() != static_cast<int64_t>(sizes.size()))
    return {};
  Dims strides = ContiguousStrides(sizes);
  const size_t last = sizes.size() - 1;
  strides[last] = sizes[last - 1];
  strides[last - 1] = 1;
  return strides;
}

// Those of an out= argument that had no elements; empty: the meta kernel's.
Dims BoundOp::OutStrides(const Dims& sizes, const Plan& plan) const {
  return row_.traits & (kColumnMajor | kColumnMajorOut) ? ColumnMajor(sizes, plan) : Dims();
}

// Strides that the row's traits ask for; empty: none.
Dims BoundOp::StatedStrides(const Dims& sizes, const Plan& plan) const {
  const c10::TensorImpl* first = plan.tensors.empty() ? nullptr : plan.tensors[0].impl;
  if (first == nullptr) return {};
  if (row_.traits & kColumnMajor) return ColumnMajor(sizes, plan);
  if (row_.traits & kLayoutOfFirst) {
    const bool planes = sizes.size() == 4 && first->is_strides_like_channels_last();
    const bool volumes = sizes.size() == 5 && first->is_strides_like_channels_last_3d();
    const std::vector<int64_t> strides = planes    ? c10::get_channels_last_strides_2d(sizes)
                                         : volumes ? c10::get_channels_last_strides_3d(sizes)
                                                   : ContiguousStrides(sizes);
    return Dims(strides.begin(), strides.end());
  }
  return {};
}

// What a functional result is to be; `value` becomes the node that lays it out so.
Entry::Result BoundOp::ResultOf(const TensorType& type, const at::Tensor* like, int32_t& value, GraphMaker& maker,
                                const Plan& plan) const {
  Entry::Result result;
  if (type.dtype == DType::kInvalid) return result;
  const Dims stated = StatedStrides(type.dims, plan);
  if ((like == nullptr || !like->defined()) && stated.empty()) {
    result.dtype = ToScalarType(type.dtype);
    result.sizes = type.dims;
    return result;
  }
  at::Tensor layout;
  if (!stated.empty()) {
    const bool known = like != nullptr && like->defined();
    layout = at::detail::empty_strided_meta(known ? like->sizes() : c10::IntArrayRef(type.dims), stated,
                                            known ? like->scalar_type() : ToScalarType(type.dtype));
    like = &layout;
  }
  if (like->sizes() != c10::IntArrayRef(type.dims)) {
    Fail(Code::kInternal, name(), ": the lowering gives ", type.ToString(), " where PyTorch expects sizes ",
         ToString(Dims(like->sizes().begin(), like->sizes().end())));
  }
  result.dtype = like->scalar_type();
  result.sizes = type.dims;
  result.strides = Dims(like->strides().begin(), like->strides().end());
  const std::optional<Dims> order = DenseOrder(result.sizes, result.strides);
  result.contiguous = like->is_contiguous() || !order;
  const DType dtype = ToDType(result.dtype);
  if (result.contiguous && dtype == type.dtype) return result;
  Dims identity(type.dims.size());
  for (size_t i = 0; i < identity.size(); ++i) identity[i] = static_cast<int64_t>(i);
  value = maker.Store(value, dtype, type.dims, result.contiguous ? identity : *order);
  return result;
}

// Writes results to their places. Several places in one storage are written one after another.
void BoundOp::AddStores(const Plan& plan, const std::vector<size_t>& written, const std::vector<TensorType>& types,
                        int32_t first, GraphMaker& maker, Entry* entry) const {
  std::unordered_map<StorageContext*, std::pair<int32_t, size_t>> current;  // value, index into stores
  Graph& graph = maker.graph();
  for (size_t i = 0; i < written.size(); ++i) {
    const size_t u = written[i];
    const TensorUse& use = plan.tensors[u];
    if (use.undefined || types[i].dtype == DType::kInvalid || Product(plan.specs[u].sizes) == 0) continue;
    auto [place, fresh] = current.try_emplace(use.context, std::pair<int32_t, size_t>{-1, entry->stores.size()});
    const int32_t value = maker.Write(u, first + static_cast<int32_t>(i), place->second.first);
    place->second.first = value;
    if (fresh) {
      entry->stores.push_back({static_cast<int>(u), static_cast<int>(graph.outputs.size())});
      graph.outputs.push_back(value);
    } else {
      graph.outputs[entry->stores[place->second.second].output] = value;
    }
  }
  // The old base's memory may become the new one's where their types agree.
  for (size_t s = 0; s < entry->stores.size(); ++s) {
    const TensorUse& use = plan.tensors[entry->stores[s].use];
    if (use.input < 0) continue;
    const TensorType& base = plan.inputs[use.input];
    const bool same = use.fills ? BaseOfFill(plan, entry->stores[s].use) == base : true;
    if (!same) continue;
    graph.aliases.emplace_back(use.input, entry->stores[s].output);
    entry->aliases.emplace_back(use.input, static_cast<int>(s));
  }
}

}  // namespace torch_tpu
