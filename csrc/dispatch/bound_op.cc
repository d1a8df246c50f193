#include "dispatch/bound_op.h"

#include <ATen/MemoryOverlap.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include "device/context.h"
#include "device/generator.h"
#include "device/queue.h"
#include "dispatch/capture.h"
#include "dispatch/dtype_map.h"
#include "dispatch/errors.h"
#include "dispatch/host_values.h"
#include "dispatch/index_checks.h"
#include "dispatch/mode.h"
#include "dispatch/replay.h"
#include "dispatch/tape.h"
#include "dispatch/tensors.h"
#include "dispatch/walk.h"

namespace torch_tpu {
namespace {

BoundOp::Kind KindOf(const c10::TypePtr& given) {
  using Kind = BoundOp::Kind;
  c10::TypePtr type = given;
  if (type->kind() == c10::TypeKind::OptionalType) type = type->expectRef<c10::OptionalType>().getElementType();
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return Kind::kTensor;
    case c10::TypeKind::NumberType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      return Kind::kScalar;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return Kind::kInt;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
      return Kind::kBool;
    case c10::TypeKind::StringType:
      return Kind::kString;
    case c10::TypeKind::ScalarTypeType:
      return Kind::kDType;
    case c10::TypeKind::GeneratorType:
      return Kind::kGenerator;
    case c10::TypeKind::MemoryFormatType:
    case c10::TypeKind::LayoutType:
      return Kind::kKeyOnly;
    case c10::TypeKind::DeviceObjType:
      return Kind::kIgnored;
    case c10::TypeKind::ListType: {
      const Kind element = KindOf(type->expectRef<c10::ListType>().getElementType());
      switch (element) {
        case Kind::kTensor:
          return Kind::kTensorList;
        case Kind::kInt:
          return Kind::kInts;
        case Kind::kBool:
          return Kind::kBools;
        case Kind::kScalar:
          return type->expectRef<c10::ListType>().getElementType()->kind() == c10::TypeKind::NumberType
                     ? Kind::kScalarList
                     : Kind::kFloats;
        default:
          return Kind::kUnsupported;
      }
    }
    default:
      return Kind::kUnsupported;
  }
}

}  // namespace

BoundOp::BoundOp(const OpRow& row, c10::FunctionSchema schema, Form form, std::optional<c10::OperatorHandle> handle)
    : row_(row), schema_(std::move(schema)), form_(form), handle_(handle), check_(ScalarCheckOf(row.name)) {
  if (check_ == nullptr) check_ = IndexCheckOf(row.name);
  for (const c10::Argument& argument : schema_.arguments()) {
    Param param;
    param.kind = KindOf(argument.real_type());
    param.is_out = argument.is_out();
    param.written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    param.one_is_constant = argument.name() == "alpha" || argument.name() == "beta";
    param.zero_is_constant = argument.name() == "beta";
    param.small_is_constant = row.traits & kPowIdentity;
    param.always_constant = row.traits & kKeyScalars;
    params_.push_back(param);
  }
}

std::string BoundOp::name() const {
  std::string name = schema_.name();
  if (!schema_.overload_name().empty()) name += "." + schema_.overload_name();
  return name;
}

// Matrix products and a few others are given conjugate and negative views as they are, since a BLAS can read them.
void BoundOp::ResolveMarks(torch::jit::Stack& stack, size_t begin) const {
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].kind != Kind::kTensor || !stack[begin + i].isTensor()) continue;
    const at::Tensor& tensor = stack[begin + i].toTensor();
    if (!tensor.defined() || (!tensor.is_conj() && !tensor.is_neg())) continue;
    TORCH_CHECK_NOT_IMPLEMENTED(!params_[i].written, name(),
                                ": expected a plain tensor to write to, got a conjugate or negative view");
    if (handle_) stack[begin + i] = tensor.clone();  // our own ops take the values as they are stored
  }
}

// An out= argument that is an input too would change the result's size by being resized to it.
void BoundOp::RefuseAsInput(const at::Tensor& out, const torch::jit::Stack& stack, size_t begin, size_t argument) {
  auto refuse = [&](const at::Tensor& input) {
    if (input.defined() && input.is_same(out)) at::assert_no_overlap(out, input);
  };
  for (size_t i = begin; i < begin + argument; ++i) {
    if (stack[i].isTensor()) refuse(stack[i].toTensor());
    if (stack[i].isTensorList()) {
      for (const at::Tensor& input : stack[i].toTensorVector()) refuse(input);
    }
  }
}

