#include "dispatch/dtype_map.h"

#include <c10/util/Exception.h>

namespace torch_tpu {

DType ToDType(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Bool:
      return DType::kBool;
    case c10::ScalarType::Char:
      return DType::kInt8;
    case c10::ScalarType::Short:
      return DType::kInt16;
    case c10::ScalarType::Int:
      return DType::kInt32;
    case c10::ScalarType::Long:
      return DType::kInt64;
    case c10::ScalarType::Byte:
      return DType::kUInt8;
    case c10::ScalarType::UInt16:
      return DType::kUInt16;
    case c10::ScalarType::UInt32:
      return DType::kUInt32;
    case c10::ScalarType::UInt64:
      return DType::kUInt64;
    case c10::ScalarType::Half:
      return DType::kFloat16;
    case c10::ScalarType::BFloat16:
      return DType::kBFloat16;
    case c10::ScalarType::Float:
      return DType::kFloat32;
    case c10::ScalarType::Double:
      return DType::kFloat64;
    case c10::ScalarType::ComplexFloat:
      return DType::kComplex64;
    case c10::ScalarType::ComplexDouble:
      return DType::kComplex128;
    case c10::ScalarType::Float8_e4m3fn:
      return DType::kFloat8E4M3FN;
    case c10::ScalarType::Float8_e5m2:
      return DType::kFloat8E5M2;
    case c10::ScalarType::Float8_e4m3fnuz:
      return DType::kFloat8E4M3FNUZ;
    case c10::ScalarType::Float8_e5m2fnuz:
      return DType::kFloat8E5M2FNUZ;
    case c10::ScalarType::Float8_e8m0fnu:
      return DType::kFloat8E8M0FNU;
    default:
      return DType::kInvalid;
  }
}

c10::ScalarType ToScalarType(DType dtype) {
  static constexpr c10::ScalarType kTypes[kNumDTypes] = {c10::ScalarType::Undefined,
                                                         c10::ScalarType::Bool,
                                                         c10::ScalarType::Char,
                                                         c10::ScalarType::Short,
                                                         c10::ScalarType::Int,
                                                         c10::ScalarType::Long,
                                                         c10::ScalarType::Byte,
                                                         c10::ScalarType::UInt16,
                                                         c10::ScalarType::UInt32,
                                                         c10::ScalarType::UInt64,
                                                         c10::ScalarType::Half,
                                                         c10::ScalarType::BFloat16,
                                                         c10::ScalarType::Float,
                                                         c10::ScalarType::Double,
                                                         c10::ScalarType::ComplexFloat,
                                                         c10::ScalarType::ComplexDouble,
                                                         c10::ScalarType::Float8_e4m3fn,
                                                         c10::ScalarType::Float8_e5m2,
                                                         c10::ScalarType::Float8_e4m3fnuz,
                                                         c10::ScalarType::Float8_e5m2fnuz,
                                                         c10::ScalarType::Float8_e8m0fnu};
  return kTypes[static_cast<int>(dtype)];
}

DType CheckedDType(c10::ScalarType type, const char* op) {
  const DType dtype = ToDType(type);
  TORCH_CHECK_NOT_IMPLEMENTED(dtype != DType::kInvalid, op, ": expected a dtype that the tpu device supports, got ",
                              type);
  return dtype;
}

}  // namespace torch_tpu
