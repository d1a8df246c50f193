// Bits of integers and bool.
#include "base/error.h"
#include "lowering/elementwise.h"

namespace torch_tpu {
namespace {

template <Value (Builder::*F)(Value, Value)>
Values Bitwise(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  Check(!IsFloat(dtype) && !IsComplex(dtype), "bitwise: expected integers or bool, got ", Name(dtype));
  Values v = Operands(b, a, {0, 1}, dtype);
  return {(b.*F)(v[0], v[1])};
}

Values BitwiseNot(Builder& b, const Args& a) {
  const DType dtype = a.tensor(0).dtype();
  Check(!IsFloat(dtype) && !IsComplex(dtype), "bitwise_not: expected integers or bool, got ", Name(dtype));
  return {b.Not(a.tensor(0))};
}

// Amounts that are negative or not below the width: zero to the left, all sign to the right.
template <bool kLeft>
Values Shift(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  Check(IsInteger(dtype), "shift: expected integers, got ", Name(dtype));
  Values v = Operands(b, a, {0, 1}, dtype);
  const int bits = BitWidth(dtype);
  Value outside = b.Compare(v[1], Full(b, v[1], bits), Direction::kGe);
  if (IsSignedInt(dtype)) outside = b.Or(outside, Less(b, v[1], 0));
  Value zero = Full(b, v[1], 0);
  if (kLeft) return {b.Select(outside, zero, b.ShiftLeft(v[0], b.Select(outside, zero, v[1])))};
  if (IsUnsignedInt(dtype)) return {b.Select(outside, zero, b.ShiftRightLogical(v[0], b.Select(outside, zero, v[1])))};
  return {b.ShiftRightArithmetic(v[0], b.Select(outside, Full(b, v[1], bits - 1), v[1]))};
}

constexpr OpRow kRows[] = {
    {"bitwise_and.Tensor", Bitwise<&Builder::And>},
    {"bitwise_and.Scalar", Bitwise<&Builder::And>},
    {"bitwise_and.Scalar_Tensor", Bitwise<&Builder::And>},
    {"bitwise_or.Tensor", Bitwise<&Builder::Or>},
    {"bitwise_or.Scalar", Bitwise<&Builder::Or>},
    {"bitwise_or.Scalar_Tensor", Bitwise<&Builder::Or>},
    {"bitwise_xor.Tensor", Bitwise<&Builder::Xor>},
    {"bitwise_xor.Scalar", Bitwise<&Builder::Xor>},
    {"bitwise_xor.Scalar_Tensor", Bitwise<&Builder::Xor>},
    {"bitwise_not", BitwiseNot},
    {"bitwise_left_shift.Tensor", Shift<true>},
    {"bitwise_left_shift.Tensor_Scalar", Shift<true>},
    {"bitwise_left_shift.Scalar_Tensor", Shift<true>},
    {"bitwise_right_shift.Tensor", Shift<false>},
    {"bitwise_right_shift.Tensor_Scalar", Shift<false>},
    {"bitwise_right_shift.Scalar_Tensor", Shift<false>},
    {"__lshift__.Tensor", Shift<true>},
    {"__lshift__.Scalar", Shift<true>},
    {"__rshift__.Tensor", Shift<false>},
    {"__rshift__.Scalar", Shift<false>},
};

}  // namespace

std::span<const OpRow> BitwiseRows() { return kRows; }

}  // namespace torch_tpu
