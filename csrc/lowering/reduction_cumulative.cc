// Running sums, products, extremes.
//
// A scan goes in blocks: inside a block step by step, then over the blocks' totals by the same rule, then the two are
// combined. That is linear work and a logarithmic number of programs steps, in forms every plugin compiles well.
#include <cmath>
#include <functional>

#include "base/error.h"
#include "lowering/elementwise.h"
#include "lowering/reduction.h"

namespace torch_tpu {
namespace {

using Combine = std::function<Values(const Values& before, const Values& after)>;

constexpr int64_t kBlock = 16;

Values Map(const Values& xs, const std::function<Value(Value)>& f) {
  Values result;
  for (const Value& x : xs) result.push_back(f(x));
  return result;
}

// Inclusive scan along the last dim of all operands together. `combine` is associative and elementwise.
Values ScanLast(Builder& b, const Values& xs, const Combine& combine) {
  const int64_t dim = xs[0].rank() - 1, size = xs[0].dim(dim);
  auto slice = [&](const Values& from, int64_t axis, int64_t start, int64_t limit) {
    return Map(from, [&](Value x) { return b.SliceDim(x, axis, start, limit); });
  };
  if (size <= kBlock) {
    std::vector<Values> columns = {slice(xs, dim, 0, 1)};
    for (int64_t i = 1; i < size; ++i) columns.push_back(combine(columns.back(), slice(xs, dim, i, i + 1)));
    Values result;
    for (size_t k = 0; k < xs.size(); ++k) {
      Values parts;
      for (const Values& column : columns) parts.push_back(column[k]);
      result.push_back(b.Concatenate(parts, dim));
    }
    return result;
  }
  // The part that does not fill a block is padded: what stands there never reaches an earlier position.
  const int64_t blocks = (size + kBlock - 1) / kBlock;
  Values padded = Map(xs, [&](Value x) {
    Dims low(x.rank(), 0), high(x.rank(), 0);
    high[dim] = blocks * kBlock - size;
    Dims split = x.dims();
    split[dim] = blocks;
    split.push_back(kBlock);
    return b.Reshape(high[dim] == 0 ? x : b.Pad(x, b.Zero(x.dtype()), low, high), split);
  });
  Values inside = ScanLast(b, padded, combine);
  Values totals = Map(slice(inside, dim + 1, kBlock - 1, kBlock), [&](Value x) {
    Dims dims = x.dims();
    dims.pop_back();
    return b.Reshape(x, dims);
  });
  Values before = ScanLast(b, slice(totals, dim, 0, blocks - 1), combine);
  Values first = slice(inside, dim, 0, 1), rest = slice(inside, dim, 1, blocks);
  Values carried;
  for (size_t k = 0; k < xs.size(); ++k) carried.push_back(b.BroadcastTo(Unsqueeze(b, before[k], -1), rest[k].dims()));
  Values joined = combine(carried, rest);
  Values result;
  for (size_t k = 0; k < xs.size(); ++k) {
    Dims flat = xs[k].dims();
    flat[dim] = blocks * kBlock;
    Value whole = b.Reshape(b.Concatenate({first[k], joined[k]}, dim), flat);
    result.push_back(b.SliceDim(whole, dim, 0, size));
  }
  return result;
}

Values Scan(Builder& b, const Values& xs, int64_t dim, const Combine& combine) {
  if (xs[0].rank() == 0 || xs[0].numel() == 0 || xs[0].dim(dim) == 1) return xs;
  Dims order;
  for (int64_t i = 0; i < xs[0].rank(); ++i) order.push_back(i);
  std::swap(order[dim], order.back());  // its own inverse
  const bool last = dim == xs[0].rank() - 1;
  auto turn = [&](const Values& v) { return last ? v : Map(v, [&](Value x) { return b.Transpose(x, order); }); };
  return turn(ScanLast(b, turn(xs), combine));
}

template <BinaryFn F>
Values Cumulative(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const DType own = x.dtype();
  const DType dtype = a.dtype_or(2, IsInteger(own) || IsBool(own) ? DType::kInt64 : own);
  const int64_t dim = WrapDim(a.integer(1), x.rank());
  Values result =
      Scan(b, {ToCompute(b, Cast(b, x, dtype))}, dim,
           [&](const Values& before, const Values& after) -> Values { return {F(b, before[0], after[0])}; });
  return {Cast(b, result[0], dtype)};
}

Value Plus(Builder& b, Value x, Value y) { return b.Add(x, y); }
Value Times(Builder& b, Value x, Value y) { return b.Multiply(x, y); }

Values LogCumSumExp(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const int64_t dim = WrapDim(a.integer(1), x.rank());
  Values result = Scan(b, {ToCompute(b, x)}, dim, [&](const Values& before, const Values& after) -> Values {
    return {LogAddExp(b, before[0], after[0])};
  });
  return {Cast(b, result[0], x.dtype())};
}

// The last of equal values gives the index; once there is a NaN, the latest NaN does.
template <bool kLargest>
Values CumulativeExtreme(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const int64_t dim = WrapDim(a.integer(1), x.rank());
  if (x.rank() == 0) return {x, b.ConstantInt(DType::kInt64, 0)};
  Value index = b.Iota(DType::kInt64, x.dims(), dim);
  return Scan(b, {x, index}, dim, [&](const Values& before, const Values& after) -> Values {
    Value reaches = b.Compare(after[0], before[0], kLargest ? Direction::kGe : Direction::kLe);
    Value take = b.Or(IsNan(b, after[0]), b.And(b.Not(IsNan(b, before[0])), reaches));
    return {b.Select(take, after[0], before[0]), b.Select(take, after[1], before[1])};
  });
}

constexpr OpRow kRows[] = {
    {"cumsum", Cumulative<Plus>},    {"cumprod", Cumulative<Times>},      {"logcumsumexp", LogCumSumExp},
    {"_logcumsumexp", LogCumSumExp}, {"cummax", CumulativeExtreme<true>}, {"cummin", CumulativeExtreme<false>},
};

}  // namespace

std::span<const OpRow> CumulativeRows() { return kRows; }

}  // namespace torch_tpu
