// Two operands: arithmetic, division and its remainders, extremes, and functions of two numbers.
#include <cmath>
#include <numbers>
#include <string>

#include "base/error.h"
#include "lowering/elementwise.h"

namespace torch_tpu {
namespace {

// y times argument 2 (alpha), which is one most of the time.
Value TimesAlpha(Builder& b, const Args& a, Value y, DType dtype) {
  if (!a.has(2) || a.constant(2) == 1.0) return y;
  return b.Multiply(y, FullLike(b, Number(b, a, 2, dtype), y));
}

template <int kSign, bool kReversed>
Values AddOrSub(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  Values v = Operands(b, a, {0, 1}, dtype);
  Value x = kReversed ? v[1] : v[0], y = TimesAlpha(b, a, kReversed ? v[0] : v[1], dtype);
  Check(kSign > 0 || !IsBool(dtype), "sub: expected numbers, got bool (use ^ or logical_xor)");
  return {Cast(b, kSign > 0 ? b.Add(x, y) : b.Subtract(x, y), dtype)};
}

Values Multiplied(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  Values v = Operands(b, a, {0, 1}, dtype, true);
  return {Cast(b, b.Multiply(v[0], v[1]), dtype)};
}

Values Divided(Builder& b, const Args& a) {
  const DType dtype = FloatResult(ResultType(a, {0, 1}));
  Values v = Operands(b, a, {0, 1}, dtype, true);
  return {Cast(b, b.Divide(v[0], v[1]), dtype)};
}

Value Differ(Builder& b, Value x, Value y) { return b.Compare(x, y, Direction::kNe); }

// Whether a nonzero remainder has the other sign than the divisor: where truncation and floor differ.
Value NeedsFloor(Builder& b, Value remainder, Value divisor) {
  Value zero = Full(b, divisor, 0);
  return b.And(Differ(b, remainder, zero),
               Differ(b, b.Compare(remainder, zero, Direction::kLt), b.Compare(divisor, zero, Direction::kLt)));
}

// Python's //. Through the remainder, as x / y may round up to the next whole number.
Value FloorDivide(Builder& b, Value x, Value y) {
  if (IsUnsignedInt(x.dtype())) return b.Divide(x, y);
  Value remainder = b.Remainder(x, y);
  Value adjust = NeedsFloor(b, remainder, y);
  if (!IsFloat(x.dtype())) {
    Value quotient = b.Divide(x, y);
    return b.Select(adjust, AddC(b, quotient, -1), quotient);
  }
  Value plain = b.Divide(x, y);
  Value quotient = b.Divide(b.Subtract(x, remainder), y);
  quotient = b.Select(adjust, AddC(b, quotient, -1), quotient);
  Value floor = b.Floor(quotient);
  floor = b.Select(Greater(b, b.Subtract(quotient, floor), 0.5), AddC(b, floor, 1), floor);
  Value zero = Full(b, x, 0);
  Value signed_zero = b.Select(SignBit(b, plain), b.Negate(zero), zero);
  Value result = b.Select(Eq(b, quotient, 0), signed_zero, floor);
  return b.Select(Eq(b, y, 0), plain, result);
}

// CPU rounds the quotient before it truncates, which a short float shows.
Values TruncDivided(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  Values v = Operands(b, a, {0, 1}, dtype);
  Value quotient = ToCompute(b, Cast(b, b.Divide(v[0], v[1]), dtype));
  return {Cast(b, Trunc(b, quotient), dtype)};
}

// Sign of the divisor.
Value Modulo(Builder& b, Value x, Value y) {
  Value remainder = b.Remainder(x, y);
  if (IsUnsignedInt(x.dtype())) return remainder;
  return b.Select(NeedsFloor(b, remainder, y), b.Add(remainder, y), remainder);
}

Value Fmod(Builder& b, Value x, Value y) { return b.Remainder(x, y); }

Values DivMode(Builder& b, const Args& a) {
  const std::string mode = a.text(2);
  if (mode.empty()) return Divided(b, a);
  if (mode == "trunc") return TruncDivided(b, a);
  Check(mode == "floor", "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode, "'");
  return SameBinary<FloorDivide>(b, a);
}

Value Fmax(Builder& b, Value x, Value y) {
  if (!IsFloat(x.dtype())) return b.Maximum(x, y);
  return b.Select(IsNan(b, x), y, b.Select(IsNan(b, y), x, MaxNan(b, x, y)));
}

Value Fmin(Builder& b, Value x, Value y) {
  if (!IsFloat(x.dtype())) return b.Minimum(x, y);
  return b.Select(IsNan(b, x), y, b.Select(IsNan(b, y), x, MinNan(b, x, y)));
}

Value AngleOf(Builder& b, Value x, Value y) { return b.Atan2(x, y); }

// Scaled by the larger leg, so that no square overflows.
Value Hypot(Builder& b, Value x, Value y) {
  Value u = b.Abs(x), v = b.Abs(y);
  Value infinite = b.Or(Eq(b, u, INFINITY), Eq(b, v, INFINITY));
  Value most = MaxNan(b, u, v), least = MinNan(b, u, v);
  Value zero = Eq(b, most, 0);
  Value ratio = b.Divide(least, b.Select(zero, Full(b, x, 1), most));
  Value result = b.Multiply(most, b.Sqrt(AddC(b, b.Multiply(ratio, ratio), 1)));
  return b.Select(infinite, Full(b, x, INFINITY), b.Select(zero, Full(b, x, 0), result));
}

Value CopySign(Builder& b, Value x, Value y) {
  Value size = b.Abs(x);
  return b.Select(SignBit(b, y), b.Negate(size), size);
}

Value Heaviside(Builder& b, Value x, Value at_zero) {
  Value zero = Full(b, x, 0);
  Value step = b.Select(b.Compare(x, zero, Direction::kGt), Full(b, x, 1), zero);
  return b.Select(b.Compare(x, zero, Direction::kEq), at_zero, step);
}

Value XlogY(Builder& b, Value x, Value y) {
  Value product = b.Select(Eq(b, x, 0), Full(b, x, 0), b.Multiply(x, b.Log(y)));
  return b.Select(IsNan(b, y), y, product);
}

Value Xlog1pY(Builder& b, Value x, Value y) {
  Value product = b.Select(Eq(b, x, 0), Full(b, x, 0), b.Multiply(x, b.Log1p(y)));
  return b.Select(IsNan(b, y), y, product);
}

Value LogAddExp2(Builder& b, Value x, Value y) {
  Value most = MaxNan(b, x, y);
  Value gap = b.Negate(b.Abs(b.Subtract(x, y)));
  Value sum = b.Add(most, Mul(b, b.Log1p(Exp2(b, gap)), std::numbers::log2e));
  Value same_infinity = b.And(b.Compare(x, y, Direction::kEq), Eq(b, b.Abs(x), INFINITY));
  return b.Select(same_infinity, x, sum);
}

Value Gcd(Builder& b, Value x, Value y) {
  auto size = [&](Value v) { return IsUnsignedInt(v.dtype()) ? v : b.Abs(v); };
  Dims all = WrapDims({}, x.rank());
  Values done = b.While(
      {size(x), size(y)},
      [&](const Values& v) -> Values {
        Value left = Differ(b, v[1], Full(b, v[1], 0));
        return {all.empty() ? left : b.Reduce(left, Builder::Reducer::kOr, all)};
      },
      [&](const Values& v) -> Values {
        Value zero = Eq(b, v[1], 0);
        Value divisor = b.Select(zero, Full(b, v[1], 1), v[1]);
        return {b.Select(zero, v[0], v[1]), b.Select(zero, v[1], b.Remainder(v[0], divisor))};
      });
  return size(done[0]);
}

Value Lcm(Builder& b, Value x, Value y) {
  Value divisor = Gcd(b, x, y);
  Value zero = Eq(b, divisor, 0);
  Value quotient = b.Divide(x, b.Select(zero, Full(b, x, 1), divisor));
  // C++ takes the absolute value of an int: before narrow types wrap, but after int32 and int64 do.
  Value product = IsUnsignedInt(x.dtype())   ? b.Multiply(quotient, y)
                  : BitWidth(x.dtype()) < 32 ? b.Multiply(b.Abs(quotient), b.Abs(y))
                                             : b.Abs(b.Multiply(quotient, y));
  return b.Select(zero, Full(b, x, 0), product);
}

// Neighbours of a float are neighbours as integers of sign and magnitude.
Values NextAfter(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  Values v = Promoted(b, a, {0, 1}, dtype);
  const int bits = BitWidth(dtype);
  const DType integer = bits == 64 ? DType::kInt64 : bits == 32 ? DType::kInt32 : DType::kInt16;
  Value x = v[0], y = v[1];
  Value i = b.BitcastConvert(x, integer);
  Value away = b.Compare(b.Compare(y, x, Direction::kGt), Greater(b, x, 0), Direction::kEq);
  Value step = b.Select(away, Full(b, i, 1), Full(b, i, -1));
  Value moved = b.BitcastConvert(b.Add(i, step), dtype);
  Value least = b.BitcastConvert(Full(b, i, 1), dtype);
  Value from_zero = b.Select(Greater(b, y, 0), least, b.Negate(least));
  Value result = b.Select(Eq(b, x, 0), from_zero, moved);
  result = b.Select(b.Compare(x, y, Direction::kEq), y, result);
  return {b.Select(b.Or(IsNan(b, x), IsNan(b, y)), b.Add(x, y), result)};
}

constexpr OpRow kRows[] = {
    {"add.Tensor", AddOrSub<1, false>},
    {"add.Scalar", AddOrSub<1, false>},
    {"sub.Tensor", AddOrSub<-1, false>},
    {"sub.Scalar", AddOrSub<-1, false>},
    {"rsub.Tensor", AddOrSub<-1, true>},
    {"rsub.Scalar", AddOrSub<-1, true>},
    {"mul.Tensor", Multiplied},
    {"mul.Scalar", Multiplied},
    {"div.Tensor", Divided},
    {"div.Scalar", Divided},
    {"div.Tensor_mode", DivMode},
    {"div.Scalar_mode", DivMode},
    {"floor_divide", SameBinary<FloorDivide>},
    {"floor_divide.Scalar", SameBinary<FloorDivide>},
    {"remainder.Tensor", SameBinary<Modulo>},
    {"remainder.Scalar", SameBinary<Modulo>},
    {"remainder.Scalar_Tensor", SameBinary<Modulo>},
    {"fmod.Tensor", SameBinary<Fmod>},
    {"fmod.Scalar", SameBinary<Fmod>},
    {"maximum", SameBinary<MaxNan>},
    {"minimum", SameBinary<MinNan>},
    {"fmax", SameBinary<Fmax>},
    {"fmin", SameBinary<Fmin>},
    {"atan2", FloatBinary<AngleOf>},
    {"hypot", SameBinary<Hypot>},
    {"copysign.Tensor", FloatBinary<CopySign>},
    {"copysign.Scalar", FloatBinary<CopySign>},
    {"heaviside", SameBinary<Heaviside>},
    {"xlogy.Tensor", FloatBinary<XlogY>},
    {"xlogy.Scalar_Other", FloatBinary<XlogY>},
    {"xlogy.Scalar_Self", FloatBinary<XlogY>},
    {"special_xlog1py", FloatBinary<Xlog1pY>},
    {"special_xlog1py.other_scalar", FloatBinary<Xlog1pY>},
    {"special_xlog1py.self_scalar", FloatBinary<Xlog1pY>},
    {"logaddexp", FloatBinary<LogAddExp>},
    {"logaddexp2", FloatBinary<LogAddExp2>},
    {"gcd", SameBinary<Gcd>},
    {"lcm", SameBinary<Lcm>},
    {"nextafter", NextAfter},
};

}  // namespace

std::span<const OpRow> BinaryRows() { return kRows; }

}  // namespace torch_tpu
