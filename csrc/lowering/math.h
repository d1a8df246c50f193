// PyTorch's arithmetic on top of the typed builder: promotion, broadcasting, casts, NaN rules. Shared by all families.
#pragma once

#include "program/builder.h"
#include "program/op_call.h"

namespace torch_tpu {

// ---- type promotion (c10/core/ScalarType promoteTypes and ATen result_type)
DType PromoteTypes(DType a, DType b);
// result_type over tensor arguments `tensors` and number arguments `numbers` (positions in the call). Tensor arguments
// that came from Python numbers (wrapped) and 0-d tensors weigh as PyTorch's rules say. Absent ones are skipped.
DType ResultType(const Args& a, const std::vector<size_t>& tensors, const std::vector<size_t>& numbers = {});
DType DefaultFloat();            // float32
DType FloatResult(DType dtype);  // integers and bool -> float32; others unchanged

// ---- casts and broadcasts
Value Cast(Builder& b, Value x,
           DType dtype);  // PyTorch's `.to(dtype)`: float->int truncates and wraps as on CPU, complex drops imag
Values Broadcast(Builder& b, const Values& xs);         // all to their common shape
Dims BroadcastShapes(const std::vector<Dims>& shapes);  // throws with PyTorch's text
// The tensor arguments `tensors` cast to their result type (or `dtype`) and broadcast together.
Values Promoted(Builder& b, const Args& a, const std::vector<size_t>& tensors, DType dtype = DType::kInvalid);
Value Full(Builder& b, const Value& like, double value);      // constant with like's dtype and dims
Value FullLike(Builder& b, Value scalar, const Value& like);  // 0-d value cast to like's dtype and broadcast

// ---- computing type: half and bfloat16 go through float32 as PyTorch's CPU kernels do
Value ToCompute(Builder& b, Value x);  // float16, bfloat16, float8 -> float32

// ---- dims
int64_t WrapDim(int64_t dim, int64_t rank);     // IndexError text as PyTorch's: "Dimension out of range (expected ...)"
Dims WrapDims(const Dims& dims, int64_t rank);  // sorted, unique; empty means all
Value KeepDims(Builder& b, Value reduced, const Dims& original, const Dims& dims);  // puts reduced dims back as ones
Value Unsqueeze(Builder& b, Value x, int64_t dim);
Value Squeeze(Builder& b, Value x, int64_t dim);

// ---- reductions with PyTorch's NaN rule (NaN wins)
Value Sum(Builder& b, Value x, const Dims& dims);  // in x's dtype
Value MaxNan(Builder& b, Value a, Value c);
Value MinNan(Builder& b, Value a, Value c);
Value ReduceMax(Builder& b, Value x, const Dims& dims);
Value ReduceMin(Builder& b, Value x, const Dims& dims);
Value IsNan(Builder& b, Value x);  // false for non-floats
// (values, int64 indices) of the largest or smallest along dim, first on ties, NaN wins.
std::pair<Value, Value> ArgReduce(Builder& b, Value x, int64_t dim, bool largest);

// ---- shorthands, operands of equal type or one 0-d (broadcast)
Value Mul(Builder& b, Value x, double c);  // by a constant in x's dtype
Value AddC(Builder& b, Value x, double c);
Value Eq(Builder& b, Value x, double c);
Value Where(Builder& b, Value cond, Value x, Value y);  // broadcasts the three

// A contraction with PyTorch's numerics: halves accumulate in float32, float32 by the builder's precision, integers
// exactly.
Value Dot(Builder& b, Value lhs, Value rhs, const DotDims& dims);
Value MatMul2d(Builder& b, Value lhs, Value rhs);     // [m, k] x [k, n]
Value BatchMatMul(Builder& b, Value lhs, Value rhs);  // [b, m, k] x [b, k, n]

}  // namespace torch_tpu
