// Masks: masked_scatter, and the device halves of ops whose result size depends on data. These give a count and padded
// arrays.
#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"

namespace torch_tpu {

namespace {

// self, mask, source
Values MaskedScatter(Builder& b, const Args& a) {
  Value self = a.tensor(0), source = a.tensor(2);
  const Dims dims = BroadcastShapes({self.dims(), a.tensor(1).dims()});
  self = b.BroadcastTo(self, dims);
  Value mask = b.BroadcastTo(b.Convert(a.tensor(1), DType::kBool), dims);
  const int64_t n = self.numel();
  if (n == 0 || source.numel() == 0) return {self};
  Value flat_mask = b.Reshape(mask, {n});
  Value position = b.Subtract(CountTrue(b, flat_mask), b.One(DType::kInt64, {n}));
  // Where the mask is false the position means nothing; the select below drops what was read.
  position = b.Select(flat_mask, position, b.Zero(DType::kInt64, {n}));
  Value taken = TakeDim(b, b.Reshape(Cast(b, source, self.dtype()), {source.numel()}), position, 0);
  return {b.Reshape(b.Select(flat_mask, taken, b.Reshape(self, {n})), dims)};
}

// x -> (count, int64[numel, rank])
Values Nonzero(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const int64_t n = x.numel(), rank = x.rank();
  if (n == 0) return {b.Zero(DType::kInt64), b.Zero(DType::kInt64, {0, rank})};
  Value mask = b.Reshape(b.Convert(x, DType::kBool), {n});
  auto [count, moved] = Compact(b, mask, {b.Iota(DType::kInt64, {n}, 0)});
  if (rank == 0) return {count, b.Zero(DType::kInt64, {n, 0})};
  Values columns;
  const Dims strides = ContiguousStrides(x.dims());
  for (int64_t d = 0; d < rank; ++d) {
    Value column = moved[0];
    if (strides[d] != 1) column = b.Divide(column, b.ConstantInt(DType::kInt64, strides[d], {n}));
    if (d > 0) column = b.Remainder(column, b.ConstantInt(DType::kInt64, x.dim(d), {n}));
    columns.push_back(b.Reshape(column, {n, 1}));
  }
  return {count, rank == 1 ? columns[0] : b.Concatenate(columns, 1)};
}

// x, mask -> (count, x's selected elements in front)
Values MaskedSelect(Builder& b, const Args& a) {
  const Dims dims = BroadcastShapes({a.tensor(0).dims(), a.tensor(1).dims()});
  const int64_t n = Product(dims);
  Value x = b.Reshape(b.BroadcastTo(a.tensor(0), dims), {n});
  Value mask = b.Reshape(b.BroadcastTo(b.Convert(a.tensor(1), DType::kBool), dims), {n});
  auto [count, moved] = Compact(b, mask, {x});
  return {count, moved[0]};
}

// repeats (1-d integers), total -> int64[total]: i repeated repeats[i] times
Values RepeatInterleave(Builder& b, const Args& a) {
  Value repeats = ToIndex(b, a.tensor(0));
  const int64_t total = a.integer(1);
  if (total == 0) return {b.Zero(DType::kInt64, {0})};
  return {SearchSorted(b, RunningSum(b, repeats), b.Iota(DType::kInt64, {total}, 0), true)};
}

}  // namespace

std::vector<OpRow> SelectionRows() {
  return {
      {"masked_scatter", MaskedScatter},
      {"tpu::nonzero", Nonzero, kInternal},
      {"tpu::masked_select", MaskedSelect, kInternal},
      {"tpu::repeat_interleave", RepeatInterleave, kInternal},
  };
}

}  // namespace torch_tpu
