#include "lowering/indexing.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "lowering/math.h"

namespace torch_tpu {

namespace {

constexpr int64_t kUnrollLimit = 8;       // scatters with few entries along dim become selects
constexpr int64_t kBlock = 128;           // width of CountTrue's matrix products
constexpr int64_t kCompareAllLimit = 32;  // below: searching is comparing with everything

Value TakeFill(Builder& b, Value taken, Value in_range) {
  return b.Select(in_range, taken, OutOfRangeFill(b, taken.dtype(), taken.dims()));
}

Value Running(Builder& b, Value x, bool sum) {
  const int64_t last = x.rank() - 1;
  const int64_t n = x.dim(last);
  Value neutral = sum ? b.Zero(x.dtype()) : b.MinOf(x.dtype());
  for (int64_t step = 1; step < n; step *= 2) {
    Dims low(x.rank(), 0), high(x.rank(), 0);
    low[last] = step;
    high[last] = -step;
    Value shifted = b.Pad(x, neutral, low, high);
    x = sum ? b.Add(x, shifted) : b.Maximum(x, shifted);
    x = b.OptimizationBarrier({x})[0];  // or a fused chain recomputes each step twice
  }
  return x;
}

}  // namespace

Value AtLeast1d(Builder& b, Value x) { return x.rank() == 0 ? b.Reshape(x, {1}) : x; }
Value ToIndex(Builder& b, Value index) { return b.Convert(index, DType::kInt64); }

Value WrapIndex(Builder& b, Value index, int64_t size) {
  index = ToIndex(b, index);
  Value negative = b.Compare(index, b.Zero(DType::kInt64, index.dims()), Direction::kLt);
  return b.Select(negative, b.Add(index, b.ConstantInt(DType::kInt64, size, index.dims())), index);
}

Value InRange(Builder& b, Value index, int64_t size) {
  index = ToIndex(b, index);
  return b.And(b.Compare(index, b.Zero(DType::kInt64, index.dims()), Direction::kGe),
               b.Compare(index, b.ConstantInt(DType::kInt64, size, index.dims()), Direction::kLt));
}

Value OutOfRangeFill(Builder& b, DType dtype, const Dims& dims) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (IsComplex(dtype)) return b.ConstantComplex(dtype, {nan, nan}, dims);
  if (IsFloat(dtype)) return b.Constant(dtype, nan, dims);
  return b.MinOf(dtype, dims);
}

Value TakeDim(Builder& b, Value x, Value index, int64_t dim, IndexTrust trust) {
  const int64_t q = index.rank();
  Dims out(x.dims().begin(), x.dims().begin() + dim);
  out.insert(out.end(), index.dims().begin(), index.dims().end());
  out.insert(out.end(), x.dims().begin() + dim + 1, x.dims().end());
  if (Product(out) == 0) return b.Zero(x.dtype(), out);
  if (x.dim(dim) == 0) return OutOfRangeFill(b, x.dtype(), out);
  index = ToIndex(b, index);
  GatherDims dims;
  Dims index_dims = index.dims();
  index_dims.push_back(1);
  dims.index_vector_dim = q;
  dims.collapsed_slice_dims = {dim};
  dims.start_index_map = {dim};
  Dims sizes = x.dims();
  sizes[dim] = 1;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != dim) dims.offset_dims.push_back(i < dim ? i : i + q - 1);
  }
  Value taken = b.Gather(x, b.Reshape(index, index_dims), dims, sizes);
  if (trust == IndexTrust::kTrusted) return taken;
  Dims at(q);
  for (int64_t i = 0; i < q; ++i) at[i] = dim + i;
  return TakeFill(b, taken, b.BroadcastInDim(InRange(b, index, x.dim(dim)), out, at));
}

Value TakeAlong(Builder& b, Value x, Value index, int64_t dim, IndexTrust trust) {
  if (index.numel() == 0) return b.Zero(x.dtype(), index.dims());
  if (x.numel() == 0) return OutOfRangeFill(b, x.dtype(), index.dims());
  index = ToIndex(b, index);
  const int64_t rank = x.rank();
  Dims limit = index.dims();
  limit[dim] = x.dim(dim);
  if (limit != x.dims()) x = b.Slice(x, Dims(rank, 0), limit);
  GatherDims dims;
  dims.collapsed_slice_dims = {dim};
  dims.start_index_map = {dim};
  dims.index_vector_dim = rank;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == dim) continue;
    dims.operand_batching_dims.push_back(i);
    dims.start_indices_batching_dims.push_back(i);
  }
  Dims index_dims = index.dims();
  index_dims.push_back(1);
  Value taken = b.Gather(x, b.Reshape(index, index_dims), dims, Dims(rank, 1));
  if (trust == IndexTrust::kTrusted) return taken;
  return TakeFill(b, taken, InRange(b, index, x.dim(dim)));
}

