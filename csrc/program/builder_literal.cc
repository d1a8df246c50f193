// Constants and the spelling of literals and attributes.
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "program/builder_impl.h"

namespace torch_tpu {
namespace {

// Layout of the small float formats.
struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  bool infinity;       // IEEE: the highest exponent holds inf and nan
  bool negative_zero;  // false: the code of -0 is the one NaN ("fnuz")
};

FloatFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {5, 10, 15, true, true};
    case DType::kBFloat16:
      return {8, 7, 127, true, true};
    case DType::kFloat8E5M2:
      return {5, 2, 15, true, true};
    case DType::kFloat8E4M3FN:
      return {4, 3, 7, false, true};
    case DType::kFloat8E4M3FNUZ:
      return {4, 3, 8, false, false};
    case DType::kFloat8E5M2FNUZ:
      return {5, 2, 16, false, false};
    default:
      Fail(Code::kInternal, "constant: expected a float type, got ", Name(dtype));
  }
}

uint64_t EncodeSmall(DType dtype, double value) {
  const FloatFormat format = FormatOf(dtype);
  const int width = 1 + format.exponent_bits + format.mantissa_bits;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (width - 1) : 0;
  const uint64_t top = (uint64_t{1} << format.exponent_bits) - 1;
  const uint64_t infinity = top << format.mantissa_bits;
  uint64_t nan = infinity | (uint64_t{1} << (format.mantissa_bits - 1));
  if (!format.infinity) {
    nan = format.negative_zero ? (uint64_t{1} << (width - 1)) - 1 : uint64_t{1} << (width - 1);
  }
  if (std::isnan(value)) return format.negative_zero ? sign | nan : nan;
  const uint64_t overflow = format.infinity ? sign | infinity : (format.negative_zero ? sign | nan : nan);
  if (std::isinf(value)) return overflow;
  const double magnitude = std::fabs(value);
  int exponent = 1 - format.bias;
  if (magnitude > 0) exponent = std::max(exponent, std::ilogb(magnitude));
  // In units of the last place; nearbyint rounds to nearest even, and scaling by powers of two is exact.
  double units = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
  if (units >= std::ldexp(1.0, format.mantissa_bits + 1)) {
    units /= 2;
    ++exponent;
  }
  uint64_t code = static_cast<uint64_t>(units);
  if (code >> format.mantissa_bits) {
    code += static_cast<uint64_t>(exponent + format.bias - 1) << format.mantissa_bits;
  }
  const uint64_t largest =
      format.infinity ? infinity - 1 : (uint64_t{1} << (width - 1)) - (format.negative_zero ? 2 : 1);
  if (code > largest) return overflow;
  if (code == 0 && !format.negative_zero) return 0;
  return sign | code;
}

uint64_t EncodePowerOfTwo(double value) {  // f8E8M0FNU
  if (std::isnan(value) || value < 0) return 0xFF;
  if (value == 0) return 0;
  const int exponent = static_cast<int>(std::ilogb(value));
  const double fraction = std::ldexp(value, -exponent);  // [1, 2)
  const int rounded = exponent + 127 + (fraction > 1.5 || (fraction == 1.5 && exponent % 2 != 0) ? 1 : 0);
  if (std::isinf(value) || rounded > 254) return 0xFF;
  return rounded < 0 ? 0 : static_cast<uint64_t>(rounded);
}

