// Joining, repeating, reversing and rearranging.
#include "lowering/shape.h"

#include <algorithm>

#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"

namespace torch_tpu {

namespace {

DType CommonType(const Values& xs) {
  DType dtype = xs[0].dtype();
  for (const Value& x : xs) dtype = PromoteTypes(dtype, x.dtype());
  return dtype;
}

Values Concat(Builder& b, const Args& a) {
  Values xs = a.tensors(0);
  Check(!xs.empty(), "torch.cat(): expected a non-empty list of Tensors");
  const DType dtype = CommonType(xs);
  // 1-d tensors without elements join anything.
  Values joined;
  for (const Value& x : xs) {
    if (x.rank() != 1 || x.dim(0) != 0) joined.push_back(Cast(b, x, dtype));
  }
  if (joined.empty()) return {Cast(b, xs[0], dtype)};
  const int64_t dim = WrapDim(a.integer_or(1, 0), joined[0].rank());
  return {joined.size() == 1 ? joined[0] : b.Concatenate(joined, dim)};
}

Values Stack(Builder& b, const Args& a) {
  Values xs = a.tensors(0);
  Check(!xs.empty(), "stack expects a non-empty TensorList");
  const DType dtype = CommonType(xs);
  const int64_t dim = WrapDim(a.integer_or(1, 0), xs[0].rank() + 1);
  for (Value& x : xs) x = Unsqueeze(b, Cast(b, x, dtype), dim);
  return {xs.size() == 1 ? xs[0] : b.Concatenate(xs, dim)};
}

Values Flip(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  if (x.rank() == 0) return {x};
  const Dims& asked = a.ints(1);
  if (asked.empty()) return {x};
  return {b.Reverse(x, WrapDims(asked, x.rank()))};
}

Value RollDim(Builder& b, Value x, int64_t dim, int64_t shift) {
  const int64_t n = x.dim(dim);
  if (n == 0) return x;
  const int64_t start = ((-shift) % n + n) % n;
  if (start == 0) return x;
  return b.Concatenate({b.SliceDim(x, dim, start, n), b.SliceDim(x, dim, 0, start)}, dim);
}

Values Roll(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims& shifts = a.ints(1);
  const Dims dims = a.ints_or(2, {});
  if (x.numel() == 0) return {x};
  if (dims.empty()) {
    Check(shifts.size() == 1, "roll: shifts and dimensions must align. shifts: ", shifts.size(), ", dims:0");
    return {b.Reshape(RollDim(b, b.Reshape(x, {x.numel()}), 0, shifts[0]), x.dims())};
  }
  Check(shifts.size() == dims.size(), "roll: shifts and dimensions must align. shifts: ", shifts.size(),
        ", dims:", dims.size());
  for (size_t i = 0; i < dims.size(); ++i) x = RollDim(b, x, WrapDim(dims[i], x.rank()), shifts[i]);
  return {x};
}

Values Repeat(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims& repeats = a.ints(1);
  const int64_t rank = static_cast<int64_t>(repeats.size());
  Check(rank >= x.rank(), "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  Dims wide, at, out;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t own = i - (rank - x.rank());
    const int64_t size = own < 0 ? 1 : x.dim(own);
    wide.push_back(repeats[i]);
    if (own >= 0) {
      at.push_back(static_cast<int64_t>(wide.size()));
      wide.push_back(size);
    }
    out.push_back(repeats[i] * size);
  }
  return {b.Reshape(b.BroadcastInDim(x, wide, at), out)};
}

Values Triangle(Builder& b, const Args& a, bool lower) {
  Value x = a.tensor(0);
  if (x.numel() == 0) return {x};
  const int64_t diagonal = a.integer_or(1, 0);
  const Dims plane = {x.dim(-2), x.dim(-1)};
  Value row = b.Iota(DType::kInt64, plane, 0), column = b.Iota(DType::kInt64, plane, 1);
  Value limit = b.Add(row, b.ConstantInt(DType::kInt64, diagonal, plane));
  Value keep = b.Compare(column, limit, lower ? Direction::kLe : Direction::kGe);
  keep = b.BroadcastInDim(keep, x.dims(), {x.rank() - 2, x.rank() - 1});
  return {b.Select(keep, x, b.Zero(x.dtype(), x.dims()))};
}

Values Tril(Builder& b, const Args& a) { return Triangle(b, a, true); }
Values Triu(Builder& b, const Args& a) { return Triangle(b, a, false); }

Values Trace(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  Check(x.rank() == 2, "trace: expected a matrix, but got tensor with dim ", x.rank());
  Value on = b.Compare(b.Iota(DType::kInt64, x.dims(), 0), b.Iota(DType::kInt64, x.dims(), 1), Direction::kEq);
  Value wide = IsInteger(x.dtype()) || IsBool(x.dtype()) ? Cast(b, x, DType::kInt64) : ToCompute(b, x);
  Value sum = Sum(b, b.Select(on, wide, b.Zero(wide.dtype(), x.dims())), {0, 1});
  return {IsFloat(x.dtype()) ? b.Convert(sum, x.dtype()) : sum};
}

Values Cross(Builder& b, const Args& a) {
  Values xs = Promoted(b, a, {0, 1});
  const int64_t dim = WrapDim(a.integer_or(2, -1), xs[0].rank());
  Check(xs[0].dim(dim) == 3, "linalg.cross: inputs dimension ", dim, " must have length 3, got ", xs[0].dim(dim));
  const DType dtype = xs[0].dtype();
  Value x = ToCompute(b, xs[0]), y = ToCompute(b, xs[1]);
  Value first = b.Multiply(RollDim(b, x, dim, -1), RollDim(b, y, dim, -2));
  Value second = b.Multiply(RollDim(b, x, dim, -2), RollDim(b, y, dim, -1));
  return {b.Convert(b.Subtract(first, second), dtype)};
}

// Leading dims, then c, h, w.
struct Image {
  Dims lead;
  int64_t c, h, w;
};

Image ImageOf(const Value& x) {
  const int64_t r = x.rank();
  return {Dims(x.dims().begin(), x.dims().end() - 3), x.dim(r - 3), x.dim(r - 2), x.dim(r - 1)};
}

Value Rearrange(Builder& b, Value x, const Dims& lead, const Dims& inner, const Dims& order, const Dims& result) {
  const int64_t n = static_cast<int64_t>(lead.size());
  Dims wide = lead, permutation, out = lead;
  wide.insert(wide.end(), inner.begin(), inner.end());
  for (int64_t i = 0; i < n; ++i) permutation.push_back(i);
  for (int64_t i : order) permutation.push_back(n + i);
  out.insert(out.end(), result.begin(), result.end());
  return b.Reshape(b.Transpose(b.Reshape(x, wide), permutation), out);
}

Values PixelShuffle(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const int64_t r = a.integer(1);
  Image i = ImageOf(x);
  const int64_t c = i.c / (r * r);
  return {Rearrange(b, x, i.lead, {c, r, r, i.h, i.w}, {0, 3, 1, 4, 2}, {c, i.h * r, i.w * r})};
}

Values PixelUnshuffle(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const int64_t r = a.integer(1);
  Image i = ImageOf(x);
  return {Rearrange(b, x, i.lead, {i.c, i.h / r, r, i.w / r, r}, {0, 2, 4, 1, 3}, {i.c * r * r, i.h / r, i.w / r})};
}

Values ChannelShuffle(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const int64_t groups = a.integer(1), c = x.dim(1);
  const int64_t rest = c == 0 || x.dim(0) == 0 ? 0 : x.numel() / (x.dim(0) * c);
  if (x.numel() == 0) return {x};
  Value split = b.Transpose(b.Reshape(x, {x.dim(0), groups, c / groups, rest}), {0, 2, 1, 3});
  return {b.Reshape(split, x.dims())};
}

}  // namespace

std::vector<OpRow> RearrangeRows() {
  return {
      {"cat", Concat},
      {"stack", Stack},
      {"flip", Flip},
      {"roll", Roll},
      {"repeat", Repeat},
      {"tril", Tril},
      {"triu", Triu},
      {"trace", Trace},
      {"linalg_cross", Cross},
      {"pixel_shuffle", PixelShuffle},
      {"pixel_unshuffle", PixelUnshuffle},
      {"channel_shuffle", ChannelShuffle},
  };
}

std::span<const OpRow> ShapeRows() {
  static const std::vector<OpRow> rows = [] {
    std::vector<OpRow> all = RearrangeRows();
    for (const auto& part : {FactoryRows(), PadRows(), WindowRows(), SearchRows()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return rows;
}

}  // namespace torch_tpu
