// Exponentials, logarithms, trigonometric and special functions of one operand.
#include <cmath>
#include <numbers>

#include "lowering/elementwise.h"
#include "lowering/special_functions.h"

namespace torch_tpu {
namespace {

Value SqrtOf(Builder& b, Value x) { return b.Sqrt(x); }
Value RsqrtOf(Builder& b, Value x) { return b.Divide(Full(b, x, 1), b.Sqrt(x)); }
Value Reciprocal(Builder& b, Value x) { return b.Divide(Full(b, x, 1), x); }
Value ExpOf(Builder& b, Value x) { return b.Exp(x); }
Value Expm1Of(Builder& b, Value x) { return b.Expm1(x); }
Value LogOf(Builder& b, Value x) { return b.Log(x); }
Value Log1pOf(Builder& b, Value x) { return b.Log1p(x); }
Value SinOf(Builder& b, Value x) { return b.Sine(x); }
Value CosOf(Builder& b, Value x) { return b.Cosine(x); }
Value TanOf(Builder& b, Value x) { return b.Tan(x); }
Value TanhOf(Builder& b, Value x) { return b.Tanh(x); }

Value Exp2Of(Builder& b, Value x) { return IsComplex(x.dtype()) ? b.Exp(Mul(b, x, std::numbers::ln2)) : Exp2(b, x); }

// x = m 2^e with m in [sqrt(1/2), sqrt(2)): the logarithm to another base is exact where the result is a whole number
// of octaves.
Value LogBase(Builder& b, Value x, double octave_high, double octave_low, double scale) {
  if (IsComplex(x.dtype())) return Mul(b, b.Log(x), scale);
  const bool wide = x.dtype() == DType::kFloat64;
  const DType integer = wide ? DType::kInt64 : DType::kInt32;
  const int64_t mantissa = wide ? 52 : 23, bias = wide ? 1023 : 127;
  const double tiny = wide ? 0x1p-1022 : 0x1p-126, lift = wide ? 52 : 23;
  Value small = Less(b, x, tiny);
  Value lifted = b.Select(small, Mul(b, x, std::ldexp(1.0, static_cast<int>(lift))), x);
  Value bits = b.BitcastConvert(lifted, integer);
  // Adding the distance from sqrt(1/2) to 1 carries into the exponent exactly when the mantissa is past sqrt(2).
  const int64_t root = wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  const int64_t one = bias << mantissa;
  auto integers = [&](int64_t v) { return b.ConstantInt(integer, v, x.dims()); };
  Value shifted = b.Add(bits, integers(one - root));
  Value exponent = b.Subtract(b.ShiftRightArithmetic(shifted, integers(mantissa)), integers(bias));
  Value m_bits = b.Add(b.And(shifted, integers((int64_t{1} << mantissa) - 1)), integers(root));
  Value e = b.Convert(exponent, x.dtype());
  e = b.Select(small, AddC(b, e, -lift), e);
  Value log_m = Mul(b, b.Log(b.BitcastConvert(m_bits, x.dtype())), scale);
  Value result = b.Add(Mul(b, e, octave_high), b.Add(Mul(b, e, octave_low), log_m));
  Value plain = b.And(Greater(b, x, 0), Less(b, x, INFINITY));
  return b.Select(plain, result, b.Log(x));  // zero, negative, infinite, NaN
}

Value Log2Of(Builder& b, Value x) { return LogBase(b, x, 1.0, 0.0, std::numbers::log2e); }

Value Log10Of(Builder& b, Value x) {
  // log10(2) in two parts, the first with few enough bits that its product with an exponent is exact.
  const double high = x.dtype() == DType::kFloat32 || x.dtype() == DType::kComplex64 ? 0x1.344p-2 : 0x1.34413509p-2;
  return LogBase(b, x, high, 0.30102999566398119521 - high, std::numbers::log10e);
}

// ---- inverse and hyperbolic functions; complex ones by their textbook logarithms
Value ComplexLog(Builder& b, Value x) { return b.Log(x); }
Value TimesI(Builder& b, Value x) { return b.Complex(b.Negate(b.Imag(x)), b.Real(x)); }
Value TimesMinusI(Builder& b, Value x) { return b.Complex(b.Imag(x), b.Negate(b.Real(x))); }

Value AsinhOf(Builder& b, Value x) {
  if (IsComplex(x.dtype())) return ComplexLog(b, b.Add(x, b.Sqrt(AddC(b, b.Multiply(x, x), 1))));
  Value size = b.Abs(x);
  Value square = b.Multiply(size, size);
  Value root = b.Sqrt(AddC(b, square, 1));
  Value small = b.Log1p(b.Add(size, b.Divide(square, AddC(b, root, 1))));
  const double huge = x.dtype() == DType::kFloat64 ? 1e150 : 1e18;
  Value large = AddC(b, b.Log(size), std::numbers::ln2);
  Value result = b.Select(Greater(b, size, huge), large, small);
  return b.Select(SignBit(b, x), b.Negate(result), result);
}

Value AcoshOf(Builder& b, Value x) {
  if (IsComplex(x.dtype())) {
    return ComplexLog(b, b.Add(x, b.Multiply(b.Sqrt(AddC(b, x, 1)), b.Sqrt(AddC(b, x, -1)))));
  }
  Value t = AddC(b, x, -1);
  Value near = b.Log1p(b.Add(t, b.Sqrt(b.Multiply(t, AddC(b, t, 2)))));
  const double huge = x.dtype() == DType::kFloat64 ? 1e150 : 1e18;
  Value result = b.Select(Greater(b, x, huge), AddC(b, b.Log(x), std::numbers::ln2), near);
  return b.Select(Less(b, x, 1), Full(b, x, NAN), result);
}

Value AtanhOf(Builder& b, Value x) {
  if (IsComplex(x.dtype())) return Mul(b, b.Subtract(b.Log(AddC(b, x, 1)), b.Log(SubFrom(b, 1, x))), 0.5);
  return Mul(b, b.Subtract(b.Log1p(x), b.Log1p(b.Negate(x))), 0.5);
}

Value AsinOf(Builder& b, Value x) {
  if (IsComplex(x.dtype())) return TimesMinusI(b, AsinhOf(b, TimesI(b, x)));
  Value root = b.Sqrt(b.Multiply(SubFrom(b, 1, x), AddC(b, x, 1)));
  return b.Atan2(x, root);
}

Value AcosOf(Builder& b, Value x) {
  if (IsComplex(x.dtype())) return SubFrom(b, std::numbers::pi / 2, AsinOf(b, x));
  Value root = b.Sqrt(b.Multiply(SubFrom(b, 1, x), AddC(b, x, 1)));
  return b.Atan2(root, x);
}

Value AtanOf(Builder& b, Value x) {
  if (IsComplex(x.dtype())) return TimesMinusI(b, AtanhOf(b, TimesI(b, x)));
  return Atan(b, x);
}

// e^(|x|/2) twice, so that neither half overflows before the result does.
Value SinhOf(Builder& b, Value x) {
  if (IsComplex(x.dtype())) return Mul(b, b.Subtract(b.Exp(x), b.Exp(b.Negate(x))), 0.5);
  Value size = b.Abs(x);
  Value half = b.Exp(Mul(b, size, 0.5));
  Value large = b.Subtract(b.Multiply(Mul(b, half, 0.5), half), b.Divide(Full(b, x, 0.5), b.Multiply(half, half)));
  Value minus = b.Expm1(size);
  Value small = Mul(b, b.Add(minus, b.Divide(minus, AddC(b, minus, 1))), 0.5);
  Value result = b.Select(Less(b, size, 1), small, large);
  return b.Select(SignBit(b, x), b.Negate(result), result);
}

Value CoshOf(Builder& b, Value x) {
  if (IsComplex(x.dtype())) return Mul(b, b.Add(b.Exp(x), b.Exp(b.Negate(x))), 0.5);
  Value half = b.Exp(Mul(b, b.Abs(x), 0.5));
  return b.Add(b.Multiply(Mul(b, half, 0.5), half), b.Divide(Full(b, x, 0.5), b.Multiply(half, half)));
}

Value Sinc(Builder& b, Value x) {
  Value t = Mul(b, x, std::numbers::pi);
  return b.Select(Eq(b, x, 0), Full(b, x, 1), b.Divide(b.Sine(t), t));
}

Value Entr(Builder& b, Value x) {
  Value positive = b.Negate(b.Multiply(x, b.Log(x)));
  Value otherwise = b.Select(Eq(b, x, 0), Full(b, x, 0), Full(b, x, -INFINITY));
  return b.Select(IsNan(b, x), x, b.Select(Greater(b, x, 0), positive, otherwise));
}

// A negative eps means none, as in CPU's kernel.
Values Logit(Builder& b, const Args& a) {
  const DType dtype = FloatResult(a.tensor(0).dtype());
  Value x = ToCompute(b, Cast(b, a.tensor(0), dtype));
  if (a.has(1)) {
    Value low = FullLike(b, Number(b, a, 1, dtype), x);
    Value high = SubFrom(b, 1, low);
    Value bounded =
        b.Select(b.Compare(x, low, Direction::kLt), low, b.Select(b.Compare(x, high, Direction::kGt), high, x));
    x = b.Select(Less(b, low, 0), x, bounded);
  }
  return {Cast(b, b.Log(b.Divide(x, SubFrom(b, 1, x))), dtype)};
}

constexpr OpRow kRows[] = {
    {"sqrt", FloatUnary<SqrtOf>},     {"rsqrt", FloatUnary<RsqrtOf>},     {"reciprocal", FloatUnary<Reciprocal>},
    {"exp", FloatUnary<ExpOf>},       {"exp2", FloatUnary<Exp2Of>},       {"expm1", FloatUnary<Expm1Of>},
    {"log", FloatUnary<LogOf>},       {"log2", FloatUnary<Log2Of>},       {"log10", FloatUnary<Log10Of>},
    {"log1p", FloatUnary<Log1pOf>},   {"sin", FloatUnary<SinOf>},         {"cos", FloatUnary<CosOf>},
    {"tan", FloatUnary<TanOf>},       {"asin", FloatUnary<AsinOf>},       {"acos", FloatUnary<AcosOf>},
    {"atan", FloatUnary<AtanOf>},     {"sinh", FloatUnary<SinhOf>},       {"cosh", FloatUnary<CoshOf>},
    {"tanh", FloatUnary<TanhOf>},     {"asinh", FloatUnary<AsinhOf>},     {"acosh", FloatUnary<AcoshOf>},
    {"atanh", FloatUnary<AtanhOf>},   {"sigmoid", FloatUnary<Sigmoid>},   {"logit", Logit},
    {"sinc", FloatUnary<Sinc>},       {"special_entr", FloatUnary<Entr>}, {"erf", FloatUnary<Erf>},
    {"erfc", FloatUnary<Erfc>},       {"erfinv", FloatUnary<Erfinv>},     {"lgamma", FloatUnary<Lgamma>},
    {"digamma", FloatUnary<Digamma>},
};

}  // namespace

std::span<const OpRow> TranscendentalRows() { return kRows; }

}  // namespace torch_tpu
