// One operand, no transcendental function: signs, rounding, tests.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "lowering/elementwise.h"

namespace torch_tpu {
namespace {

Value Neg(Builder& b, Value x) {
  Check(!IsBool(x.dtype()), "neg: expected numbers, got bool (use ~ or logical_not)");
  return IsUnsignedInt(x.dtype()) ? b.Subtract(Full(b, x, 0), x) : b.Negate(x);
}

Values AbsRow(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  Check(!IsBool(x.dtype()), "abs: expected numbers, got bool");
  if (IsUnsignedInt(x.dtype())) return {x};
  return {b.Abs(x)};
}

// 0 for NaN, as on CPU.
Value SignOf(Builder& b, Value x) {
  if (IsBool(x.dtype())) return x;
  Value zero = Full(b, x, 0), one = Full(b, x, 1);
  Value positive = b.Select(b.Compare(x, zero, Direction::kGt), one, zero);
  if (IsUnsignedInt(x.dtype())) return positive;
  return b.Select(b.Compare(x, zero, Direction::kLt), Full(b, x, -1), positive);
}

Value Sgn(Builder& b, Value x) {
  if (!IsComplex(x.dtype())) return SignOf(b, x);
  Value size = b.Abs(x);
  Value zero = Eq(b, size, 0);
  Value safe = b.Select(zero, Full(b, size, 1), size);
  return b.Select(zero, Full(b, x, 0), b.Complex(b.Divide(b.Real(x), safe), b.Divide(b.Imag(x), safe)));
}

Value CeilOf(Builder& b, Value x) { return IsFloat(x.dtype()) ? b.Ceil(x) : x; }
Value FloorOf(Builder& b, Value x) { return IsFloat(x.dtype()) ? b.Floor(x) : x; }
Value RoundOf(Builder& b, Value x) { return IsFloat(x.dtype()) ? b.RoundNearestEven(x) : x; }
Value Frac(Builder& b, Value x) { return b.Subtract(x, Trunc(b, x)); }

Values RoundDecimals(Builder& b, const Args& a) {
  const DType dtype = a.tensor(0).dtype();
  const int64_t decimals = a.integer_or(1, 0);
  Value x = ToCompute(b, a.tensor(0));
  if (decimals == 0) return {Cast(b, RoundOf(b, x), dtype)};
  Check(IsFloat(dtype), "round: expected a floating point tensor when decimals != 0, got ", Name(dtype));
  Value scale = Full(b, x, std::pow(10.0, std::abs(decimals)));
  if (decimals > 0) return {Cast(b, b.Divide(b.RoundNearestEven(b.Multiply(x, scale)), scale), dtype)};
  return {Cast(b, b.Multiply(b.RoundNearestEven(b.Divide(x, scale)), scale), dtype)};
}

Values IsNanRow(Builder& b, const Args& a) { return {IsNan(b, a.tensor(0))}; }

Value IsInfinite(Builder& b, Value x) {
  if (IsComplex(x.dtype())) return b.Or(IsInfinite(b, b.Real(x)), IsInfinite(b, b.Imag(x)));
  if (!IsFloat(x.dtype())) return b.ConstantInt(DType::kBool, 0, x.dims());
  return Eq(b, b.Abs(ToCompute(b, x)), INFINITY);
}

Values IsInfRow(Builder& b, const Args& a) { return {IsInfinite(b, a.tensor(0))}; }

template <int kSign>
Values IsSignedInf(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  if (!IsFloat(x.dtype())) return {b.ConstantInt(DType::kBool, 0, x.dims())};
  return {Eq(b, ToCompute(b, x), kSign * INFINITY)};
}

Values SignBitRow(Builder& b, const Args& a) { return {SignBit(b, a.tensor(0))}; }

double LargestFinite(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 65504.0;
    case DType::kBFloat16:
      return std::ldexp(255.0, 120);
    case DType::kFloat64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

Value NanToNumPart(Builder& b, const Args& a, Value part) {
  Value x = ToCompute(b, part);
  const double most = LargestFinite(part.dtype());
  auto number = [&](size_t i, double otherwise) { return FullLike(b, Number(b, a, i, x.dtype(), otherwise), x); };
  Value y = b.Select(IsNan(b, x), number(1, 0.0), x);
  y = b.Select(Eq(b, x, INFINITY), number(2, most), y);
  y = b.Select(Eq(b, x, -INFINITY), number(3, -most), y);
  return Cast(b, y, part.dtype());
}

Values NanToNum(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  if (IsComplex(x.dtype())) return {b.Complex(NanToNumPart(b, a, b.Real(x)), NanToNumPart(b, a, b.Imag(x)))};
  if (!IsFloat(x.dtype())) return {x};
  return {NanToNumPart(b, a, x)};
}

// The value does not depend on self, only its type does.
Values Fill(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  return {
      b.BroadcastTo(a.kind(1) == Arg::Kind::kTensor ? Cast(b, a.tensor(1), self.dtype()) : a.scalar(b, 1, self.dtype()),
                    self.dims())};
}

Values ZeroRow(Builder& b, const Args& a) { return {b.Zero(a.tensor(0).dtype(), a.tensor(0).dims())}; }

constexpr OpRow kRows[] = {
    {"neg", SameUnary<Neg>},
    {"abs", AbsRow},
    {"sign", SameUnary<SignOf>},
    {"sgn", SameUnary<Sgn>},
    {"ceil", SameUnary<CeilOf>},
    {"floor", SameUnary<FloorOf>},
    {"round", SameUnary<RoundOf>},
    {"round.decimals", RoundDecimals},
    {"trunc", SameUnary<Trunc>},
    {"frac", SameUnary<Frac>},
    {"isnan", IsNanRow},
    {"isinf", IsInfRow},
    {"isposinf", IsSignedInf<1>},
    {"isneginf", IsSignedInf<-1>},
    {"signbit", SignBitRow},
    {"nan_to_num", NanToNum},
    {"fill.Scalar", Fill, kIdempotent},
    {"fill.Tensor", Fill, kIdempotent},
    {"zero", ZeroRow, kIdempotent},
};

}  // namespace

std::span<const OpRow> UnaryRows() { return kRows; }

}  // namespace torch_tpu
