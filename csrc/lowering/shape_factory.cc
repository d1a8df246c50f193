// Tensors made from numbers.
#include <algorithm>

#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"
#include "lowering/shape.h"

namespace torch_tpu {

namespace {

// value, dims, dtype
Values Filled(Builder& b, const Args& a) {
  const DType dtype = a.dtype_or(2, DefaultFloat());
  return {b.BroadcastInDim(a.scalar(b, 0, dtype), a.ints(1), {})};
}

// start, step, length, dtype: start + i * step, in int64 or double as PyTorch's CPU kernel
Values Sequence(Builder& b, const Args& a) {
  const DType dtype = a.dtype_or(3, DefaultFloat());
  const Dims dims = {a.integer(2)};
  const DType wide = IsFloat(dtype) ? DType::kFloat64 : DType::kInt64;
  Value start = b.BroadcastInDim(a.scalar(b, 0, wide), dims, {});
  Value step = b.BroadcastInDim(a.scalar(b, 1, wide), dims, {});
  return {Cast(b, b.Add(start, b.Multiply(b.Iota(wide, dims, 0), step)), dtype)};
}

// start, end, steps, dtype: counted from the nearer end, so that both ends are exact
Values Linspace(Builder& b, const Args& a) {
  const DType dtype = a.dtype_or(3, DefaultFloat());
  const int64_t n = a.integer(2);
  const Dims dims = {n};
  if (n == 0) return {b.Zero(dtype, dims)};
  DType wide = ComputeType(dtype);
  if (!IsFloat(dtype) && !IsComplex(dtype)) wide = DType::kFloat64;
  Value start = a.scalar(b, 0, wide), end = a.scalar(b, 1, wide);
  if (!IsFloat(dtype) && !IsComplex(dtype)) {  // the ends are integers first
    start = b.Convert(a.scalar(b, 0, dtype), wide);
    end = b.Convert(a.scalar(b, 1, dtype), wide);
  }
  if (n == 1) return {Cast(b, b.Reshape(start, {1}), dtype)};
  Value step = b.Divide(b.Subtract(end, start), b.Convert(b.ConstantInt(DType::kInt64, n - 1), wide));
  if (IsFloat(dtype)) step = b.Convert(b.Convert(step, dtype), wide);  // PyTorch keeps the step in the result's type
  auto all = [&](Value x) { return b.BroadcastInDim(x, dims, {}); };
  Value i = b.Iota(DType::kInt64, dims, 0);
  Value last = b.ConstantInt(DType::kInt64, n - 1, dims);
  Value from_start = b.Add(all(start), b.Multiply(all(step), b.Convert(i, wide)));
  Value from_end = b.Subtract(all(end), b.Multiply(all(step), b.Convert(b.Subtract(last, i), wide)));
  Value first_half = b.Compare(i, b.ConstantInt(DType::kInt64, n / 2, dims), Direction::kLt);
  return {Cast(b, b.Select(first_half, from_start, from_end), dtype)};
}

// n, m, dtype
Values Eye(Builder& b, const Args& a) {
  const Dims dims = {a.integer(0), a.integer(1)};
  Value on = b.Compare(b.Iota(DType::kInt64, dims, 0), b.Iota(DType::kInt64, dims, 1), Direction::kEq);
  return {b.Convert(on, a.dtype_or(2, DefaultFloat()))};
}

// row, col, offset, dtype -> [2, count]
Values TriangleIndices(Builder& b, const Args& a, bool lower) {
  const int64_t rows = a.integer(0), columns = a.integer(1), offset = a.integer_or(2, 0);
  const DType dtype = a.dtype_or(3, DType::kInt64);
  int64_t count = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t below = std::min(std::max<int64_t>(r + offset + (lower ? 1 : 0), 0), columns);
    count += lower ? below : columns - below;
  }
  if (count == 0) return {b.Zero(dtype, {2, 0})};
  const Dims plane = {rows, columns};
  const int64_t n = rows * columns;
  Value limit = b.Add(b.Iota(DType::kInt64, plane, 0), b.ConstantInt(DType::kInt64, offset, plane));
  Value keep = b.Compare(b.Iota(DType::kInt64, plane, 1), limit, lower ? Direction::kLe : Direction::kGe);
  auto [ignored, moved] = Compact(b, b.Reshape(keep, {n}), {b.Iota(DType::kInt64, {n}, 0)});
  Value flat = b.SliceDim(moved[0], 0, 0, count);
  Value width = b.ConstantInt(DType::kInt64, columns, {count});
  Value row = b.Reshape(b.Divide(flat, width), {1, count}), column = b.Reshape(b.Remainder(flat, width), {1, count});
  return {b.Convert(b.Concatenate({row, column}, 0), dtype)};
}

Values TrilIndices(Builder& b, const Args& a) { return TriangleIndices(b, a, true); }
Values TriuIndices(Builder& b, const Args& a) { return TriangleIndices(b, a, false); }

}  // namespace

std::vector<OpRow> FactoryRows() {
  return {
      {"tpu::full", Filled, kInternal},
      {"tpu::iota", Sequence, kInternal},
      {"tpu::linspace", Linspace, kInternal},
      {"tpu::eye", Eye, kInternal},
      {"tpu::tril_indices", TrilIndices, kInternal},
      {"tpu::triu_indices", TriuIndices, kInternal},
  };
}

}  // namespace torch_tpu
