#include "lowering/elementwise.h"

#include <cmath>
#include <numbers>

namespace torch_tpu {

Values Operands(Builder& b, const Args& a, const std::vector<size_t>& positions, DType dtype, bool exact_numbers) {
  const DType compute = ComputeType(dtype);
  Values xs;
  for (size_t i : positions) {
    if (!a.has(i)) {
      xs.emplace_back();
      continue;
    }
    if (a.kind(i) != Arg::Kind::kTensor) {
      xs.push_back(exact_numbers ? a.scalar(b, i, compute) : Cast(b, a.scalar(b, i, dtype), compute));
      continue;
    }
    Value x = a.tensor_or_absent(i);
    if (!x) {
      xs.emplace_back();
    } else if (exact_numbers && x.rank() == 0) {
      xs.push_back(Cast(b, x, compute));
    } else {
      xs.push_back(Cast(b, Cast(b, x, dtype), compute));
    }
  }
  return Broadcast(b, xs);
}

Value Number(Builder& b, const Args& a, size_t i, DType dtype, double otherwise) {
  const DType compute = ComputeType(dtype);
  if (a.has(i)) return a.scalar(b, i, compute);
  if (IsComplex(compute)) return b.ConstantComplex(compute, {otherwise, 0.0});
  if (IsFloat(compute)) return b.Constant(compute, otherwise);
  return b.ConstantInt(compute, static_cast<int64_t>(otherwise));
}

Value NumberLike(Builder& b, const Args& a, size_t i, const Value& like, double otherwise) {
  return FullLike(b, Number(b, a, i, like.dtype(), otherwise), like);
}

Value Less(Builder& b, Value x, double c) { return b.Compare(x, Full(b, x, c), Direction::kLt); }
Value Greater(Builder& b, Value x, double c) { return b.Compare(x, Full(b, x, c), Direction::kGt); }
Value SubFrom(Builder& b, double c, Value x) { return b.Subtract(Full(b, x, c), x); }

Value SignBit(Builder& b, Value x) {
  if (IsUnsignedInt(x.dtype()) || IsBool(x.dtype())) return b.ConstantInt(DType::kBool, 0, x.dims());
  if (!IsFloat(x.dtype())) return Less(b, x, 0);
  Value wide = ToCompute(b, x);
  return Less(b, b.BitcastConvert(wide, wide.dtype() == DType::kFloat64 ? DType::kInt64 : DType::kInt32), 0);
}

Value Trunc(Builder& b, Value x) {
  if (!IsFloat(x.dtype())) return x;
  return b.Select(Less(b, x, 0), b.Ceil(x), b.Floor(x));
}

Value Sigmoid(Builder& b, Value x) {
  Value one = Full(b, x, 1);
  return b.Divide(one, b.Add(one, b.Exp(b.Negate(x))));
}

Value Relu(Builder& b, Value x) { return MaxNan(b, x, Full(b, x, 0)); }

Value Atan(Builder& b, Value x) { return b.Atan2(x, Full(b, x, 1)); }

// 2^x = 2^n * e^(f ln 2): exact for whole numbers. 2^n comes in two halves so that it reaches the ends of the range.
Value Exp2(Builder& b, Value x) {
  const bool wide = x.dtype() == DType::kFloat64;
  const DType integer = wide ? DType::kInt64 : DType::kInt32;
  const int64_t bias = wide ? 1023 : 127, mantissa = wide ? 52 : 23;
  const double limit = wide ? 1100 : 160;
  Value bounded = b.Clamp(b.Constant(x.dtype(), -limit), x, b.Constant(x.dtype(), limit));
  Value whole = b.RoundNearestEven(b.Select(IsNan(b, x), Full(b, x, 0), bounded));
  Value fraction = b.Select(IsNan(b, x), x, b.Subtract(bounded, whole));
  Value n = b.Convert(whole, integer);
  Value first = b.ShiftRightArithmetic(n, b.ConstantInt(integer, 1, x.dims()));
  auto power = [&](Value k) {
    return b.BitcastConvert(b.ShiftLeft(AddC(b, k, bias), b.ConstantInt(integer, mantissa, x.dims())), x.dtype());
  };
  Value result = b.Multiply(b.Exp(Mul(b, fraction, std::numbers::ln2)), power(first));
  return b.Multiply(result, power(b.Subtract(n, first)));
}

// Equal infinities add to themselves; their difference would be NaN.
Value LogAddExp(Builder& b, Value x, Value y) {
  if (IsComplex(x.dtype())) {  // as for reals, by the real parts
    Value first = b.Compare(b.Real(x), b.Real(y), Direction::kGe);
    Value high = b.Select(first, x, y), low = b.Select(first, y, x);
    Value same = b.And(b.Compare(x, y, Direction::kEq), b.Not(b.IsFinite(b.Real(x))));
    Value sum = b.Add(high, b.Log(AddC(b, b.Exp(b.Subtract(low, high)), 1)));
    return b.Select(same, b.Select(Greater(b, b.Real(x), 0), AddC(b, x, std::log(2.0)), x), sum);
  }
  Value most = MaxNan(b, x, y);
  Value sum = b.Add(most, b.Log1p(b.Exp(b.Negate(b.Abs(b.Subtract(x, y))))));
  Value same_infinity = b.And(b.Compare(x, y, Direction::kEq), Eq(b, b.Abs(x), INFINITY));
  return b.Select(same_infinity, x, sum);
}

}  // namespace torch_tpu
