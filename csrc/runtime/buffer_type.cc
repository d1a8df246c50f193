#include "runtime/buffer_type.h"

#include <array>

#include "base/error.h"

namespace torch_tpu {
namespace {

struct Pair {
  DType dtype;
  PJRT_Buffer_Type type;
};

constexpr std::array<Pair, kNumDTypes> kPairs = {{
    {DType::kInvalid, PJRT_Buffer_Type_INVALID},
    {DType::kBool, PJRT_Buffer_Type_PRED},
    {DType::kInt8, PJRT_Buffer_Type_S8},
    {DType::kInt16, PJRT_Buffer_Type_S16},
    {DType::kInt32, PJRT_Buffer_Type_S32},
    {DType::kInt64, PJRT_Buffer_Type_S64},
    {DType::kUInt8, PJRT_Buffer_Type_U8},
    {DType::kUInt16, PJRT_Buffer_Type_U16},
    {DType::kUInt32, PJRT_Buffer_Type_U32},
    {DType::kUInt64, PJRT_Buffer_Type_U64},
    {DType::kFloat16, PJRT_Buffer_Type_F16},
    {DType::kBFloat16, PJRT_Buffer_Type_BF16},
    {DType::kFloat32, PJRT_Buffer_Type_F32},
    {DType::kFloat64, PJRT_Buffer_Type_F64},
    {DType::kComplex64, PJRT_Buffer_Type_C64},
    {DType::kComplex128, PJRT_Buffer_Type_C128},
    {DType::kFloat8E4M3FN, PJRT_Buffer_Type_F8E4M3FN},
    {DType::kFloat8E5M2, PJRT_Buffer_Type_F8E5M2},
    {DType::kFloat8E4M3FNUZ, PJRT_Buffer_Type_F8E4M3FNUZ},
    {DType::kFloat8E5M2FNUZ, PJRT_Buffer_Type_F8E5M2FNUZ},
    {DType::kFloat8E8M0FNU, PJRT_Buffer_Type_F8E8M0FNU},
}};

constexpr bool InOrder() {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (static_cast<int>(kPairs[i].dtype) != i) return false;
  }
  return true;
}
static_assert(InOrder(), "pairs follow the enum");

}  // namespace

PJRT_Buffer_Type ToBufferType(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  Check(index > 0 && index < kPairs.size(), "buffer: expected a valid element type, got number ", index);
  return kPairs[index].type;
}

DType FromBufferType(PJRT_Buffer_Type type) {
  for (const Pair& pair : kPairs) {
    if (pair.type == type) return pair.dtype;
  }
  return DType::kInvalid;
}

}  // namespace torch_tpu
