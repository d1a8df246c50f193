#include "base/dtype.h"

#include <array>

#include "base/error.h"

namespace torch_tpu {
namespace {

enum class Kind : uint8_t { kNone, kBool, kSigned, kUnsigned, kFloat, kComplex };

struct Row {
  DType dtype;
  std::string_view name;
  uint8_t bytes;
  Kind kind;
};

constexpr std::array<Row, kNumDTypes> kRows = {{
    {DType::kInvalid, "invalid", 0, Kind::kNone},
    {DType::kBool, "i1", 1, Kind::kBool},
    {DType::kInt8, "i8", 1, Kind::kSigned},
    {DType::kInt16, "i16", 2, Kind::kSigned},
    {DType::kInt32, "i32", 4, Kind::kSigned},
    {DType::kInt64, "i64", 8, Kind::kSigned},
    {DType::kUInt8, "ui8", 1, Kind::kUnsigned},
    {DType::kUInt16, "ui16", 2, Kind::kUnsigned},
    {DType::kUInt32, "ui32", 4, Kind::kUnsigned},
    {DType::kUInt64, "ui64", 8, Kind::kUnsigned},
    {DType::kFloat16, "f16", 2, Kind::kFloat},
    {DType::kBFloat16, "bf16", 2, Kind::kFloat},
    {DType::kFloat32, "f32", 4, Kind::kFloat},
    {DType::kFloat64, "f64", 8, Kind::kFloat},
    {DType::kComplex64, "complex<f32>", 8, Kind::kComplex},
    {DType::kComplex128, "complex<f64>", 16, Kind::kComplex},
    {DType::kFloat8E4M3FN, "f8E4M3FN", 1, Kind::kFloat},
    {DType::kFloat8E5M2, "f8E5M2", 1, Kind::kFloat},
    {DType::kFloat8E4M3FNUZ, "f8E4M3FNUZ", 1, Kind::kFloat},
    {DType::kFloat8E5M2FNUZ, "f8E5M2FNUZ", 1, Kind::kFloat},
    {DType::kFloat8E8M0FNU, "f8E8M0FNU", 1, Kind::kFloat},
}};

constexpr bool InOrder() {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (static_cast<int>(kRows[i].dtype) != i) return false;
  }
  return true;
}
static_assert(InOrder(), "rows follow the enum");

const Row& RowOf(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  return index < kRows.size() ? kRows[index] : kRows[0];
}

}  // namespace

std::string_view Name(DType dtype) { return RowOf(dtype).name; }
size_t ItemSize(DType dtype) { return RowOf(dtype).bytes; }

bool IsBool(DType dtype) { return RowOf(dtype).kind == Kind::kBool; }
bool IsSignedInt(DType dtype) { return RowOf(dtype).kind == Kind::kSigned; }
bool IsUnsignedInt(DType dtype) { return RowOf(dtype).kind == Kind::kUnsigned; }
bool IsInteger(DType dtype) { return IsSignedInt(dtype) || IsUnsignedInt(dtype); }
bool IsFloat(DType dtype) { return RowOf(dtype).kind == Kind::kFloat; }
bool IsComplex(DType dtype) { return RowOf(dtype).kind == Kind::kComplex; }

DType RealOf(DType dtype) {
  switch (dtype) {
    case DType::kComplex64:
      return DType::kFloat32;
    case DType::kComplex128:
      return DType::kFloat64;
    default:
      return dtype;
  }
}

DType ComplexOf(DType dtype) {
  if (IsComplex(dtype)) return dtype;
  if (dtype == DType::kFloat64) return DType::kComplex128;
  Check(dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16,
        "complex counterpart: expected a 16-, 32- or 64-bit float, got ", Name(dtype));
  return DType::kComplex64;
}

DType ComputeType(DType dtype) { return IsFloat(dtype) && ItemSize(dtype) <= 2 ? DType::kFloat32 : dtype; }

int BitWidth(DType dtype) {
  if (IsBool(dtype)) return 1;
  return static_cast<int>(ItemSize(RealOf(dtype))) * 8;
}

}  // namespace torch_tpu
