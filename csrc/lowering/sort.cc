// Order: sort, topk, kthvalue, median, mode.
#include <numeric>

#include "base/error.h"
#include "lowering/host_call.h"
#include "lowering/indexing.h"
#include "lowering/math.h"
#include "lowering/sort.h"

namespace torch_tpu {

namespace {

// NaN is larger than everything, and -0.0 equals 0.0.
Value Before(Builder& b, Value x, Value y, bool descending) {
  Value order = b.Compare(x, y, descending ? Direction::kGt : Direction::kLt);
  if (!IsFloat(x.dtype())) return order;
  Value x_nan = b.Compare(x, x, Direction::kNe), y_nan = b.Compare(y, y, Direction::kNe);
  return b.Or(order, descending ? b.And(x_nan, b.Not(y_nan)) : b.And(b.Not(x_nan), y_nan));
}

// Small operands are better off inside the program.
bool HasHostForm(Builder& b, const Value& x) {
  constexpr int64_t kFrom = 4096;
  const DType dtype = x.dtype();
  const bool known = (IsFloat(dtype) && ItemSize(dtype) > 1) || IsSignedInt(dtype) || dtype == DType::kUInt8;
  return b.host_kernels() && known && x.numel() >= kFrom;
}

}  // namespace

std::pair<Value, Value> SortAlong(Builder& b, Value x, int64_t dim, bool descending) {
  const DType dtype = x.dtype();
  if (HasHostForm(b, x)) {
    const Values made = CallHost(b, "sort", {x}, {x.type(), {DType::kInt32, x.dims()}}, {dim, descending});
    return {made[0], made[1]};
  }
  if (IsBool(dtype)) x = b.Convert(x, DType::kUInt8);
  // Comparing halves as float32 is exact, and plugins compare it faster.
  Value key = ToCompute(b, x);
  Values sorted = b.Sort({key, b.Iota(DType::kInt32, x.dims(), dim)}, dim, true,
                         [&](const Values& v) { return Values{Before(b, v[0], v[1], descending)}; });
  return {b.Convert(sorted[0], dtype), sorted[1]};
}

Value RunStarts(Builder& b, Value sorted) {
  const int64_t last = sorted.rank() - 1, n = sorted.dim(last);
  Value changed = b.Compare(b.SliceDim(sorted, last, 1, n), b.SliceDim(sorted, last, 0, n - 1), Direction::kNe);
  Dims first = sorted.dims();
  first[last] = 1;
  return b.Concatenate({b.One(DType::kBool, first), changed}, last);
}

namespace {

// Calls emit with self as at least 1-d, and takes the added dim off its results.
template <class EmitOn>
Values On1d(Builder& b, Value x, const EmitOn& emit) {
  if (x.rank() > 0) return emit(x);
  Values results = emit(b.Reshape(x, {1}));
  for (Value& result : results) result = b.Reshape(result, {});
  return results;
}

Values SortDim(Builder& b, Value x, int64_t dim, bool descending) {
  return On1d(b, x, [&](Value v) {
    auto [values, indices] = SortAlong(b, v, WrapDim(dim, v.rank()), descending);
    return Values{values, b.Convert(indices, DType::kInt64)};
  });
}

// self, stable, dim, descending
Values SortStable(Builder& b, const Args& a) { return SortDim(b, a.tensor(0), a.integer_or(2, -1), a.flag(3)); }
// self, dim, descending
Values SortPlain(Builder& b, const Args& a) { return SortDim(b, a.tensor(0), a.integer_or(1, -1), a.flag(2)); }

// self, k, dim, largest, sorted
Values TopK(Builder& b, const Args& a) {
  const int64_t k = a.integer(1);
  const bool largest = a.has(3) ? a.flag(3) : true;
  return On1d(b, a.tensor(0), [&](Value x) {
    const int64_t dim = WrapDim(a.integer_or(2, -1), x.rank());
    Check(k >= 0 && k <= x.dim(dim), "topk: selected index k out of range");
    if (k == 1 && !IsBool(x.dtype())) {
      auto [value, index] = ArgReduce(b, x, dim, largest);
      return Values{KeepDims(b, value, x.dims(), {dim}), KeepDims(b, index, x.dims(), {dim})};
    }
    if (HasHostForm(b, x) && k > 0) {
      Dims dims = x.dims();
      dims[dim] = k;
      return CallHost(b, "topk", {x}, {{x.dtype(), dims}, {DType::kInt64, dims}}, {k, dim, largest});
    }
    if (b.target() == Target::kCpu && x.dim(dim) >= kSelectFrom && k > 0) return TopKOf(b, x, k, dim, largest);
    auto [values, indices] = SortAlong(b, x, dim, largest);
    return Values{b.SliceDim(values, dim, 0, k), b.Convert(b.SliceDim(indices, dim, 0, k), DType::kInt64)};
  });
}

Value DropDim(Builder& b, Value x, int64_t dim, bool keepdim) { return keepdim ? x : Squeeze(b, x, dim); }

// self, k, dim, keepdim
Values KthValue(Builder& b, const Args& a) {
  const int64_t k = a.integer(1);
  const bool keepdim = a.flag(3);
  Value self = a.tensor(0);
  const bool scalar = self.rank() == 0;
  Value x = AtLeast1d(b, self);
  const int64_t dim = WrapDim(a.integer_or(2, -1), x.rank());
  Check(k >= 1 && k <= x.dim(dim), "kthvalue(): selected number k out of range for dimension ", dim);
  auto [values, indices] = SortAlong(b, x, dim, false);
  Values out = {b.SliceDim(values, dim, k - 1, k), b.Convert(b.SliceDim(indices, dim, k - 1, k), DType::kInt64)};
  for (Value& v : out) v = scalar ? b.Reshape(v, {}) : DropDim(b, v, dim, keepdim);
  return out;
}

// The lower middle element along dim and its index, dim kept as one. NaN: the first one (propagate), or passed over.
std::pair<Value, Value> Middle(Builder& b, Value x, int64_t dim, bool ignore_nan) {
  auto [values, indices] = SortAlong(b, x, dim, false);
  const int64_t n = x.dim(dim);
  if (!IsFloat(x.dtype())) {
    const int64_t at = (n - 1) / 2;
    return {b.SliceDim(values, dim, at, at + 1), b.SliceDim(indices, dim, at, at + 1)};
  }
  // NaNs are last, in their order: the first is at position `valid`.
  Value valid = Sum(b, b.Convert(b.Not(IsNan(b, x)), DType::kInt64), {dim});
  Value one = b.One(DType::kInt64, valid.dims()), zero = b.Zero(DType::kInt64, valid.dims());
  Value all = b.ConstantInt(DType::kInt64, n, valid.dims());
  Value at;
  if (ignore_nan) {
    at = b.ShiftRightLogical(b.Maximum(b.Subtract(valid, one), zero), one);
  } else {
    at =
        b.Select(b.Compare(valid, all, Direction::kLt), valid, b.ConstantInt(DType::kInt64, (n - 1) / 2, valid.dims()));
  }
  at = KeepDims(b, at, x.dims(), {dim});
  return {TakeAlong(b, values, at, dim, IndexTrust::kTrusted), TakeAlong(b, indices, at, dim, IndexTrust::kTrusted)};
}

Values MedianAll(Builder& b, const Args& a, bool ignore_nan) {
  Value x = a.tensor(0);
  if (x.numel() == 0) return {OutOfRangeFill(b, x.dtype(), {})};
  return {b.Reshape(Middle(b, b.Reshape(x, {x.numel()}), 0, ignore_nan).first, {})};
}

// self, dim, keepdim
Values MedianDim(Builder& b, const Args& a, bool ignore_nan) {
  Value self = a.tensor(0);
  Value x = AtLeast1d(b, self);
  const int64_t dim = WrapDim(a.integer(1), x.rank());
  auto [value, index] = Middle(b, x, dim, ignore_nan);
  Values out = {value, b.Convert(index, DType::kInt64)};
  for (Value& v : out) v = self.rank() == 0 ? b.Reshape(v, {}) : DropDim(b, v, dim, a.flag(2));
  return out;
}

Values Median(Builder& b, const Args& a) { return MedianAll(b, a, false); }
Values NanMedian(Builder& b, const Args& a) { return MedianAll(b, a, true); }
Values MedianAlong(Builder& b, const Args& a) { return MedianDim(b, a, false); }
Values NanMedianAlong(Builder& b, const Args& a) { return MedianDim(b, a, true); }

// self, dim, keepdim: the most frequent value, the smallest of several, and where it is last
Values Mode(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  Value x = AtLeast1d(b, self);
  const int64_t dim = WrapDim(a.integer_or(1, -1), x.rank()), last = x.rank() - 1;
  Dims swap(x.rank());
  std::iota(swap.begin(), swap.end(), 0);
  std::swap(swap[dim], swap[last]);
  x = b.Transpose(x, swap);
  auto [values, indices] = SortAlong(b, x, last, false);
  Value position = b.Iota(DType::kInt64, x.dims(), last);
  Value start = RunningMax(b, b.Select(RunStarts(b, values), position, b.Zero(DType::kInt64, x.dims())));
  // How many equal ones end here; the run's end holds the full length, and the first longest run wins.
  Value length = b.Subtract(position, start);
  Value at = ArgReduce(b, length, last, true).second;
  at = KeepDims(b, at, x.dims(), {last});
  Values out = {TakeAlong(b, values, at, last, IndexTrust::kTrusted),
                b.Convert(TakeAlong(b, indices, at, last, IndexTrust::kTrusted), DType::kInt64)};
  for (Value& v : out) {
    v = b.Transpose(v, swap);
    v = self.rank() == 0 ? b.Reshape(v, {}) : DropDim(b, v, dim, a.flag(2));
  }
  return out;
}

std::vector<OpRow> OrderRows() {
  return {
      {"sort.stable", SortStable},
      {"sort", SortPlain},
      {"topk", TopK},
      {"kthvalue", KthValue},
      {"median", Median},
      {"nanmedian", NanMedian},
      {"median.dim", MedianAlong},
      {"nanmedian.dim", NanMedianAlong},
      {"mode", Mode},
  };
}

}  // namespace

std::span<const OpRow> SortRows() {
  static const std::vector<OpRow> rows = [] {
    std::vector<OpRow> all = OrderRows();
    const std::vector<OpRow> unique = UniqueRows();
    all.insert(all.end(), unique.begin(), unique.end());
    return all;
  }();
  return rows;
}

}  // namespace torch_tpu
