// Foreach ops: each is the table's row for one tensor, applied to every element of the lists.
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "lowering/math.h"
#include "lowering/optimizer.h"

namespace torch_tpu {
namespace {

// How a number of the foreach op reaches the row: in a tensor's place (as PyTorch wraps numbers) or as a number.
enum class Numbers : uint8_t { kAsTensors, kAsNumbers };

struct Lift {
  std::string_view name, row;
  Numbers numbers = Numbers::kAsTensors;
  bool alpha = false;  // the row's last argument is alpha, which this overload doesn't have
};

constexpr Lift kLifts[] = {
    {"_foreach_add.Scalar", "add.Tensor", Numbers::kAsTensors, true},
    {"_foreach_add.ScalarList", "add.Tensor", Numbers::kAsTensors, true},
    {"_foreach_add.List", "add.Tensor"},
    {"_foreach_add.Tensor", "add.Tensor"},
    {"_foreach_sub.Scalar", "sub.Tensor", Numbers::kAsTensors, true},
    {"_foreach_sub.ScalarList", "sub.Tensor", Numbers::kAsTensors, true},
    {"_foreach_sub.List", "sub.Tensor"},
    {"_foreach_mul.Scalar", "mul.Tensor"},
    {"_foreach_mul.ScalarList", "mul.Tensor"},
    {"_foreach_mul.List", "mul.Tensor"},
    {"_foreach_mul.Tensor", "mul.Tensor"},
    {"_foreach_div.Scalar", "div.Tensor"},
    {"_foreach_div.ScalarList", "div.Tensor"},
    {"_foreach_div.List", "div.Tensor"},
    {"_foreach_div.Tensor", "div.Tensor"},
    {"_foreach_maximum.Scalar", "maximum"},
    {"_foreach_maximum.ScalarList", "maximum"},
    {"_foreach_maximum.List", "maximum"},
    {"_foreach_minimum.Scalar", "minimum"},
    {"_foreach_minimum.ScalarList", "minimum"},
    {"_foreach_minimum.List", "minimum"},
    {"_foreach_clamp_min.Scalar", "maximum"},
    {"_foreach_clamp_min.ScalarList", "maximum"},
    {"_foreach_clamp_min.List", "maximum"},
    {"_foreach_clamp_max.Scalar", "minimum"},
    {"_foreach_clamp_max.ScalarList", "minimum"},
    {"_foreach_clamp_max.List", "minimum"},
    {"_foreach_addcmul.Scalar", "addcmul", Numbers::kAsNumbers},
    {"_foreach_addcmul.ScalarList", "addcmul", Numbers::kAsNumbers},
    {"_foreach_addcdiv.Scalar", "addcdiv", Numbers::kAsNumbers},
    {"_foreach_addcdiv.ScalarList", "addcdiv", Numbers::kAsNumbers},
    {"_foreach_lerp.Scalar", "lerp.Scalar", Numbers::kAsNumbers},
    {"_foreach_lerp.ScalarList", "lerp.Scalar", Numbers::kAsNumbers},
    {"_foreach_lerp.List", "lerp.Tensor"},
    {"_foreach_pow.Scalar", "pow.Tensor_Scalar", Numbers::kAsNumbers},
    {"_foreach_pow.ScalarList", "pow.Tensor_Scalar", Numbers::kAsNumbers},
    {"_foreach_pow.List", "pow.Tensor_Tensor"},
    {"_foreach_pow.ScalarAndTensor", "pow.Tensor_Tensor"},
};

const Lift* FindLift(std::string_view name) {
  static const std::unordered_map<std::string_view, const Lift*>* index = [] {
    auto* map = new std::unordered_map<std::string_view, const Lift*>;
    for (const Lift& lift : kLifts) map->emplace(lift.name, &lift);
    return map;
  }();
  auto found = index->find(name);
  return found == index->end() ? nullptr : found->second;
}

const OpRow& RowOf(std::string_view foreach_name, std::string_view name) {
  const OpRow* row = FindRow(name);
  if (row == nullptr) Fail(Code::kUnimplemented, foreach_name, ": expected a lowering of ", name, ", got none");
  return *row;
}

bool IsList(const Arg& arg) { return arg.kind == Arg::Kind::kTensorList || arg.kind == Arg::Kind::kScalarList; }

int32_t ListLength(const Args& a) {
  for (const Arg& arg : a.call().args) {
    if (arg.kind == Arg::Kind::kTensorList) return arg.count;
  }
  return 0;
}

Value NumberValue(Builder& b, const Arg& constant) {
  const double number = constant.floats.at(0);
  if (IsComplex(constant.dtype)) {
    return b.ConstantComplex(constant.dtype, {number, constant.floats.size() > 1 ? constant.floats[1] : 0.0});
  }
  return b.Constant(constant.dtype, number);
}

// One single-tensor call under construction.
class ElementCall {
 public:
  explicit ElementCall(const OpRow& row) { call_.row = &row; }

