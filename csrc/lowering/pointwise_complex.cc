// Making and taking apart complex numbers.
#include <numbers>

#include "lowering/elementwise.h"

namespace torch_tpu {
namespace {

Values ConjPhysical(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  if (!IsComplex(x.dtype())) return {x};
  return {b.Complex(b.Real(x), b.Negate(b.Imag(x)))};
}

// Of real numbers: 0 or pi, and NaN stays.
Values Angle(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  if (IsComplex(x.dtype())) return {b.Atan2(b.Imag(x), b.Real(x))};
  const DType dtype = FloatResult(x.dtype());
  Value y = ToCompute(b, Cast(b, x, dtype));
  Value angle = b.Select(Less(b, y, 0), Full(b, y, std::numbers::pi), Full(b, y, 0));
  return {Cast(b, b.Select(IsNan(b, y), y, angle), dtype)};
}

Values Polar(Builder& b, const Args& a) {
  Values v = Promoted(b, a, {0, 1});
  return {b.Complex(b.Multiply(v[0], b.Cosine(v[1])), b.Multiply(v[0], b.Sine(v[1])))};
}

Values MakeComplex(Builder& b, const Args& a) {
  Values v = Operands(b, a, {0, 1}, ResultType(a, {0, 1}));
  return {b.Complex(v[0], v[1])};
}

constexpr OpRow kRows[] = {
    {"_conj_physical", ConjPhysical},
    {"angle", Angle},
    {"polar", Polar},
    {"complex", MakeComplex},
};

}  // namespace

std::span<const OpRow> ComplexRows() { return kRows; }

}  // namespace torch_tpu