uint64_t Encode(DType dtype, double value) {
  if (dtype == DType::kFloat64) return std::bit_cast<uint64_t>(value);
  if (dtype == DType::kFloat32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (dtype == DType::kFloat8E8M0FNU) return EncodePowerOfTwo(value);
  return EncodeSmall(dtype, value);
}

std::string FloatText(DType dtype, double value) {
  // Small integers are exact in every width, and nicer to read.
  if (BitWidth(dtype) > 8 && std::fabs(value) <= 256 && value == std::nearbyint(value) &&
      !(value == 0 && std::signbit(value))) {
    return Cat(static_cast<int>(value), ".0");
  }
  return FloatBits(dtype, value);
}

std::string IntText(DType dtype, int64_t value) {
  if (IsBool(dtype)) return Bool(value != 0);
  if (dtype == DType::kUInt64) return std::to_string(static_cast<uint64_t>(value));
  const int width = BitWidth(dtype);
  if (width < 64) {
    const int64_t low = IsSignedInt(dtype) ? -(int64_t{1} << (width - 1)) : 0;
    const int64_t high = (int64_t{1} << (IsSignedInt(dtype) ? width - 1 : width)) - 1;
    Check(value >= low && value <= high, "constant: expected a value of ", Name(dtype), " in [", low, ", ", high,
          "], got ", value);
  }
  return std::to_string(value);
}

std::string DoubleText(DType dtype, double value) {
  if (IsBool(dtype)) return Bool(value != 0);
  if (IsFloat(dtype)) return FloatText(dtype, value);
  if (IsComplex(dtype)) {
    return Cat("(", FloatText(RealOf(dtype), value), ", ", FloatText(RealOf(dtype), 0.0), ")");
  }
  const double whole = std::trunc(value);
  if (dtype == DType::kUInt64 && whole >= 0x1p63 && whole < 0x1p64) {
    return std::to_string(static_cast<uint64_t>(whole));
  }
  Check(whole >= -0x1p63 && whole < 0x1p63, "constant: expected a value of ", Name(dtype), ", got ", value);
  return IntText(dtype, static_cast<int64_t>(whole));
}

// The literal of a splat; nothing between the brackets where there is no element.
std::string Splat(const TensorType& type, const std::string& element) {
  return Cat("dense<", type.numel() == 0 ? std::string() : element, ">");
}

void ExpectType(const TensorType& type) {
  Check(type.dtype != DType::kInvalid, "constant: expected a valid element type, got none");
  ExpectSizes("constant", type.dims);
}

template <class T, class Spell>
std::string ListText(const std::vector<T>& values, Spell spell) {
  if (values.empty()) return "dense<>";
  std::string text = "dense<[";
  for (size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + spell(values[i]);
  return text + "]>";
}

}  // namespace

std::string FloatBits(DType dtype, double value) {
  char buffer[24];
  std::snprintf(buffer, sizeof(buffer), "0x%0*llX", BitWidth(dtype) / 4,
                static_cast<unsigned long long>(Encode(dtype, value)));
  return buffer;
}

Value Builder::Constant(DType dtype, double value, const Dims& dims) {
  const TensorType type{dtype, dims};
  ExpectType(type);
  return impl_->Literal(type, Splat(type, DoubleText(dtype, value)));
}

Value Builder::ConstantInt(DType dtype, int64_t value, const Dims& dims) {
  const TensorType type{dtype, dims};
  ExpectType(type);
  if (dtype == DType::kFloat32 || dtype == DType::kComplex64) {
    return Constant(dtype, static_cast<float>(value), dims);  // one rounding, not two
  }
  if (!IsInteger(dtype) && !IsBool(dtype)) return Constant(dtype, static_cast<double>(value), dims);
  return impl_->Literal(type, Splat(type, IntText(dtype, value)));
}

Value Builder::ConstantComplex(DType dtype, std::complex<double> value, const Dims& dims) {
  const TensorType type{dtype, dims};
  ExpectType(type);
  Check(IsComplex(dtype), "constant: expected a complex type, got ", Name(dtype));
  const DType real = RealOf(dtype);
  return impl_->Literal(type,
                        Splat(type, Cat("(", FloatText(real, value.real()), ", ", FloatText(real, value.imag()), ")")));
}

Value Builder::ConstantInts(DType dtype, const std::vector<int64_t>& values) {
  const TensorType type{dtype, {static_cast<int64_t>(values.size())}};
  ExpectType(type);
  const bool whole = IsInteger(dtype) || IsBool(dtype);
  return impl_->Literal(type, ListText(values, [&](int64_t v) {
                          return whole ? IntText(dtype, v) : DoubleText(dtype, static_cast<double>(v));
                        }));
}

Value Builder::ConstantFloats(DType dtype, const std::vector<double>& values) {
  const TensorType type{dtype, {static_cast<int64_t>(values.size())}};
  ExpectType(type);
  return impl_->Literal(type, ListText(values, [&](double v) { return DoubleText(dtype, v); }));
}

Value Builder::Zero(DType dtype, const Dims& dims) { return Constant(dtype, 0.0, dims); }

Value Builder::One(DType dtype, const Dims& dims) { return Constant(dtype, 1.0, dims); }

namespace {

bool HasInfinity(DType dtype) { return BitWidth(dtype) > 8 || dtype == DType::kFloat8E5M2; }

double LargestFinite(DType dtype) {  // of the formats without infinity
  switch (dtype) {
    case DType::kFloat8E4M3FN:
      return 448;
    case DType::kFloat8E4M3FNUZ:
      return 240;
    case DType::kFloat8E5M2FNUZ:
      return 57344;
    default:
      return 0x1p127;
  }
}

}  // namespace

Value Builder::MinOf(DType dtype, const Dims& dims) {
  Check((KindOf(dtype) & kRealKinds) != 0, "constant: expected a type with an order, got ", Name(dtype));
  if (dtype == DType::kFloat8E8M0FNU) return Constant(dtype, 0x1p-127, dims);
  if (IsFloat(dtype)) {
    return Constant(dtype, HasInfinity(dtype) ? -std::numeric_limits<double>::infinity() : -LargestFinite(dtype), dims);
  }
  if (!IsSignedInt(dtype)) return ConstantInt(dtype, 0, dims);
  return ConstantInt(dtype, std::numeric_limits<int64_t>::min() >> (64 - BitWidth(dtype)), dims);
}

Value Builder::MaxOf(DType dtype, const Dims& dims) {
  Check((KindOf(dtype) & kRealKinds) != 0, "constant: expected a type with an order, got ", Name(dtype));
  if (IsFloat(dtype)) {
    return Constant(dtype, HasInfinity(dtype) ? std::numeric_limits<double>::infinity() : LargestFinite(dtype), dims);
  }
  if (IsBool(dtype)) return ConstantInt(dtype, 1, dims);
  if (IsSignedInt(dtype)) {
    return ConstantInt(dtype, std::numeric_limits<int64_t>::max() >> (64 - BitWidth(dtype)), dims);
  }
  return ConstantInt(dtype, static_cast<int64_t>(~uint64_t{0} >> (64 - BitWidth(dtype))), dims);
}

Value Builder::Iota(DType dtype, const Dims& dims, int64_t dim) {
  impl_->Use("iota", {});
  Check((KindOf(dtype) & kNumberKinds) != 0, "iota: expected ", KindNames(kNumberKinds), ", got ", Name(dtype));
  ExpectSizes("iota", dims);
  ExpectDims("iota", "dims", {dim}, static_cast<int64_t>(dims.size()));
  return impl_->Emit("iota", {}, {dtype, dims}, Cat("iota_dimension = ", dim, " : i64"));
}

// --- attributes

std::string Bool(bool value) { return value ? "true" : "false"; }

std::string Brackets(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

std::string Array(const Dims& dims) {
  std::string text = "array<i64";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : ": ") + std::to_string(dims[i]);
  return text + ">";
}

std::string Array(const std::vector<bool>& flags) {
  std::string text = "array<i1";
  for (size_t i = 0; i < flags.size(); ++i) text += (i ? ", " : ": ") + Bool(flags[i]);
  return text + ">";
}

std::string Pairs(const Dims& first, const Dims& second) {
  if (first.empty()) return "dense<> : tensor<0x2xi64>";
  std::string text = "dense<[";
  for (size_t i = 0; i < first.size(); ++i) text += Cat(i ? ", [" : "[", first[i], ", ", second[i], "]");
  return text + Cat("]> : tensor<", first.size(), "x2xi64>");
}

}  // namespace torch_tpu
