// The device half of unique: results are padded to the length of the operand, with the count of those that matter.
#include "lowering/indexing.h"
#include "lowering/linalg.h"
#include "lowering/math.h"
#include "lowering/sort.h"

namespace torch_tpu {

namespace {

// From sorted entries ([n, ..]), where groups of equal ones start, and where each entry came from (absent: its place):
// (count, one entry of each group, the group of each original entry, entries of each group).
Values Groups(Builder& b, Value sorted, Value starts, Value source) {
  const int64_t n = starts.numel();
  Value group = b.Subtract(CountTrue(b, starts), b.One(DType::kInt64, {n}));
  Value position = b.Iota(DType::kInt64, {n}, 0);
  auto [count, moved] = Compact(b, starts, {sorted, position});
  // A group's length: to the next group's start, or to the end.
  Value next = b.Concatenate({b.SliceDim(moved[1], 0, 1, n), b.ConstantInt(DType::kInt64, n, {1})}, 0);
  Value is_last =
      b.Compare(b.Add(position, b.One(DType::kInt64, {n})), b.BroadcastInDim(count, {n}, {}), Direction::kGe);
  next = b.Select(is_last, b.ConstantInt(DType::kInt64, n, {n}), next);
  Value counts = b.Subtract(next, moved[1]);
  Value inverse = group;
  if (source) {  // back to where the elements came from: sorting by source inverts the permutation
    inverse = b.Sort({source, group}, 0, true,
                     [&](const Values& v) { return Values{b.Compare(v[0], v[1], Direction::kLt)}; })[1];
  }
  return {count, moved[0], inverse, counts};
}

// x (1-d), consecutive -> (count, values, inverse int64, counts int64), all of x's length; values in order unless
// consecutive
Values Unique(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const int64_t n = x.numel();
  x = b.Reshape(x, {n});
  if (n == 0) {
    Value none = b.Zero(DType::kInt64, {0});
    return {b.Zero(DType::kInt64), x, none, none};
  }
  Value sorted = x, source;
  if (!a.flag(1)) std::tie(sorted, source) = SortAlong(b, x, 0, false);
  return Groups(b, sorted, RunStarts(b, sorted), source);  // NaN differs from NaN, as in PyTorch
}

// x [n, m], consecutive -> the same for rows, in lexicographic order unless consecutive
Values UniqueRowsOf(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const int64_t n = x.dim(0), m = x.dim(1);
  Value source;
  if (!a.flag(1)) {
    // By one column after the other, the last one first: each sort is stable.
    source = ForEach(
        b, m, {b.Iota(DType::kInt32, {n}, 0), x},
        [&](Value k, const Values& state) -> Values {
          Value column =
              b.Reshape(b.DynamicSlice(state[1], {b.Zero(DType::kInt64), b.Convert(k, DType::kInt64)}, {n, 1}), {n});
          Value order = SortAlong(b, TakeDim(b, column, state[0], 0, IndexTrust::kTrusted), 0, false).second;
          return {TakeDim(b, state[0], order, 0, IndexTrust::kTrusted), state[1]};
        },
        /*backwards=*/true)[0];
    x = TakeDim(b, x, source, 0, IndexTrust::kTrusted);
  }
  Value changed = b.Reduce(b.Compare(b.SliceDim(x, 0, 1, n), b.SliceDim(x, 0, 0, n - 1), Direction::kNe),
                           Builder::Reducer::kOr, {1});
  return Groups(b, x, b.Concatenate({b.One(DType::kBool, {1}), changed}, 0), source);
}

}  // namespace

std::vector<OpRow> UniqueRows() {
  return {
      {"tpu::unique", Unique, kInternal},
      {"tpu::unique_rows", UniqueRowsOf, kInternal},
  };
}

}  // namespace torch_tpu
