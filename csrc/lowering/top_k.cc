// topk by groups: the k largest elements lie in the k groups whose largest elements are largest. So only the groups'
// largest elements, and then k groups, are sorted.
#include <numeric>
#include <utility>

#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"
#include "lowering/sort.h"

namespace torch_tpu {

namespace {

constexpr int64_t kGroup = 16;

// Signed integers in the order of x's elements, NaN the largest and -0.0 equal to 0.0.
Value KeyOf(Builder& b, Value x) {
  const DType dtype = x.dtype();
  if (IsFloat(dtype)) {
    x = ToCompute(b, x);
    const bool wide = x.dtype() == DType::kFloat64;
    const DType integer = wide ? DType::kInt64 : DType::kInt32;
    auto whole = [&](int64_t v) { return b.ConstantInt(integer, v, x.dims()); };
    Value bits = b.BitcastConvert(x, integer);
    // By bits alone: plugins may take subnormal numbers for zero. Negative numbers' order is turned round.
    const int64_t magnitude = wide ? INT64_MAX : INT32_MAX;
    Value negative = b.Compare(bits, whole(0), Direction::kLt);
    Value key = b.Select(negative, b.Negate(b.And(bits, whole(magnitude))), bits);
    return b.Select(IsNan(b, x), whole(magnitude), key);
  }
  if (dtype == DType::kUInt64) {
    return b.BitcastConvert(b.Xor(x, b.ConstantInt(dtype, INT64_MIN, x.dims())), DType::kInt64);
  }
  return b.Convert(x, BitWidth(dtype) < 32 || dtype == DType::kInt32 ? DType::kInt32 : DType::kInt64);
}

// By key, the largest first, and by index among equals.
Value SortedIndices(Builder& b, Value key, Value index, int64_t k) {
  Values sorted = b.Sort({key, index}, 1, false, [&](const Values& v) {
    Value same = b.And(b.Compare(v[0], v[1], Direction::kEq), b.Compare(v[2], v[3], Direction::kLt));
    return Values{b.Or(b.Compare(v[0], v[1], Direction::kGt), same)};
  });
  return b.SliceDim(sorted[1], 1, 0, k);
}

// key [rows, n] -> int32 [rows, k]
Value Select(Builder& b, Value key, int64_t k) {
  const int64_t rows = key.dim(0), n = key.dim(1), groups = (n + kGroup - 1) / kGroup;
  if (n < kSelectFrom || 2 * k >= groups) return SortedIndices(b, key, b.Iota(DType::kInt32, key.dims(), 1), k);
  // What fills up the last group has indices behind all others, so it never comes before them.
  Value padded = b.Pad(key, b.MinOf(key.dtype()), {0, 0}, {0, groups * kGroup - n});
  Value most = b.Reduce(b.Reshape(padded, {rows, groups, kGroup}), Builder::Reducer::kMax, {2});
  const Dims cells = {rows, k, kGroup};
  Value group = b.BroadcastInDim(Select(b, most, k), cells, {0, 1});
  Value index = b.Add(b.Multiply(group, b.ConstantInt(DType::kInt32, kGroup, cells)), b.Iota(DType::kInt32, cells, 2));
  index = b.Reshape(index, {rows, k * kGroup});
  return SortedIndices(b, TakeAlong(b, padded, index, 1, IndexTrust::kTrusted), index, k);
}

}  // namespace

Values TopKOf(Builder& b, Value x, int64_t k, int64_t dim, bool largest) {
  Dims order(x.rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[dim], order.back());
  Value last = b.Transpose(x, order);
  const int64_t n = last.dim(-1), rows = last.numel() / n;
  Value flat = b.Reshape(last, {rows, n}), key = KeyOf(b, flat);
  Value index = Select(b, largest ? key : b.Not(key), k);
  Dims out = last.dims();
  out.back() = k;
  auto back = [&](Value v) { return b.Transpose(b.Reshape(v, out), order); };
  return {back(TakeAlong(b, flat, index, 1, IndexTrust::kTrusted)), back(b.Convert(index, DType::kInt64))};
}

}  // namespace torch_tpu