void BoundOp::Call(torch::jit::Stack* stack, int device) {
  const size_t begin = stack->size() - params_.size();
  Translated(schema_.name(), [&] {
    device = Walk::FindDevice(*this, *stack, begin, device);
    TORCH_CHECK(device >= 0, name(), ": expected at least one tpu tensor");
    DeviceContext::Get();
    ResolveMarks(*stack, begin);
    if (check_ != nullptr) check_(*stack, begin);
    for (;;) {
      {
        std::lock_guard lock(Queue::Of(device).mutex());
        Walk walk(*this, device);
        walk.Run(*stack, begin);
        const Entry* entry = nullptr;
        bool compiled = false;
        {
          std::lock_guard entries_lock(mutex_);
          if (auto it = entries_.find(walk.key()); it != entries_.end()) {
            entry = it->second.get();
            compiled = entry->executable != nullptr || entry->graph.outputs.empty();
          }
        }
        if (entry != nullptr && (compiled || walk.fused() || !entry->resizes.empty())) {
          if (entry->resizes.empty() && walk.fused()) {
            Record(*entry, walk, stack, begin);
            return;
          }
          if (entry->resizes.empty()) {
            Execute(*entry, walk, stack, begin);
            return;
          }
          for (const Entry::Resize& resize : entry->resizes) {
            const at::Tensor& out = (*stack)[begin + resize.argument].toTensor();
            RefuseAsInput(out, *stack, begin, resize.argument);
            ResizeOut(out, resize);
          }
          continue;
        }
      }
      // Compiling holds no lock: the meta kernel may need the GIL, and other threads go on.
      std::string key;
      std::unique_ptr<Entry> made = Miss(*stack, begin, device, &key);
      std::lock_guard entries_lock(mutex_);
      const auto [place, fresh] = entries_.try_emplace(std::move(key), std::move(made));
      // Entries stay where they are: tapes refer to them. A second miss brings what fused mode had not needed.
      if (!fresh && place->second->executable == nullptr) place->second->executable = std::move(made->executable);
    }
  });
}

void BoundOp::Execute(const Entry& entry, Walk& walk, torch::jit::Stack* stack, size_t begin) {
  std::vector<BufferPtr> values;
  if (entry.executable != nullptr) {
    AddRandomState(walk, *stack, begin);
    const auto& inputs = walk.inputs();
    c10::SmallVector<PJRT_Buffer*, 16> raw;
    for (const InputRef& input : inputs) raw.push_back(input.buffer->raw());
    c10::SmallVector<int64_t, 8> keep;
    for (const auto& [input, store] : entry.aliases) {
      const StorageContext* owner = inputs[input].owner;
      if (owner == nullptr || owner->value.use_count() > 1) keep.push_back(input);
    }
    Located([&] {
      entry.executable->Execute(DeviceContext::Get().device(walk.device()), raw.data(), raw.size(), keep.data(),
                                keep.size(), &values);
    });
    if (LaunchLog::recording()) [[unlikely]] {
      std::vector<Buffer*> arguments;
      for (const InputRef& input : inputs) arguments.push_back(input.buffer);
      LaunchLog::Note(entry, std::move(arguments), {keep.begin(), keep.end()}, values);
    }
    Queue& queue = Queue::Of(walk.device());
    if (!values.empty()) queue.Launched(values.back());
  }
  for (const Entry::Store& store : entry.stores) SetValue(*walk.tensors()[store.use].context, values[store.output]);
  if (CurrentMode() == EagerMode::kDebug) {
    Located([&] {
      for (const BufferPtr& value : values) AwaitInterruptibly(*value);
    });
  }
  PushResults(entry, walk.device(), stack, begin,
              [&](StorageContext& context, int output) { context.value = std::move(values[output]); });
}

// Random ops: the generator's state is the program's last input, and moves on.
void BoundOp::AddRandomState(Walk& walk, const torch::jit::Stack& stack, size_t begin) const {
  if (!(row_.traits & kRandom)) return;
  const auto state = GeneratorFor(walk.generator() ? std::optional(*walk.generator()) : std::nullopt, walk.device())
                         .Reserve(RandomWords(walk, stack, begin));
  const uint64_t words[2] = {state.first, state.second};
  walk.AddState(words);
}

