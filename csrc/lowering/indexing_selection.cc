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
  Check(IsBool(a.tensor(1).dtype()), "masked_scatter_ only supports boolean masks, but got mask with dtype ",
        Name(a.tensor(1).dtype()));
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

// x -> (count, int64[rank, numel]): PyTorch's result is column-major
Values Nonzero(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const int64_t n = x.numel(), rank = x.rank();
  if (n == 0) return {b.Zero(DType::kInt64), b.Zero(DType::kInt64, {rank, 0})};
  Value mask = b.Reshape(b.Convert(x, DType::kBool), {n});
  auto [count, moved] = Compact(b, mask, {b.Iota(DType::kInt64, {n}, 0)});
  if (rank == 0) return {count, b.Zero(DType::kInt64, {0, n})};
  Values columns;
  const Dims strides = ContiguousStrides(x.dims());
  for (int64_t d = 0; d < rank; ++d) {
    Value column = moved[0];
    if (strides[d] != 1) column = b.Divide(column, b.ConstantInt(DType::kInt64, strides[d], {n}));
    if (d > 0) column = b.Remainder(column, b.ConstantInt(DType::kInt64, x.dim(d), {n}));
    columns.push_back(b.Reshape(column, {1, n}));
  }
  return {count, rank == 1 ? columns[0] : b.Concatenate(columns, 0)};
}

// self, size, fill_value: the first `size` of nonzero's rows, filled up
Values NonzeroStatic(Builder& b, const Args& a) {
  const int64_t size = a.integer(1), rank = a.tensor(0).rank(), n = a.tensor(0).numel();
  Check(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  Values found = Nonzero(b, a);
  Value rows = b.Transpose(found[1], {1, 0});
  if (n < size) rows = b.Pad(rows, b.Zero(DType::kInt64), {0, 0}, {size - n, 0});
  if (n > size) rows = b.SliceDim(rows, 0, 0, size);
  const Dims dims = {size, rank};
  Value used = b.Compare(b.Iota(DType::kInt64, dims, 0), b.BroadcastTo(found[0], dims), Direction::kLt);
  return {b.Select(used, rows, b.ConstantInt(DType::kInt64, a.integer_or(2, -1), dims))};
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
      {"nonzero_static", NonzeroStatic, kLayoutOfFirst},
      {"tpu::nonzero", Nonzero, kInternal},
      {"tpu::masked_select", MaskedSelect, kInternal},
      {"tpu::repeat_interleave", RepeatInterleave, kInternal},
  };
}

}  // namespace torch_tpu
