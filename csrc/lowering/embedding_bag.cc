// embedding_bag: rows of a table, read by index and reduced by bag. A bag is a run of indices that begins at its
// offset.
#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"

namespace torch_tpu {

namespace {

enum Mode { kSum, kMean, kMax };

// The rows of `table` that `index` names, times the samples' own weights.
Value Entries(Builder& b, Value table, Value index, Value sample_weights) {
  Value rows = ToCompute(b, TakeDim(b, table, index, 0));
  if (!sample_weights) return rows;
  return b.Multiply(rows, b.BroadcastInDim(ToCompute(b, sample_weights), rows.dims(), {0}));
}

Value Spread(Builder& b, Value v, const Dims& dims) { return b.BroadcastInDim(v, dims, {0}); }

// Which entries count.
Value Kept(Builder& b, Value index, int64_t padding) {
  return b.Compare(index, b.ConstantInt(DType::kInt64, padding, index.dims()), Direction::kNe);
}

// weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
//   -> output, bag of each index, entries of each bag, the row each maximum came from
Values EmbeddingBag(Builder& b, const Args& a) {
  Value table = a.tensor(0), index = ToIndex(b, a.tensor(1)), offsets = ToIndex(b, a.tensor(2));
  const int64_t mode = a.integer_or(4, kSum), padding = a.integer_or(8, -1), width = table.dim(1), n = index.numel();
  const int64_t bags = offsets.numel() - (a.flag(7) ? 1 : 0);
  const DType integer = a.tensor(1).dtype();
  const Dims out = {bags, width};
  Value of_bag = SearchSorted(b, offsets, b.Iota(DType::kInt64, {n}, 0), true);
  of_bag = b.Subtract(of_bag, b.One(DType::kInt64, {n}));
  Value kept = Kept(b, index, padding);
  Value place = b.Select(kept, of_bag, b.ConstantInt(DType::kInt64, bags, {n}));  // past the end: dropped
  Value size = PutDim(b, b.Zero(DType::kInt64, {bags}), place, b.One(DType::kInt64, {n}), 0, CombineAdd);
  Value rows = Entries(b, table, index, a.tensor_or_absent(6));
  Value total, from = b.Zero(integer, mode == kMax ? out : Dims{bags});
  Value empty = Spread(b, Eq(b, size, 0), out);
  if (mode == kMax) {
    total = PutDim(b, b.MinOf(rows.dtype(), out), place, rows, 0, CombineMax);
    total = b.Select(empty, Full(b, total, 0), total);
    if (n > 0) {
      // The first entry that holds the maximum; the bag of a dropped one does not matter.
      Value best = TakeDim(b, total,
                           b.Clamp(b.ConstantInt(DType::kInt64, 0), of_bag,
                                   b.ConstantInt(DType::kInt64, std::max<int64_t>(bags - 1, 0))),
                           0, IndexTrust::kTrusted);
      Value hit = b.Or(b.Compare(rows, best, Direction::kEq), IsNan(b, rows));
      Value at = b.Select(hit, b.Iota(DType::kInt64, rows.dims(), 0), b.ConstantInt(DType::kInt64, n, rows.dims()));
      Value first = PutDim(b, b.ConstantInt(DType::kInt64, n, out), place, at, 0, CombineMin);
      Value row = TakeDim(b, b.Pad(index, b.Zero(DType::kInt64), {0}, {1}), first, 0, IndexTrust::kTrusted);
      from = b.Convert(b.Select(empty, b.Zero(DType::kInt64, out), row), integer);
    }
  } else {
    total = PutDim(b, b.Zero(rows.dtype(), out), place, rows, 0, CombineAdd);
    if (mode == kMean) {
      Value count = b.Convert(b.Maximum(size, b.One(DType::kInt64, {bags})), rows.dtype());
      total = b.Divide(total, Spread(b, count, out));
    }
  }
  return {b.Convert(total, table.dtype()), b.Convert(of_bag, integer), b.Convert(size, integer), from};
}

// grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, per_sample_weights,
// padding_idx
Values DenseBackward(Builder& b, const Args& a) {
  Value given = a.tensor(0), grad = ToCompute(b, given);
  Value index = ToIndex(b, a.tensor(1)), bag = ToIndex(b, a.tensor(2)), size = ToIndex(b, a.tensor(3));
  const int64_t rows = a.integer(5), mode = a.integer(7), width = grad.dim(1), bags = grad.dim(0);
  const DType dtype = grad.dtype();
  Value result = b.Zero(dtype, {rows, width});
  if (grad.numel() == 0 || (mode != kMax && index.numel() == 0)) return {b.Convert(result, given.dtype())};
  if (mode == kMax) {
    Value from = ToIndex(b, a.tensor(4));
    Value filled = b.Not(Spread(b, Eq(b, size, 0), from.dims()));
    from = b.Select(filled, from, b.ConstantInt(DType::kInt64, rows, from.dims()));
    // Each column of the table takes from its own column of the gradient.
    return {b.Convert(PutAlong(b, result, from, grad, 0, CombineAdd), given.dtype())};
  }
  if (mode == kMean) {
    Value count = b.Convert(b.Maximum(size, b.One(DType::kInt64, {bags})), dtype);
    grad = b.Divide(grad, Spread(b, count, grad.dims()));
  }
  Value updates = Entries(b, grad, bag, a.tensor_or_absent(8));
  const int64_t n = index.numel();
  if (a.flag(6)) {
    Value counts = PutDim(b, b.Zero(dtype, {rows}), index, b.One(dtype, {n}), 0, CombineAdd);
    updates = b.Divide(updates, Spread(b, TakeDim(b, counts, index, 0), updates.dims()));
  }
  Value place = b.Select(Kept(b, index, a.integer_or(9, -1)), index, b.ConstantInt(DType::kInt64, rows, {n}));
  return {b.Convert(PutDim(b, result, place, updates, 0, CombineAdd), given.dtype())};
}

// grad, weight, indices, offsets, offset2bag, mode, padding_idx
Values SampleWeightsBackward(Builder& b, const Args& a) {
  Value given = a.tensor(0), table = a.tensor(1), index = ToIndex(b, a.tensor(2)), bag = ToIndex(b, a.tensor(4));
  Check(a.integer(5) == kSum, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  if (index.numel() == 0) return {b.Zero(given.dtype(), index.dims())};
  Value product = b.Multiply(ToCompute(b, TakeDim(b, given, bag, 0)), ToCompute(b, TakeDim(b, table, index, 0)));
  Value sum = Sum(b, product, {1});
  sum = b.Select(Kept(b, index, a.integer_or(6, -1)), sum, Full(b, sum, 0));
  return {b.Convert(sum, given.dtype())};
}

}  // namespace

std::vector<OpRow> EmbeddingBagRows() {
  return {
      {"_embedding_bag", EmbeddingBag, kNoMeta},
      {"_embedding_bag_forward_only", EmbeddingBag, kNoMeta},
      {"_embedding_bag_dense_backward", DenseBackward},
      {"_embedding_bag_per_sample_weights_backward", SampleWeightsBackward},
  };
}

}  // namespace torch_tpu
