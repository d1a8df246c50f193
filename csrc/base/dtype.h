// Element types: one table with StableHLO's names, sizes and kinds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace torch_tpu {

enum class DType : uint8_t {
  kInvalid = 0,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
  kFloat8E4M3FN,
  kFloat8E5M2,
  kFloat8E4M3FNUZ,
  kFloat8E5M2FNUZ,
  kFloat8E8M0FNU,
};
inline constexpr int kNumDTypes = 21;

// StableHLO's spelling: "i1", "i64", "ui8", "bf16", "f32", "complex<f32>", "f8E4M3FN", ...
std::string_view Name(DType dtype);
// Bytes an element takes in a dense buffer (bool is one byte).
size_t ItemSize(DType dtype);

bool IsBool(DType dtype);
bool IsSignedInt(DType dtype);
bool IsUnsignedInt(DType dtype);
bool IsInteger(DType dtype);  // signed or unsigned, not bool
bool IsFloat(DType dtype);    // real floating point, any width
bool IsComplex(DType dtype);
// Real counterpart of a complex type (complex64 -> float32); the type itself otherwise.
DType RealOf(DType dtype);
// Complex counterpart of float32/float64 (and of half types: complex64).
DType ComplexOf(DType dtype);
// The type in which PyTorch's CPU kernels compute: float32 for 8- and 16-bit floats, the type itself otherwise.
DType ComputeType(DType dtype);
int BitWidth(DType dtype);  // of the real component for complex types

}  // namespace torch_tpu
