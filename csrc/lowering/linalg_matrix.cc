// Pieces that the matrix algorithms share.
#include "lowering/linalg.h"
#include "lowering/math.h"

namespace torch_tpu {

Dims BatchOf(const Value& x, int64_t inner) { return Dims(x.dims().begin(), x.dims().end() - inner); }

Dims Joined(Dims batch, const Dims& inner) {
  batch.insert(batch.end(), inner.begin(), inner.end());
  return batch;
}

namespace {

int64_t Count(const Dims& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

}  // namespace

Value Flat(Builder& b, Value x) { return b.Reshape(x, {Count(BatchOf(x)), x.dim(-2), x.dim(-1)}); }
Value FlatVectors(Builder& b, Value x) { return b.Reshape(x, {Count(BatchOf(x, 1)), x.dim(-1)}); }

Value Conj(Builder& b, Value x) { return IsComplex(x.dtype()) ? b.Complex(b.Real(x), b.Negate(b.Imag(x))) : x; }
Value Adjoint(Builder& b, Value x) { return Conj(b, b.Transpose(x, {0, 2, 1})); }

Value RowIndex(Builder& b, const Dims& dims) {
  return b.Iota(DType::kInt64, dims, static_cast<int64_t>(dims.size()) - 2);
}
Value ColumnIndex(Builder& b, const Dims& dims) {
  return b.Iota(DType::kInt64, dims, static_cast<int64_t>(dims.size()) - 1);
}

Value DownRows(Builder& b, Value v, int64_t columns) {
  return b.BroadcastInDim(v, {v.dim(0), v.dim(1), columns}, {0, 1});
}
Value AcrossColumns(Builder& b, Value v, int64_t rows) {
  return b.BroadcastInDim(v, {v.dim(0), rows, v.dim(1)}, {0, 2});
}

Value Column(Builder& b, Value x, Value k) {
  Value zero = b.ConstantInt(DType::kInt64, 0);
  return b.Reshape(b.DynamicSlice(x, {zero, zero, k}, {x.dim(0), x.dim(1), 1}), {x.dim(0), x.dim(1)});
}

Value RowOf(Builder& b, Value x, Value k) {
  Value zero = b.ConstantInt(DType::kInt64, 0);
  return b.Reshape(b.DynamicSlice(x, {zero, k, zero}, {x.dim(0), 1, x.dim(2)}), {x.dim(0), x.dim(2)});
}

Value WithColumn(Builder& b, Value x, Value k, Value column) {
  Value zero = b.ConstantInt(DType::kInt64, 0);
  return b.DynamicUpdateSlice(x, b.Reshape(column, {x.dim(0), x.dim(1), 1}), {zero, zero, k});
}

Value Masked(Builder& b, Value mask, Value x) { return b.Select(mask, x, b.Zero(x.dtype(), x.dims())); }

Value Diagonal(Builder& b, Value x) {
  const int64_t n = std::min(x.dim(1), x.dim(2));
  Value square = b.Slice(x, {0, 0, 0}, {x.dim(0), n, n});
  Value on = b.Compare(RowIndex(b, square.dims()), ColumnIndex(b, square.dims()), Direction::kEq);
  return b.Reduce(Masked(b, on, square), Builder::Reducer::kAdd, {2});
}

Value Triangle(Builder& b, Value x, bool lower, bool with_diagonal) {
  Value row = RowIndex(b, x.dims()), column = ColumnIndex(b, x.dims());
  if (!lower) std::swap(row, column);
  return Masked(b, b.Compare(row, column, with_diagonal ? Direction::kGe : Direction::kGt), x);
}

Value Identity(Builder& b, DType dtype, const Dims& dims) {
  return b.Convert(b.Compare(RowIndex(b, dims), ColumnIndex(b, dims), Direction::kEq), dtype);
}

Value Product(Builder& b, Value x, Value y) { return BatchMatMul(b, x, y); }

Value SquaredNorms(Builder& b, Value x, int64_t dim) {
  Value square = IsComplex(x.dtype()) ? b.Add(b.Multiply(b.Real(x), b.Real(x)), b.Multiply(b.Imag(x), b.Imag(x)))
                                      : b.Multiply(x, x);
  return b.Reduce(square, Builder::Reducer::kAdd, {dim});
}

Values ForEach(Builder& b, int64_t count, const Values& state, const Step& step, bool backwards) {
  Values init = {b.ConstantInt(DType::kInt64, backwards ? count - 1 : 0)};
  init.insert(init.end(), state.begin(), state.end());
  Values done = b.While(
      init,
      [&](const Values& s) -> Values {
        return {b.Compare(s[0], b.ConstantInt(DType::kInt64, backwards ? 0 : count),
                          backwards ? Direction::kGe : Direction::kLt)};
      },
      [&](const Values& s) -> Values {
        Values next = step(s[0], Values(s.begin() + 1, s.end()));
        next.insert(next.begin(), b.Add(s[0], b.ConstantInt(DType::kInt64, backwards ? -1 : 1)));
        return next;
      });
  return Values(done.begin() + 1, done.end());
}

}  // namespace torch_tpu