  void AddTensor(Value value, bool wrapped) {
    Arg arg;
    arg.kind = Arg::Kind::kTensor;
    arg.first = Push(value, wrapped);
    arg.count = 1;
    call_.args.push_back(arg);
  }
  void AddNumber(Value value) {
    Arg arg;
    arg.kind = Arg::Kind::kScalar;
    arg.dtype = value.dtype();
    arg.first = Push(value, true);
    arg.count = 1;
    call_.args.push_back(arg);
  }
  void AddOther(const Arg& arg) { call_.args.push_back(arg); }
  Value Emit(Builder& b) const {
    Values results = call_.row->emit(b, Args(call_, values_));
    Check(results.size() == 1, call_.row->name, ": expected one result for a foreach op, got ", results.size());
    return results[0];
  }

 private:
  int32_t Push(Value value, bool wrapped) {
    const int32_t position = static_cast<int32_t>(values_.size());
    call_.operands.push_back({value ? position : -1, wrapped});
    values_.push_back(value);
    return position;
  }
  OpCall call_;
  Values values_;
};

Arg ConstantOne() {
  Arg one;
  one.kind = Arg::Kind::kConstant;
  one.dtype = DType::kInt64;
  one.floats = {1.0};
  return one;
}

void AddArgument(Builder& b, const Args& a, const Arg& arg, int32_t element, Numbers numbers, ElementCall* call) {
  const int32_t k = arg.first + (IsList(arg) ? element : 0);
  switch (arg.kind) {
    case Arg::Kind::kTensor:
    case Arg::Kind::kTensorList:
      call->AddTensor(a.operand(k), a.call().operands.at(k).wrapped);
      break;
    case Arg::Kind::kScalar:
    case Arg::Kind::kScalarList:
      if (numbers == Numbers::kAsTensors) {
        call->AddTensor(a.operand(k), true);
      } else {
        call->AddNumber(a.operand(k));
      }
      break;
    case Arg::Kind::kConstant:
      if (numbers == Numbers::kAsTensors) {
        call->AddTensor(NumberValue(b, arg), true);
      } else {
        call->AddOther(arg);
      }
      break;
    default:
      call->AddOther(arg);
  }
}

}  // namespace

Values EmitForeach(Builder& b, const Args& a) {
  const std::string_view name = a.call().row->name;
  const Lift* lift = FindLift(name);
  Check(lift != nullptr, name, ": expected an entry in the foreach table, got none");
  const OpRow& row = RowOf(name, lift->row);
  const int32_t count = ListLength(a);
  Values out;
  for (int32_t element = 0; element < count; ++element) {
    ElementCall call(row);
    for (size_t i = 0; i < a.call().args.size(); ++i) {
      const Arg& arg = a.call().args[i];
      // alpha, after the two tensors of add and sub, is a number whatever the overload does with its own.
      Numbers numbers = i >= 2 ? Numbers::kAsNumbers : lift->numbers;
      AddArgument(b, a, arg, element, numbers, &call);
    }
    if (lift->alpha) call.AddOther(ConstantOne());
    out.push_back(call.Emit(b));
  }
  return out;
}

Values EmitForeachUnary(Builder& b, const Args& a) {
  const std::string_view name = a.call().row->name;
  const OpRow& row = RowOf(name, name.substr(std::string_view("_foreach_").size()));
  Values out;
  for (const Value& x : a.tensors(0)) {
    ElementCall call(row);
    call.AddTensor(x, false);
    out.push_back(call.Emit(b));
  }
  return out;
}

// (self, ord, dtype?)
Values EmitForeachNorm(Builder& b, const Args& a) {
  const OpRow& row = RowOf(a.call().row->name, "linalg_vector_norm");
  Arg none, keepdim;
  keepdim.kind = Arg::Kind::kBool;
  keepdim.ints = {0};
  Values out;
  for (const Value& x : a.tensors(0)) {
    ElementCall call(row);
    call.AddTensor(x, false);
    AddArgument(b, a, a.call().args.at(1), 0, Numbers::kAsNumbers, &call);
    call.AddOther(none);
    call.AddOther(keepdim);
    call.AddOther(a.has(2) ? a.call().args[2] : none);
    out.push_back(call.Emit(b));
  }
  return out;
}

Values EmitForeachZero(Builder& b, const Args& a) {
  Values out;
  for (const Value& x : a.tensors(0)) out.push_back(b.Zero(x.dtype(), x.dims()));
  return out;
}

Values EmitForeachClone(Builder& b, const Args& a) { return a.tensors(0); }

// (self, src, non_blocking)
Values EmitForeachCopy(Builder& b, const Args& a) {
  Values self = a.tensors(0), source = a.tensors(1), out;
  Check(self.size() == source.size(), "_foreach_copy: expected lists of one length, got ", self.size(), " and ",
        source.size());
  for (size_t i = 0; i < self.size(); ++i) {
    out.push_back(b.BroadcastTo(Cast(b, source[i], self[i].dtype()), self[i].dims()));
  }
  return out;
}

}  // namespace torch_tpu
