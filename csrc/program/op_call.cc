#include "program/op_call.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "program/op_row.h"

namespace torch_tpu {
namespace {

std::string_view OpName(const OpCall& call) { return call.row ? call.row->name : "op"; }

std::string_view KindName(Arg::Kind kind) {
  switch (kind) {
    case Arg::Kind::kNone:
      return "none";
    case Arg::Kind::kTensor:
      return "a tensor";
    case Arg::Kind::kTensorList:
      return "a list of tensors";
    case Arg::Kind::kScalar:
      return "a number operand";
    case Arg::Kind::kConstant:
      return "a constant number";
    case Arg::Kind::kScalarList:
      return "a list of numbers";
    case Arg::Kind::kInt:
      return "an integer";
    case Arg::Kind::kBool:
      return "a bool";
    case Arg::Kind::kInts:
      return "a list of integers";
    case Arg::Kind::kFloats:
      return "a list of floats";
    case Arg::Kind::kString:
      return "a string";
    case Arg::Kind::kDType:
      return "an element type";
  }
  return "an unknown argument";
}

[[noreturn]] void WrongKind(const OpCall& call, size_t i, std::string_view expected) {
  Fail(Code::kInvalidArgument, OpName(call), ": expected ", expected, " as argument ", i, ", got ",
       KindName(call.args[i].kind));
}

bool IsNumber(Arg::Kind kind) { return kind == Arg::Kind::kScalar || kind == Arg::Kind::kConstant; }

// Integers of up to 32 bits are made from int32, others from int64, as x86 and so PyTorch's CPU kernels do it: what
// does not fit there, NaN included, becomes the lowest value. The low bits of that are the result.
DType TruncatesThrough(DType dtype) {
  return BitWidth(dtype) < 32 || dtype == DType::kInt32 ? DType::kInt32 : DType::kInt64;
}

int64_t Truncate(double value, DType dtype) {
  if (dtype == DType::kUInt64 && value >= 0x1p63 && value < 0x1p64) {
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  const bool narrow = TruncatesThrough(dtype) == DType::kInt32;
  const double whole = std::trunc(value), limit = narrow ? 0x1p31 : 0x1p63;
  if (!(whole >= -limit && whole < limit)) {
    return narrow ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
  }
  return static_cast<int64_t>(whole);
}

// The low bits, as a C++ conversion between integers keeps them.
int64_t Wrap(int64_t value, DType dtype) {
  const int shift = 64 - BitWidth(dtype);
  if (shift == 0) return value;
  const uint64_t high = static_cast<uint64_t>(value) << shift;
  return IsSignedInt(dtype) ? static_cast<int64_t>(high) >> shift : static_cast<int64_t>(high >> shift);
}

Value ConstantOf(Builder& b, const Arg& arg, DType dtype) {
  const double real = arg.floats.empty() ? 0.0 : arg.floats[0];
  const double imag = arg.floats.size() > 1 ? arg.floats[1] : 0.0;
  if (IsComplex(dtype)) return b.ConstantComplex(dtype, {real, imag});
  if (!arg.ints.empty()) {  // an exact integer beside the double
    if (IsInteger(dtype)) return b.ConstantInt(dtype, Wrap(arg.ints[0], dtype));
    return b.ConstantInt(dtype, arg.ints[0]);
  }
  if (IsBool(dtype)) return b.ConstantInt(dtype, real != 0 || imag != 0);
  if (IsInteger(dtype)) return b.ConstantInt(dtype, Wrap(Truncate(real, dtype), dtype));
  // PyTorch makes 8- and 16-bit floats from float32, so a double is rounded twice.
  if (BitWidth(dtype) < 32) return b.Constant(dtype, static_cast<float>(real));
  return b.Constant(dtype, real);
}

// A 0-d operand of a category type as `dtype`.
Value CastNumber(Builder& b, Value x, DType dtype) {
  if (x.dtype() == dtype || IsBool(dtype)) return b.Convert(x, dtype);
  if (IsComplex(x.dtype()) && !IsComplex(dtype)) x = b.Real(x);
  if (IsFloat(x.dtype()) && IsInteger(dtype)) {
    const DType wide = TruncatesThrough(dtype);
    const double limit = std::ldexp(1.0, BitWidth(wide) - 1);
    const auto compare = [&](const Value& v, double bound, Direction direction) {
      return b.Compare(v, b.Constant(v.dtype(), bound), direction);
    };
    // Before the fraction goes, -limit - 0.5 still fits int32.
    const Value whole = b.Select(compare(x, 0, Direction::kLt), b.Ceil(x), b.Floor(x));
    const Value fits = b.And(compare(whole, -limit, Direction::kGe), compare(whole, limit, Direction::kLt));
    const Value wrapped = b.Convert(b.Select(fits, b.Convert(whole, wide), b.MinOf(wide)), dtype);
    if (dtype != DType::kUInt64) return wrapped;
    const Value high = b.And(compare(x, 0x1p63, Direction::kGe), compare(x, 0x1p64, Direction::kLt));
    return b.Select(high, b.Convert(x, dtype), wrapped);
  }
  if (IsFloat(dtype) && BitWidth(dtype) < 32 && !IsBool(x.dtype())) x = b.Convert(x, DType::kFloat32);
  return b.Convert(x, dtype);
}

}  // namespace

const Arg& Args::arg(size_t i) const {
  Check(i < call_.args.size(), OpName(call_), ": expected at least ", i + 1, " arguments, got ", call_.args.size());
  return call_.args[i];
}

Value Args::tensor(size_t i) const {
  const Value value = tensor_or_absent(i);
  Check(static_cast<bool>(value), OpName(call_), ": expected a tensor as argument ", i, ", got none");
  return value;
}

Value Args::tensor_or_absent(size_t i) const {
  if (!has(i)) return {};
  const Arg& a = arg(i);
  if (a.kind != Arg::Kind::kTensor && a.kind != Arg::Kind::kScalar) WrongKind(call_, i, "a tensor");
  return operands_.at(a.first);
}

bool Args::wrapped(size_t i) const {
  if (!has(i)) return false;
  const Arg& a = arg(i);
  if (IsNumber(a.kind)) return true;
  if (a.kind != Arg::Kind::kTensor) WrongKind(call_, i, "a tensor");
  return call_.operands.at(a.first).wrapped;
}

Values Args::tensors(size_t i) const {
  if (!has(i)) return {};
  const Arg& a = arg(i);
  if (a.kind == Arg::Kind::kTensor) return {operands_.at(a.first)};
  if (a.kind != Arg::Kind::kTensorList) WrongKind(call_, i, "a list of tensors");
  Values values;
  values.reserve(a.count);
  for (int32_t k = 0; k < a.count; ++k) values.push_back(operands_.at(a.first + k));
  return values;
}

Value Args::scalar(Builder& b, size_t i, DType dtype) const {
  const Arg& a = arg(i);
  switch (a.kind) {
    case Arg::Kind::kConstant:
      return ConstantOf(b, a, dtype);
    case Arg::Kind::kInt:
    case Arg::Kind::kBool:
      return b.ConstantInt(dtype, IsInteger(dtype) ? Wrap(a.ints.at(0), dtype) : a.ints.at(0));
    case Arg::Kind::kScalar:
    case Arg::Kind::kTensor: {
      const Value value = tensor(i);
      Check(value.rank() == 0, OpName(call_), ": expected a 0-d value as argument ", i, ", got ",
            value.type().ToString());
      return CastNumber(b, value, dtype);
    }
    default:
      WrongKind(call_, i, "a number");
  }
}

std::vector<Value> Args::scalars(Builder& b, size_t i, DType dtype) const {
  if (!has(i)) return {};
  const Arg& a = arg(i);
  if (a.kind != Arg::Kind::kScalarList) WrongKind(call_, i, "a list of numbers");
  std::vector<Value> values;
  values.reserve(a.count);
  for (int32_t k = 0; k < a.count; ++k) {
    const Value& value = operands_.at(a.first + k);
    Check(static_cast<bool>(value), OpName(call_), ": expected a number in argument ", i, ", got none");
    values.push_back(CastNumber(b, value, dtype));
  }
  return values;
}

DType Args::category(size_t i) const {
  const Arg& a = arg(i);
  switch (a.kind) {
    case Arg::Kind::kConstant:
      return a.dtype;
    case Arg::Kind::kScalar:
      return a.dtype != DType::kInvalid ? a.dtype : tensor(i).dtype();
    case Arg::Kind::kInt:
      return DType::kInt64;
    case Arg::Kind::kBool:
      return DType::kBool;
    default:
      WrongKind(call_, i, "a number");
  }
}

std::optional<double> Args::constant(size_t i) const {
  if (!has(i)) return std::nullopt;
  const Arg& a = arg(i);
  if (a.kind == Arg::Kind::kInt || a.kind == Arg::Kind::kBool) return static_cast<double>(a.ints.at(0));
  if (a.kind != Arg::Kind::kConstant) return std::nullopt;
  if (a.floats.size() > 1 && a.floats[1] != 0) return std::nullopt;  // not a real number
  if (!a.floats.empty()) return a.floats[0];
  return static_cast<double>(a.ints.at(0));
}

int64_t Args::integer(size_t i) const {
  const Arg& a = arg(i);
  if (a.kind == Arg::Kind::kConstant && !IsComplex(a.dtype)) {
    const double value = *constant(i);
    if (!a.ints.empty()) return a.ints[0];
    Check(value == std::trunc(value) && std::fabs(value) < 0x1p63, OpName(call_), ": expected an integer as argument ",
          i, ", got ", value);
    return static_cast<int64_t>(value);
  }
  if (a.kind != Arg::Kind::kInt && a.kind != Arg::Kind::kBool) WrongKind(call_, i, "an integer");
  return a.ints.at(0);
}

int64_t Args::integer_or(size_t i, int64_t otherwise) const { return has(i) ? integer(i) : otherwise; }

bool Args::flag(size_t i) const { return has(i) && integer(i) != 0; }

const Dims& Args::ints(size_t i) const {
  const Arg& a = arg(i);
  if (a.kind != Arg::Kind::kInts && a.kind != Arg::Kind::kInt) WrongKind(call_, i, "a list of integers");
  return a.ints;
}

Dims Args::ints_or(size_t i, Dims otherwise) const { return has(i) ? ints(i) : otherwise; }

const std::vector<double>& Args::floats(size_t i) const {
  const Arg& a = arg(i);
  if (a.kind != Arg::Kind::kFloats) WrongKind(call_, i, "a list of floats");
  return a.floats;
}

DType Args::dtype_or(size_t i, DType otherwise) const {
  if (!has(i)) return otherwise;
  const Arg& a = arg(i);
  if (a.kind != Arg::Kind::kDType) WrongKind(call_, i, "an element type");
  return a.dtype;
}

std::string Args::text(size_t i) const {
  if (!has(i)) return "";
  const Arg& a = arg(i);
  if (a.kind != Arg::Kind::kString) WrongKind(call_, i, "a string");
  return a.text;
}

}  // namespace torch_tpu