Value CombineSet(Builder&, Value, Value update) { return update; }
Value CombineAdd(Builder& b, Value old_value, Value update) { return b.Add(old_value, update); }
Value CombineMul(Builder& b, Value old_value, Value update) { return b.Multiply(old_value, update); }
Value CombineMax(Builder& b, Value old_value, Value update) { return MaxNan(b, old_value, update); }
Value CombineMin(Builder& b, Value old_value, Value update) { return MinNan(b, old_value, update); }

Value PutDim(Builder& b, Value x, Value index, Value updates, int64_t dim, Combine combine) {
  if (updates.numel() == 0 || x.numel() == 0) return x;
  ScatterDims dims;
  dims.inserted_window_dims = {dim};
  dims.scatter_dims_to_operand_dims = {dim};
  dims.index_vector_dim = 1;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != dim) dims.update_window_dims.push_back(i);
  }
  auto body = [&](const Values& v) { return Values{combine(b, v[0], v[1])}; };
  return b.Scatter(x, b.Reshape(ToIndex(b, index), {index.numel(), 1}), updates, dims, body);
}

Value PutAlong(Builder& b, Value x, Value index, Value updates, int64_t dim, Combine combine) {
  if (index.numel() == 0 || x.numel() == 0) return x;
  index = ToIndex(b, index);
  const int64_t rank = x.rank();
  Dims box = index.dims();
  box[dim] = x.dim(dim);
  if (box != x.dims()) {
    Value part = PutAlong(b, b.Slice(x, Dims(rank, 0), box), index, updates, dim, combine);
    return b.DynamicUpdateSlice(x, part, Values(rank, b.Zero(DType::kInt64)));
  }
  if (index.dim(dim) <= kUnrollLimit) {
    Value position = b.Iota(DType::kInt64, x.dims(), dim);
    Dims all(rank);
    for (int64_t i = 0; i < rank; ++i) all[i] = i;
    for (int64_t k = 0; k < index.dim(dim); ++k) {
      Value at = b.BroadcastInDim(b.SliceDim(index, dim, k, k + 1), x.dims(), all);
      Value update = b.BroadcastInDim(b.SliceDim(updates, dim, k, k + 1), x.dims(), all);
      x = b.Select(b.Compare(position, at, Direction::kEq), combine(b, x, update), x);
    }
    return x;
  }
  if (b.target() ==
      Target::kCpu) {  // the CPU plugins scatter into one dim about three times as fast as with batch dims
    const Dims strides = ContiguousStrides(x.dims());
    Value flat = b.Zero(DType::kInt64, index.dims());
    for (int64_t i = 0; i < rank; ++i) {
      Value at = i == dim ? index : b.Iota(DType::kInt64, index.dims(), i);
      flat = b.Add(flat, b.Multiply(at, b.ConstantInt(DType::kInt64, strides[i], index.dims())));
    }
    flat = b.Select(InRange(b, index, x.dim(dim)), flat, b.ConstantInt(DType::kInt64, x.numel(), index.dims()));
    const int64_t n = index.numel();
    Value result = PutDim(b, b.Reshape(x, {x.numel()}), b.Reshape(flat, {n}), b.Reshape(updates, {n}), 0, combine);
    return b.Reshape(result, x.dims());
  }
  ScatterDims dims;
  dims.inserted_window_dims = {dim};
  dims.scatter_dims_to_operand_dims = {dim};
  dims.index_vector_dim = rank;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == dim) continue;
    dims.input_batching_dims.push_back(i);
    dims.scatter_indices_batching_dims.push_back(i);
  }
  Dims index_dims = index.dims();
  index_dims.push_back(1);
  auto body = [&](const Values& v) { return Values{combine(b, v[0], v[1])}; };
  return b.Scatter(x, b.Reshape(index, index_dims), updates, dims, body);
}

Value RunningSum(Builder& b, Value x) { return Running(b, x, true); }
Value RunningMax(Builder& b, Value x) { return Running(b, x, false); }

