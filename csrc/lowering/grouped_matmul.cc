#include "lowering/grouped_matmul.h"

#include <algorithm>

#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"

namespace torch_tpu {
namespace {

constexpr int64_t kLargestTile = 128;

// How `rows` rows in groups that end at `ends` [groups] lie in tiles of equal height, each of one group. Sizes depend
// on `rows` and `groups` alone, so that one program serves all ways to divide them: at most one tile a group is not
// full.
class Tiling {
 public:
  Tiling(Builder& b, Value offsets, int64_t rows) : b_(b), rows_(rows), groups_(offsets.dim(0)) {
    while (height_ < kLargestTile && height_ * groups_ < rows) height_ *= 2;
    count_ = std::min(rows, rows / height_ + groups_);
    Value ends = b.Convert(offsets, DType::kInt64);
    Value begins = b.Concatenate({b.Zero(DType::kInt64, {1}), b.SliceDim(ends, 0, 0, groups_ - 1)}, 0);
    Value tiles = b.Divide(b.Add(b.Subtract(ends, begins), Number(height_ - 1, {groups_})), Number(height_, {groups_}));
    Value tile_ends = RunningSum(b, tiles);
    Value tile_begins = b.Subtract(tile_ends, tiles);

    Value tile = b.Iota(DType::kInt64, {count_}, 0);
    group_ = SearchSorted(b, tile_ends, tile, true);
    Value safe = AtMost(group_, groups_ - 1);
    Value first =
        b.Add(Take(begins, safe), b.Multiply(b.Subtract(tile, Take(tile_begins, safe)), Number(height_, {count_})));
    const Dims places = {count_, height_};
    Value row = b.Add(b.BroadcastInDim(first, places, {0}), b.Iota(DType::kInt64, places, 1));
    Value end = b.Select(b.Compare(group_, safe, Direction::kEq), Take(ends, safe), Number(0, {count_}));
    filled_ = b.Compare(row, b.BroadcastInDim(end, places, {0}), Direction::kLt);
    row_ = b.Reshape(AtMost(row, rows - 1), {count_ * height_});

    // The way back: where each row is.
    Value each = b.Iota(DType::kInt64, {rows}, 0);
    Value mine = SearchSorted(b, ends, each, true);
    grouped_ = b.Compare(mine, Number(groups_, {rows}), Direction::kLt);
    mine = AtMost(mine, groups_ - 1);
    place_ = b.Add(b.Multiply(Take(tile_begins, mine), Number(height_, {rows})), b.Subtract(each, Take(begins, mine)));
    place_ = AtMost(place_, count_ * height_ - 1);
  }

  int64_t groups() const { return groups_; }
  Value group() const { return group_; }  // [tiles]; `groups` for a tile of none
  // [groups, ..] -> [tiles, ..]
  Value OfGroup(Value x) const { return TakeDim(b_, x, AtMost(group_, groups_ - 1), 0, IndexTrust::kTrusted); }
  // [rows, n] -> [tiles, height, n]. Places that no row fills hold some other row.
  Value Spread(Value x) const {
    return b_.Reshape(TakeDim(b_, x, row_, 0, IndexTrust::kTrusted), {count_, height_, x.dim(1)});
  }
  Value Cleared(Value spread) const {  // and these are zeros
    return b_.Select(b_.BroadcastInDim(filled_, spread.dims(), {0, 1}), spread, Full(b_, spread, 0));
  }
  // [tiles, height, n] -> [rows, n]; zeros for rows of no group.
  Value Collect(Value x) const {
    const Dims dims = {rows_, x.dim(2)};
    Value found = TakeDim(b_, b_.Reshape(x, {count_ * height_, x.dim(2)}), place_, 0, IndexTrust::kTrusted);
    return b_.Select(b_.BroadcastInDim(grouped_, dims, {0}), found, Full(b_, found, 0));
  }

 private:
  Value Number(int64_t value, const Dims& dims) const { return b_.ConstantInt(DType::kInt64, value, dims); }
  Value AtMost(Value x, int64_t value) const { return b_.Minimum(x, Number(value, x.dims())); }
  Value Take(Value x, Value index) const { return TakeDim(b_, x, index, 0, IndexTrust::kTrusted); }

