// What elementwise rows share: operands in the computing type, one rounding at the end, and the smaller functions that
// StableHLO lacks.
#pragma once

#include <span>
#include <vector>

#include "lowering/math.h"
#include "lowering/table.h"
#include "program/builder.h"
#include "program/op_call.h"

namespace torch_tpu {

using UnaryFn = Value (*)(Builder&, Value);
using BinaryFn = Value (*)(Builder&, Value, Value);

// Arguments `positions` as PyTorch's CPU kernels see them when the op's type is `dtype`: cast to it, widened to its
// computing type, and broadcast together. Absent ones stay absent. With `exact_numbers`, numbers and 0-d tensors are
// not rounded to a short `dtype` first: a few kernels read them so.
Values Operands(Builder& b, const Args& a, const std::vector<size_t>& positions, DType dtype,
                bool exact_numbers = false);
// Number argument `i` in the computing type of `dtype`, or the constant `otherwise` when absent; 0-d.
Value Number(Builder& b, const Args& a, size_t i, DType dtype, double otherwise = 0.0);
// The same with the type and dims of `like`, which is in the computing type already.
Value NumberLike(Builder& b, const Args& a, size_t i, const Value& like, double otherwise = 0.0);

// A row's emit for a function of one tensor, computed in FloatResult's type (floats from integers) and rounded once.
template <UnaryFn F>
Values FloatUnary(Builder& b, const Args& a) {
  const DType dtype = FloatResult(a.tensor(0).dtype());
  return {Cast(b, F(b, ToCompute(b, Cast(b, a.tensor(0), dtype))), dtype)};
}

// The same in the tensor's own type.
template <UnaryFn F>
Values SameUnary(Builder& b, const Args& a) {
  const DType dtype = a.tensor(0).dtype();
  return {Cast(b, F(b, ToCompute(b, a.tensor(0))), dtype)};
}

// A function of arguments 0 and 1, tensors or numbers, in their result type.
template <BinaryFn F>
Values SameBinary(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  Values v = Operands(b, a, {0, 1}, dtype);
  return {Cast(b, F(b, v[0], v[1]), dtype)};
}

// The same, with floats from integers.
template <BinaryFn F>
Values FloatBinary(Builder& b, const Args& a) {
  const DType dtype = FloatResult(ResultType(a, {0, 1}));
  Values v = Operands(b, a, {0, 1}, dtype);
  return {Cast(b, F(b, v[0], v[1]), dtype)};
}

// ---- on values of one type (shorthands that read like the formula)
Value Less(Builder& b, Value x, double c);
Value Greater(Builder& b, Value x, double c);
Value SubFrom(Builder& b, double c, Value x);  // c - x
Value SignBit(Builder& b, Value x);            // of floats (-0.0 and negative NaN too) and integers -> bool
Value Trunc(Builder& b, Value x);
Value Sigmoid(Builder& b, Value x);
Value Relu(Builder& b, Value x);  // NaN stays
Value Exp2(Builder& b, Value x);
Value Atan(Builder& b, Value x);
Value LogAddExp(Builder& b, Value x, Value y);

// ---- sub-families of PointwiseRows
std::span<const OpRow> UnaryRows();
std::span<const OpRow> TranscendentalRows();
std::span<const OpRow> BinaryRows();
std::span<const OpRow> CompareRows();
std::span<const OpRow> BitwiseRows();
std::span<const OpRow> PowerRows();
std::span<const OpRow> TernaryRows();
std::span<const OpRow> ComplexRows();

}  // namespace torch_tpu