Value CountTrue(Builder& b, Value mask) {
  const int64_t n = mask.numel();
  if (n <= kBlock) return RunningSum(b, b.Convert(mask, DType::kInt64));
  // Partial sums of up to kBlock ones are exact in every matmul precision.
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  Value ones = b.Convert(mask, DType::kFloat32);
  if (blocks * kBlock != n) ones = b.Pad(ones, b.Zero(DType::kFloat32), {0}, {blocks * kBlock - n});
  ones = b.Reshape(ones, {blocks, kBlock});
  Value upper = b.Convert(
      b.Compare(b.Iota(DType::kInt32, {kBlock, kBlock}, 0), b.Iota(DType::kInt32, {kBlock, kBlock}, 1), Direction::kLe),
      DType::kFloat32);
  Value inner = b.Convert(b.DotGeneral(ones, upper, {{}, {}, {1}, {0}}, DType::kFloat32), DType::kInt64);
  Value totals = b.Reshape(b.SliceDim(inner, 1, kBlock - 1, kBlock), {blocks});
  Value before = b.Subtract(RunningSum(b, totals), totals);
  Value all = b.Add(inner, b.BroadcastInDim(before, {blocks, kBlock}, {0}));
  all = b.Reshape(all, {blocks * kBlock});
  return blocks * kBlock == n ? all : b.SliceDim(all, 0, 0, n);
}

Value SearchSorted(Builder& b, Value sorted, Value values, bool right) {
  const int64_t n = sorted.dim(-1);
  if (n == 0 || values.numel() == 0) return b.Zero(DType::kInt64, values.dims());
  const Dims result_dims = values.dims();
  // As rows: sorted [r, n], values [r, m].
  const int64_t rows = sorted.rank() == 1 ? 1 : sorted.numel() / n;
  const int64_t m = values.numel() / rows;
  sorted = b.Reshape(sorted, {rows, n});
  values = b.Reshape(values, {rows, m});
  auto before = [&](Value element, Value value) {
    return b.Not(b.Compare(element, value, right ? Direction::kGt : Direction::kGe));
  };
  if (n <= kCompareAllLimit) {
    const Dims dims = {rows, m, n};
    Value less = before(b.BroadcastInDim(sorted, dims, {0, 2}), b.BroadcastInDim(values, dims, {0, 1}));
    return b.Reshape(b.Reduce(b.Convert(less, DType::kInt64), Builder::Reducer::kAdd, {2}), result_dims);
  }
  const int64_t steps = std::bit_width(static_cast<uint64_t>(n));
  const Dims dims = {rows, m};
  Values state = {b.Zero(DType::kInt32), b.Zero(DType::kInt64, dims), b.ConstantInt(DType::kInt64, n, dims), sorted,
                  values};
  Values done = b.While(
      state,
      [&](const Values& v) { return Values{b.Compare(v[0], b.ConstantInt(DType::kInt32, steps), Direction::kLt)}; },
      [&](const Values& v) {
        Value low = v[1], high = v[2];
        Value open = b.Compare(low, high, Direction::kLt);
        Value middle = b.ShiftRightLogical(b.Add(low, high), b.One(DType::kInt64, dims));
        Value element = TakeAlong(b, v[3], middle, 1, IndexTrust::kTrusted);
        Value advance = before(element, v[4]);
        Value new_low = b.Select(b.And(open, advance), b.Add(middle, b.One(DType::kInt64, dims)), low);
        Value new_high = b.Select(b.And(open, b.Not(advance)), middle, high);
        return Values{b.Add(v[0], b.One(DType::kInt32)), new_low, new_high, v[3], v[4]};
      });
  return b.Reshape(done[1], result_dims);
}

std::pair<Value, Values> Compact(Builder& b, Value mask, const Values& payloads) {
  const int64_t n = mask.numel();
  if (n == 0) return {b.Zero(DType::kInt64), payloads};
  Value ranks = CountTrue(b, mask);
  Value count = b.Reshape(b.SliceDim(ranks, 0, n - 1, n), {});
  // The k-th true goes to place k; the others go past the end, where the scatter drops them.
  Value place = b.Select(mask, b.Subtract(ranks, b.One(DType::kInt64, {n})), b.ConstantInt(DType::kInt64, n, {n}));
  Values moved;
  for (const Value& payload : payloads) {
    moved.push_back(PutDim(b, b.Zero(payload.dtype(), payload.dims()), place, payload, 0, CombineSet));
  }
  return {count, moved};
}

std::span<const OpRow> IndexingRows() {
  static const std::vector<OpRow> rows = [] {
    std::vector<OpRow> all = GatherRows();
    for (const auto& part : {ScatterRows(), SelectionRows(), EmbeddingBagRows()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rows;
}

}  // namespace torch_tpu
