// Powers: exact for integers, with programs of their own for the exponents that CPU's kernel treats by hand.
#include <optional>

#include "lowering/elementwise.h"

namespace torch_tpu {
namespace {

// Repeated squaring, wrapping as integers do. A negative exponent leaves only 1 and -1 as bases with a nonzero result.
Value IntegerPower(Builder& b, Value base, Value exponent) {
  const bool is_signed = IsSignedInt(base.dtype());
  Value zero = Full(b, base, 0), one = Full(b, base, 1);
  Value negative = is_signed ? b.Compare(exponent, zero, Direction::kLt) : b.ConstantInt(DType::kBool, 0, base.dims());
  Value odd = b.Compare(b.And(exponent, one), one, Direction::kEq);
  const Dims all = WrapDims({}, base.rank());
  Values done = b.While(
      {one, base, b.Select(negative, zero, exponent)},
      [&](const Values& v) -> Values {
        Value left = b.Compare(v[2], Full(b, v[2], 0), Direction::kNe);
        return {all.empty() ? left : b.Reduce(left, Builder::Reducer::kOr, all)};
      },
      [&](const Values& v) -> Values {
        Value unit = Full(b, v[2], 1);
        Value take = b.Compare(b.And(v[2], unit), unit, Direction::kEq);
        return {b.Select(take, b.Multiply(v[0], v[1]), v[0]), b.Multiply(v[1], v[1]), b.ShiftRightLogical(v[2], unit)};
      });
  if (!is_signed) return done[0];
  Value minus_one = Full(b, base, -1);
  Value inverse = b.Select(b.Compare(base, one, Direction::kEq), one,
                           b.Select(b.Compare(base, minus_one, Direction::kEq), b.Select(odd, minus_one, one), zero));
  return b.Select(negative, inverse, done[0]);
}

Value Pow(Builder& b, Value base, Value exponent) {
  if (IsInteger(base.dtype())) return IntegerPower(b, base, exponent);
  if (IsBool(base.dtype())) return b.Or(base, b.Not(exponent));
  return b.Power(base, exponent);
}

// Absent when the exponent has no program of its own.
Value KnownPower(Builder& b, Value x, double exponent) {
  auto inverse = [&](Value y) { return b.Divide(Full(b, y, 1), y); };
  if (exponent == 0) return Full(b, x, 1);
  if (exponent == 1) return x;
  if (IsBool(x.dtype())) return Value();
  if (exponent == 2) return b.Multiply(x, x);
  if (exponent == 3) return b.Multiply(b.Multiply(x, x), x);
  if (exponent == 4) return b.Multiply(b.Multiply(x, x), b.Multiply(x, x));
  if (IsInteger(x.dtype())) return Value();
  if (exponent == 0.5) return b.Sqrt(x);
  if (exponent == -0.5) return inverse(b.Sqrt(x));
  if (exponent == -1) return inverse(x);
  if (exponent == -2) return inverse(b.Multiply(x, x));
  return Value();
}

Values PowTensorScalar(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  if (std::optional<double> exponent = a.constant(1); exponent && !IsComplex(a.category(1))) {
    Value known = KnownPower(b, Operands(b, a, {0}, dtype)[0], *exponent);
    if (known) return {Cast(b, known, dtype)};
  }
  return SameBinary<Pow>(b, a);
}

constexpr OpRow kRows[] = {
    {"pow.Tensor_Tensor", SameBinary<Pow>},
    {"pow.Tensor_Scalar", PowTensorScalar, kPowIdentity},
    {"pow.Scalar", SameBinary<Pow>},
};

}  // namespace

std::span<const OpRow> PowerRows() { return kRows; }

}  // namespace torch_tpu
