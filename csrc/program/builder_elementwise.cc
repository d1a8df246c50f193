// Elementwise ops: operands of one type, no broadcasting.
#include "program/builder_impl.h"

namespace torch_tpu {

Value Builder::Impl::Unary(std::string_view op, const Value& x, uint32_t kinds) {
  Use(op, {x});
  ExpectKind(op, x, kinds);
  return Emit(op, {x}, x.type());
}

Value Builder::Impl::Binary(std::string_view op, const Value& a, const Value& b, uint32_t kinds) {
  Use(op, {a, b});
  ExpectSameType(op, a, b);
  ExpectKind(op, a, kinds);
  return Emit(op, {a, b}, a.type());
}

// --- one operand

Value Builder::Abs(Value x) {
  impl_->Use("abs", {x});
  if (IsUnsignedInt(x.dtype())) return x;
  impl_->ExpectKind("abs", x, kSignedKind | kInexactKinds);
  return impl_->Emit("abs", {x}, {RealOf(x.dtype()), x.dims()});
}

Value Builder::Negate(Value x) { return impl_->Unary("negate", x, kNumberKinds); }
Value Builder::Sign(Value x) { return impl_->Unary("sign", x, kSignedKind | kInexactKinds); }
Value Builder::Exp(Value x) { return impl_->Unary("exponential", x, kInexactKinds); }
Value Builder::Expm1(Value x) { return impl_->Unary("exponential_minus_one", x, kInexactKinds); }
Value Builder::Log(Value x) { return impl_->Unary("log", x, kInexactKinds); }
Value Builder::Log1p(Value x) { return impl_->Unary("log_plus_one", x, kInexactKinds); }
Value Builder::Sqrt(Value x) { return impl_->Unary("sqrt", x, kInexactKinds); }
Value Builder::Rsqrt(Value x) { return impl_->Unary("rsqrt", x, kInexactKinds); }
Value Builder::Cbrt(Value x) { return impl_->Unary("cbrt", x, kFloatKind); }
Value Builder::Logistic(Value x) { return impl_->Unary("logistic", x, kInexactKinds); }
Value Builder::Sine(Value x) { return impl_->Unary("sine", x, kInexactKinds); }
Value Builder::Cosine(Value x) { return impl_->Unary("cosine", x, kInexactKinds); }
Value Builder::Tan(Value x) { return impl_->Unary("tan", x, kInexactKinds); }
Value Builder::Tanh(Value x) { return impl_->Unary("tanh", x, kInexactKinds); }
Value Builder::Ceil(Value x) { return impl_->Unary("ceil", x, kFloatKind); }
Value Builder::Floor(Value x) { return impl_->Unary("floor", x, kFloatKind); }
Value Builder::RoundNearestEven(Value x) { return impl_->Unary("round_nearest_even", x, kFloatKind); }
Value Builder::RoundNearestAfz(Value x) { return impl_->Unary("round_nearest_afz", x, kFloatKind); }
Value Builder::Not(Value x) { return impl_->Unary("not", x, kLogicKinds); }
Value Builder::Popcnt(Value x) { return impl_->Unary("popcnt", x, kIntegerKinds); }
Value Builder::CountLeadingZeros(Value x) { return impl_->Unary("count_leading_zeros", x, kIntegerKinds); }

Value Builder::IsFinite(Value x) {
  impl_->Use("is_finite", {x});
  impl_->ExpectKind("is_finite", x, kFloatKind);
  return impl_->Emit("is_finite", {x}, {DType::kBool, x.dims()});
}

Value Builder::Real(Value x) {
  impl_->Use("real", {x});
  if (IsFloat(x.dtype())) return x;
  impl_->ExpectKind("real", x, kInexactKinds);
  return impl_->Emit("real", {x}, {RealOf(x.dtype()), x.dims()});
}

Value Builder::Imag(Value x) {
  impl_->Use("imag", {x});
  if (IsFloat(x.dtype())) return Zero(x.dtype(), x.dims());
  impl_->ExpectKind("imag", x, kInexactKinds);
  return impl_->Emit("imag", {x}, {RealOf(x.dtype()), x.dims()});
}

Value Builder::ReducePrecision(Value x, int exponent_bits, int mantissa_bits) {
  impl_->Use("reduce_precision", {x});
  impl_->ExpectKind("reduce_precision", x, kFloatKind);
  Check(exponent_bits >= 1 && mantissa_bits >= 0,
        "reduce_precision: expected exponent bits of 1 or more and mantissa bits "
        "of 0 or more, got ",
        exponent_bits, " and ", mantissa_bits);
  return impl_->Emit("reduce_precision", {x}, x.type(),
                     Cat("exponent_bits = ", exponent_bits, " : i32, mantissa_bits = ", mantissa_bits, " : i32"));
}

// --- two operands

Value Builder::Add(Value a, Value b) { return impl_->Binary("add", a, b, kAllKinds); }
Value Builder::Subtract(Value a, Value b) { return impl_->Binary("subtract", a, b, kNumberKinds); }
Value Builder::Multiply(Value a, Value b) { return impl_->Binary("multiply", a, b, kAllKinds); }
Value Builder::Divide(Value a, Value b) { return impl_->Binary("divide", a, b, kNumberKinds); }
Value Builder::Remainder(Value a, Value b) { return impl_->Binary("remainder", a, b, kIntegerKinds | kFloatKind); }
Value Builder::Maximum(Value a, Value b) { return impl_->Binary("maximum", a, b, kRealKinds); }
Value Builder::Minimum(Value a, Value b) { return impl_->Binary("minimum", a, b, kRealKinds); }
Value Builder::Power(Value a, Value b) { return impl_->Binary("power", a, b, kNumberKinds); }
Value Builder::Atan2(Value a, Value b) { return impl_->Binary("atan2", a, b, kInexactKinds); }
Value Builder::And(Value a, Value b) { return impl_->Binary("and", a, b, kLogicKinds); }
Value Builder::Or(Value a, Value b) { return impl_->Binary("or", a, b, kLogicKinds); }
Value Builder::Xor(Value a, Value b) { return impl_->Binary("xor", a, b, kLogicKinds); }
Value Builder::ShiftLeft(Value a, Value b) { return impl_->Binary("shift_left", a, b, kIntegerKinds); }
Value Builder::ShiftRightArithmetic(Value a, Value b) {
  return impl_->Binary("shift_right_arithmetic", a, b, kIntegerKinds);
}
Value Builder::ShiftRightLogical(Value a, Value b) { return impl_->Binary("shift_right_logical", a, b, kIntegerKinds); }

Value Builder::Complex(Value real, Value imag) {
  impl_->Use("complex", {real, imag});
  impl_->ExpectSameType("complex", real, imag);
  Check(real.dtype() == DType::kFloat32 || real.dtype() == DType::kFloat64, "complex: expected f32 or f64, got ",
        real.type().ToString());
  return impl_->Emit("complex", {real, imag}, {ComplexOf(real.dtype()), real.dims()});
}

namespace {

std::string_view DirectionName(Direction direction) {
  switch (direction) {
    case Direction::kEq:
      return "EQ";
    case Direction::kNe:
      return "NE";
    case Direction::kLt:
      return "LT";
    case Direction::kLe:
      return "LE";
    case Direction::kGt:
      return "GT";
    case Direction::kGe:
      return "GE";
  }
  return "";
}

std::string CompareAttributes(Direction direction, std::string_view type) {
  return Cat("comparison_direction = #stablehlo<comparison_direction ", DirectionName(direction),
             ">, compare_type = #stablehlo<comparison_type ", type, ">");
}

}  // namespace

Value Builder::Compare(Value a, Value b, Direction direction) {
  impl_->Use("compare", {a, b});
  impl_->ExpectSameType("compare", a, b);
  const bool equality = direction == Direction::kEq || direction == Direction::kNe;
  impl_->ExpectKind("compare", a, equality ? kAllKinds : kRealKinds);
  const std::string_view type = IsSignedInt(a.dtype())                          ? "SIGNED"
                                : IsUnsignedInt(a.dtype()) || IsBool(a.dtype()) ? "UNSIGNED"
                                                                                : "FLOAT";
  return impl_->Emit("compare", {a, b}, {DType::kBool, a.dims()}, CompareAttributes(direction, type));
}

Value Builder::CompareTotalOrder(Value a, Value b, Direction direction) {
  impl_->Use("compare", {a, b});
  impl_->ExpectSameType("compare", a, b);
  impl_->ExpectKind("compare", a, kFloatKind);
  return impl_->Emit("compare", {a, b}, {DType::kBool, a.dims()}, CompareAttributes(direction, "TOTALORDER"));
}

// --- others

Value Builder::Select(Value condition, Value on_true, Value on_false) {
  impl_->Use("select", {condition, on_true, on_false});
  impl_->ExpectSameType("select", on_true, on_false);
  impl_->ExpectKind("select", condition, kBoolKind);
  Check(condition.rank() == 0 || condition.dims() == on_true.dims(), "select: expected a condition with dims [] or ",
        ToString(on_true.dims()), ", got ", ToString(condition.dims()));
  return impl_->Emit("select", {condition, on_true, on_false}, on_true.type());
}

Value Builder::Clamp(Value low, Value x, Value high) {
  impl_->Use("clamp", {low, x, high});
  impl_->ExpectKind("clamp", x, kRealKinds);
  for (const Value& bound : {low, high}) {
    Check(bound.dtype() == x.dtype() && (bound.rank() == 0 || bound.dims() == x.dims()), "clamp: expected bounds of ",
          Name(x.dtype()), " with dims [] or ", ToString(x.dims()), ", got ", bound.type().ToString());
  }
  // The op wants both bounds 0-d or both full.
  if (low.rank() != high.rank()) {
    low = BroadcastTo(low, x.dims());
    high = BroadcastTo(high, x.dims());
  }
  return impl_->Emit("clamp", {low, x, high}, x.type());
}

Value Builder::Convert(Value x, DType dtype) {
  impl_->Use("convert", {x});
  Check(dtype != DType::kInvalid, "convert: expected a valid element type, got none");
  if (x.dtype() == dtype) return x;
  if (IsBool(dtype)) return Compare(x, Zero(x.dtype(), x.dims()), Direction::kNe);
  if (IsComplex(x.dtype()) && !IsComplex(dtype)) return Convert(Real(x), dtype);
  if (IsComplex(dtype) && !IsComplex(x.dtype())) {
    const Value real = Convert(x, RealOf(dtype));
    return Complex(real, Zero(real.dtype(), real.dims()));
  }
  return impl_->Emit("convert", {x}, {dtype, x.dims()});
}

Value Builder::BitcastConvert(Value x, DType dtype) {
  impl_->Use("bitcast_convert", {x});
  Check(dtype != DType::kInvalid, "bitcast_convert: expected a valid element type, got none");
  if (x.dtype() == dtype) return x;
  // A bool is one byte of a dense buffer, but one bit to StableHLO.
  if (IsBool(x.dtype())) return BitcastConvert(Convert(x, DType::kUInt8), dtype);
  if (IsBool(dtype)) return Convert(BitcastConvert(x, DType::kUInt8), dtype);

  const int64_t from = static_cast<int64_t>(ItemSize(x.dtype())), to = static_cast<int64_t>(ItemSize(dtype));
  Dims dims = x.dims();
  if (from > to) dims.push_back(from / to);
  if (from < to) {
    Check(!dims.empty() && dims.back() == to / from, "bitcast_convert: expected a last dim of ", to / from, " to make ",
          Name(dtype), ", got ", x.type().ToString());
    dims.pop_back();
  }
  if (!IsComplex(x.dtype()) && !IsComplex(dtype)) return impl_->Emit("bitcast_convert", {x}, {dtype, dims});

  // XLA has no bitcast of complex numbers: go through a minor dim of real and imaginary parts.
  if (IsComplex(x.dtype())) {
    Dims part = x.dims();
    part.push_back(1);
    x = Concatenate({Reshape(Real(x), part), Reshape(Imag(x), part)}, x.rank());
  }
  const DType real = RealOf(dtype);
  const int64_t old_size = static_cast<int64_t>(ItemSize(x.dtype())), new_size = static_cast<int64_t>(ItemSize(real));
  if (old_size < new_size) x = Reshape(x, {x.numel() * old_size / new_size, new_size / old_size});
  x = BitcastConvert(x, real);
  if (!IsComplex(dtype)) return Reshape(x, dims);
  Dims parts = dims;
  parts.push_back(2);
  x = Reshape(x, parts);
  const int64_t last = x.rank() - 1;
  return Complex(Reshape(SliceDim(x, last, 0, 1), dims), Reshape(SliceDim(x, last, 1, 2), dims));
}

}  // namespace torch_tpu