  Builder& b_;
  int64_t rows_, groups_, height_ = 1, count_ = 0;
  Value group_, filled_, row_, grouped_, place_;
};

// x [rows, k], y [groups, k, n] -> [rows, n]
Value RowsTimesMatrices(Builder& b, Value x, Value y, Value offsets, DType compute) {
  const Dims out = {x.dim(0), y.dim(2)};
  if (x.numel() == 0 || y.numel() == 0) return b.Zero(compute, out);
  const Tiling tiling(b, offsets, x.dim(0));
  return tiling.Collect(b.DotGeneral(tiling.Spread(x), tiling.OfGroup(y), {{0}, {0}, {2}, {1}}, compute));
}

// x [rows, m], y [rows, n] -> [groups, m, n]: each group's transposed x times its y
Value RowsTimesRows(Builder& b, Value x, Value y, Value offsets, DType compute) {
  const Dims out = {offsets.dim(0), x.dim(1), y.dim(1)};
  if (x.numel() == 0 || y.numel() == 0) return b.Zero(compute, out);
  const Tiling tiling(b, offsets, x.dim(0));
  Value products =
      b.DotGeneral(tiling.Cleared(tiling.Spread(x)), tiling.Cleared(tiling.Spread(y)), {{0}, {0}, {1}, {1}}, compute);
  return PutDim(b, b.Zero(compute, out), tiling.group(), products, 0, CombineAdd);  // no group: past the end, dropped
}

Value Swapped(Builder& b, Value x) { return b.Transpose(x, x.rank() == 2 ? Dims{1, 0} : Dims{0, 2, 1}); }

}  // namespace

Values EmitGroupedMm(Builder& b, const Args& a) {
  Value x = a.tensor(0), y = a.tensor(1), offsets = a.tensor_or_absent(2);
  const auto is_matrix = [](Value v) { return v.rank() == 2 || v.rank() == 3; };
  Check(is_matrix(x) && is_matrix(y), "_grouped_mm: expected operands of 2 or 3 dims, got sizes ", ToString(x.dims()),
        " and ", ToString(y.dims()));
  Check(x.dtype() == y.dtype() && IsFloat(x.dtype()), "_grouped_mm: expected operands of one floating dtype, got ",
        Name(x.dtype()), " and ", Name(y.dtype()));
  Check(x.dim(-1) == y.dim(-2), "_grouped_mm: expected contraction dims of one size, got sizes ", ToString(x.dims()),
        " and ", ToString(y.dims()));
  Check(!a.has(3), "_grouped_mm: expected no bias, got one");
  Check(static_cast<bool>(offsets) == (x.rank() == 2 || y.rank() == 2),
        "_grouped_mm: expected offs where an operand has 2 dims, and only there");
  const int64_t groups = x.rank() == 3 ? x.dim(0) : y.rank() == 3 ? y.dim(0) : offsets.numel();
  Check(!offsets || (offsets.rank() == 1 && offsets.dim(0) == groups), "_grouped_mm: expected ", groups,
        " offsets, got sizes ", offsets ? ToString(offsets.dims()) : "");
  Check(x.rank() == 2 || y.rank() == 2 || x.dim(0) == y.dim(0),
        "_grouped_mm: expected one number of groups, got sizes ", ToString(x.dims()), " and ", ToString(y.dims()));
  const DType out = a.dtype_or(4, x.dtype()), compute = ComputeType(x.dtype());
  Value product;
  if (x.rank() == 3 && y.rank() == 3) {
    product = BatchMatMul(b, x, y);
  } else if (y.rank() == 3) {
    product = RowsTimesMatrices(b, x, y, offsets, compute);
  } else if (x.rank() == 3) {
    product = Swapped(b, RowsTimesMatrices(b, Swapped(b, y), Swapped(b, x), offsets, compute));
  } else {
    product = RowsTimesRows(b, Swapped(b, x), y, offsets, compute);
  }
  return {Cast(b, product, out)};
}

}  // namespace torch_tpu