void BoundOp::Record(const Entry& entry, Walk& walk, torch::jit::Stack* stack, size_t begin) {
  Capture* const capture = walk.capture();
  Tape& tape = capture != nullptr ? capture->tape() : Tape::Of(walk.device());
  Tape::Values values;
  if (!entry.graph.outputs.empty()) {
    if (entry.precise || capture != nullptr) {
      tape.SetPrecision(static_cast<int>(CurrentPrecision()));
      // A change of precision flushes: what was pending may be a buffer now.
      for (const TensorUse& use : walk.tensors()) {
        if (use.context != nullptr) Settle(*use.context);
      }
    }
    if (capture == nullptr) AddRandomState(walk, *stack, begin);
    auto reference = [&](const InputRef& input) {
      if (input.host != nullptr) return tape.Words(*input.host, walk.words(input));
      if (input.owner != nullptr && input.owner->value == nullptr) return tape.Reference(*input.owner->pending);
      return tape.Input(walk.reference(input), input.owner != nullptr);
    };
    c10::SmallVector<Tape::Ref, 16> refs;
    c10::SmallVector<Tape::Ref, 4> replaced(entry.outputs.size(), Tape::kNone);
    for (const InputRef& input : walk.inputs()) refs.push_back(reference(input));
    if (capture != nullptr && (row_.traits & kRandom)) {
      refs.push_back(capture->RandomState(walk.generator(), RandomWords(walk, *stack, begin)));
    }
    for (const Entry::Store& store : entry.stores) {
      const int input = walk.tensors()[store.use].input;
      if (input >= 0) replaced[store.output] = refs[input];
    }
    values = tape.Add(entry, refs, replaced);
  }
  for (const Entry::Store& store : entry.stores) {
    StorageContext& context = *walk.tensors()[store.use].context;
    context.value.reset();
    context.pending = values[store.output];
  }
  PushResults(entry, walk.device(), stack, begin,
              [&](StorageContext& context, int output) { context.pending = std::move(values[output]); });
  tape.EndStep();
}

// At most two words per element are drawn, and a few more for ops that draw per row.
uint64_t BoundOp::RandomWords(const Walk& walk, const torch::jit::Stack& stack, size_t begin) const {
  return 2 * static_cast<uint64_t>(LargestNumel(walk, stack, begin)) + 4;
}

int64_t BoundOp::LargestNumel(const Walk& walk, const torch::jit::Stack& stack, size_t begin) const {
  int64_t largest = walk.largest_numel();
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].kind == Kind::kInt && stack[begin + i].isInt())
      largest = std::max(largest, stack[begin + i].toInt());
  }
  return largest;
}

template <class Assign>
void BoundOp::PushResults(const Entry& entry, int device, torch::jit::Stack* stack, size_t begin,
                          const Assign& assign) {
  if (form_ != Form::kFunctional) {
    // Results are the written arguments themselves.
    torch::jit::Stack results;
    size_t next = 0;
    for (size_t r = 0; r < schema_.returns().size(); ++r) {
      while (next < params_.size() && !params_[next].written) ++next;
      TORCH_INTERNAL_ASSERT(next < params_.size(), name(), " returns more than it writes");
      results.push_back((*stack)[begin + next]);
      ++next;
    }
    stack->resize(begin);
    for (c10::IValue& result : results) stack->push_back(std::move(result));
    return;
  }
  c10::SmallVector<at::Tensor, 4> tensors;
  for (const Entry::Result& result : entry.results) {
    if (result.dtype == c10::ScalarType::Undefined) {
      tensors.emplace_back();
      continue;
    }
    const auto index = static_cast<c10::DeviceIndex>(device);
    tensors.push_back(result.contiguous ? MakeTensor(result.dtype, result.sizes, index)
                                        : MakeTensor(result.dtype, result.sizes, result.strides, index));
    if (result.output >= 0) assign(ContextOf(*tensors.back().unsafeGetTensorImpl()), result.output);
  }
  // The first list argument's length, for ops that return several lists.
  size_t list_length = tensors.size();
  if (schema_.returns().size() > 1) {
    for (size_t i = 0; i < params_.size(); ++i) {
      if (params_[i].kind == Kind::kTensorList) {
        list_length = (*stack)[begin + i].toListRef().size();
        break;
      }
    }
  }
  stack->resize(begin);
  size_t next = 0;
  for (const c10::Argument& returned : schema_.returns()) {
    if (returned.type()->kind() == c10::TypeKind::ListType) {
      c10::List<at::Tensor> list;
      for (size_t i = 0; i < list_length; ++i) list.push_back(std::move(tensors[next++]));
      stack->emplace_back(std::move(list));
    } else {
      stack->emplace_back(std::move(tensors[next++]));
    }
  }
}

InternalOp::InternalOp(const char* text) {
  c10::FunctionSchema schema = torch::jit::parseSchema(text);
  const OpRow* row = FindRow(schema.name());
  TORCH_CHECK(row != nullptr, schema.name(), ": expected a row of the lowering table");
  bool has_out = false;
  for (const c10::Argument& argument : schema.arguments()) has_out |= argument.is_out();
  op_ = std::make_unique<BoundOp>(*row, std::move(schema), has_out ? BoundOp::Form::kOut : BoundOp::Form::kFunctional,
                                  std::nullopt);
}

std::vector<at::Tensor> InternalOp::Run(torch::jit::Stack arguments, int device) {
  op_->Call(&arguments, device);
  std::vector<at::Tensor> results;
  for (c10::IValue& value : arguments) {
    if (value.isTensorList()) {
      for (const at::Tensor& t : value.toTensorVector()) results.push_back(t);
    } else {
      results.push_back(std::move(value).toTensor());
    }
  }
  return results;
}

}  // namespace torch_tpu
