// Three operands and selections: where, clamp, lerp, addcmul, masked_fill.
#include <cmath>

#include "lowering/elementwise.h"

namespace torch_tpu {
namespace {

Values WhereRow(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {1, 2});
  Values v = Promoted(b, a, {1, 2}, dtype);
  return {Where(b, Cast(b, a.tensor(0), DType::kBool), v[0], v[1])};
}

// Both bounds optional; the upper one wins when they cross, a NaN anywhere is the result.
Values Clamp(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1, 2});
  Values v = Operands(b, a, {0, 1, 2}, dtype);
  Value x = v[0];
  if (v[1]) x = MaxNan(b, x, v[1]);
  if (v[2]) x = MinNan(b, x, v[2]);
  return {Cast(b, x, dtype)};
}

Value Lerp(Builder& b, Value start, Value end, Value weight) {
  Value gap = b.Subtract(end, start);
  Value near = b.Add(start, b.Multiply(weight, gap));
  Value far = b.Subtract(end, b.Multiply(gap, SubFrom(b, 1, weight)));
  return b.Select(Less(b, b.Abs(weight), 0.5), near, far);
}

Values LerpTensor(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1, 2});
  Values v = Operands(b, a, {0, 1, 2}, dtype);
  return {Cast(b, Lerp(b, v[0], v[1], v[2]), dtype)};
}

Values LerpScalar(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  Values v = Operands(b, a, {0, 1}, dtype);
  return {Cast(b, Lerp(b, v[0], v[1], FullLike(b, Number(b, a, 2, dtype), v[0])), dtype)};
}

template <bool kDivide>
Values AddCombined(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1, 2});
  Values v = Operands(b, a, {0, 1, 2}, dtype);
  Value x = v[1];
  if (a.has(3) && a.constant(3) != 1.0) x = b.Multiply(FullLike(b, Number(b, a, 3, dtype), x), x);
  return {Cast(b, b.Add(v[0], kDivide ? b.Divide(x, v[2]) : b.Multiply(x, v[2])), dtype)};
}

Values MaskedFill(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  Value value = a.kind(2) == Arg::Kind::kTensor ? Cast(b, a.tensor(2), self.dtype()) : a.scalar(b, 2, self.dtype());
  return {Where(b, Cast(b, a.tensor(1), DType::kBool), value, self)};
}

constexpr OpRow kRows[] = {
    {"where.self", WhereRow},
    {"clamp", Clamp},
    {"clamp.Tensor", Clamp},
    {"clamp_min", SameBinary<MaxNan>},
    {"clamp_min.Tensor", SameBinary<MaxNan>},
    {"clamp_max", SameBinary<MinNan>},
    {"clamp_max.Tensor", SameBinary<MinNan>},
    {"lerp.Scalar", LerpScalar},
    {"lerp.Tensor", LerpTensor},
    {"addcmul", AddCombined<false>},
    {"addcdiv", AddCombined<true>},
    {"masked_fill.Scalar", MaskedFill},
    {"masked_fill.Tensor", MaskedFill},
};

}  // namespace

std::span<const OpRow> TernaryRows() { return kRows; }

}  // namespace torch_tpu
