// segment_reduce: neighbouring entries along one dim, cut into segments, each reduced to one entry.
#include <limits>
#include <string>

#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"
#include "lowering/reduction.h"

namespace torch_tpu {

namespace {

enum class Mode : uint8_t { kSum, kMean, kMax, kMin, kProd };

Mode ModeOf(const std::string& text) {
  if (text == "sum") return Mode::kSum;
  if (text == "mean") return Mode::kMean;
  if (text == "max") return Mode::kMax;
  if (text == "min") return Mode::kMin;
  Check(text == "prod", "unsupported reduction given! ", text);
  return Mode::kProd;
}

// data seen as [outer, length, inner], with the segments of each outer row. An entry behind the last segment belongs to
// segment `count`, which is cut off.
struct Segments {
  int64_t outer, length, inner, count;
  Value lengths;  // int64 [outer * (count + 1)], the last one zero
  Value place;    // int64 [outer * length]: row of [outer * (count + 1), inner]

  int64_t places() const { return outer * (count + 1); }
};

// The lengths [.., count], or the offsets [.., count + 1]; their leading dims are data's before the axis.
Segments SegmentsOf(Builder& b, const Value& data, Value lengths, Value offsets, int64_t axis) {
  Segments s{1, data.dim(axis), 1, 0, {}, {}};
  for (int64_t i = 0; i < data.rank(); ++i) (i < axis ? s.outer : s.inner) *= i == axis ? 1 : data.dim(i);
  Value end;  // [outer, count]
  if (lengths) {
    s.count = lengths.dim(-1);
    lengths = b.Reshape(ToIndex(b, lengths), {s.outer, s.count});
    end = s.count > 0 ? RunningSum(b, lengths) : lengths;
  } else {
    Check(static_cast<bool>(offsets), "segment_reduce(): Either lengths or offsets must be defined.");
    s.count = offsets.dim(-1) - 1;
    offsets = b.Reshape(ToIndex(b, offsets), {s.outer, s.count + 1});
    end = b.SliceDim(offsets, 1, 1, s.count + 1);
    lengths = b.Subtract(end, b.SliceDim(offsets, 1, 0, s.count));
  }
  s.lengths = b.Reshape(b.Pad(lengths, b.Zero(DType::kInt64), {0, 0}, {0, 1}), {s.places()});
  const Dims dims = {s.outer, s.length};
  Value segment =
      s.count > 0 ? SearchSorted(b, end, b.Iota(DType::kInt64, dims, 1), true) : b.Zero(DType::kInt64, dims);
  Value row = b.Multiply(b.Iota(DType::kInt64, dims, 0), b.ConstantInt(DType::kInt64, s.count + 1, dims));
  s.place = b.Reshape(b.Add(row, segment), {s.outer * s.length});
  return s;
}

double Neutral(Mode mode) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return mode == Mode::kMax ? -kInf : mode == Mode::kMin ? kInf : mode == Mode::kProd ? 1 : 0;
}

Combine CombinerOf(Mode mode) {
  switch (mode) {
    case Mode::kMax:
      return CombineMax;
    case Mode::kMin:
      return CombineMin;
    case Mode::kProd:
      return CombineMul;
    default:
      return CombineAdd;
  }
}

Value InitialOf(Builder& b, const Args& a, size_t i, Mode mode, DType dtype) {
  return a.has(i) ? a.scalar(b, i, dtype) : b.Constant(dtype, Neutral(mode));
}

// data, reduce, lengths, indices, offsets, axis, unsafe, initial
Values SegmentReduce(Builder& b, const Args& a) {
  Value given = a.tensor(0), data = ToCompute(b, given);
  const Mode mode = ModeOf(a.text(1));
  const int64_t axis = WrapDim(a.integer_or(5, 0), data.rank());
  Segments s = SegmentsOf(b, data, a.tensor_or_absent(2), a.tensor_or_absent(4), axis);
  const Dims dims = {s.places(), s.inner};
  Value start = b.BroadcastTo(InitialOf(b, a, 7, mode, data.dtype()), dims);
  Value rows = b.Reshape(data, {s.outer * s.length, s.inner});
  Value total = PutDim(b, start, s.place, rows, 0, CombinerOf(mode));
  if (mode == Mode::kMean) {  // an empty segment is 0 / 0, or what was given
    Value length = b.Convert(s.lengths, data.dtype());
    if (a.has(7)) length = b.Maximum(length, Full(b, length, 1));
    total = b.Divide(total, b.BroadcastInDim(length, dims, {0}));
  }
  Dims out = given.dims();
  out[axis] = s.count;
  total = b.SliceDim(b.Reshape(total, {s.outer, s.count + 1, s.inner}), 1, 0, s.count);
  return {b.Convert(b.Reshape(total, out), given.dtype())};
}

// grad, output, data, reduce, lengths, offsets, axis, initial
Values SegmentReduceBackward(Builder& b, const Args& a) {
  Value given = a.tensor(2), data = ToCompute(b, given);
  const Mode mode = ModeOf(a.text(3));
  const int64_t axis = WrapDim(a.integer_or(6, 0), data.rank());
  Segments s = SegmentsOf(b, data, a.tensor_or_absent(4), a.tensor_or_absent(5), axis);
  const DType dtype = data.dtype();
  const Dims dims = {s.outer * s.length, s.inner}, wide = {s.places(), s.inner};
  auto spread = [&](Value per_place) { return TakeDim(b, per_place, s.place, 0, IndexTrust::kTrusted); };
  auto entries = [&](Value per_segment) {  // a zero for the segment that is none
    Value rows = b.Reshape(Cast(b, per_segment, dtype), {s.outer, s.count, s.inner});
    return spread(b.Reshape(b.Pad(rows, b.Zero(dtype), {0, 0, 0}, {0, 1, 0}), wide));
  };
  Value rows = b.Reshape(data, dims), grad = entries(a.tensor(0)), result;
  if (mode == Mode::kSum) {
    result = grad;
  } else if (mode == Mode::kMean) {
    Value length = b.Convert(s.lengths, dtype);
    result = b.Divide(grad, spread(b.BroadcastInDim(b.Maximum(length, Full(b, length, 1)), wide, {0})));
  } else if (mode == Mode::kProd) {
    // Where dividing by the entry does not give the product of the others, it is put together from the rest.
    Value zero = Eq(b, rows, 0), nan = IsNan(b, rows), odd = b.Or(zero, nan);
    Value start = b.BroadcastTo(InitialOf(b, a, 7, mode, dtype), wide);
    Value rest = spread(PutDim(b, start, s.place, b.Select(odd, Full(b, rows, 1), rows), 0, CombineMul));
    auto others = [&](Value mask) {
      Value ones = b.Convert(mask, dtype);
      return b.Subtract(spread(PutDim(b, b.Zero(dtype, wide), s.place, ones, 0, CombineAdd)), ones);
    };
    Value exclusive = b.Select(Eq(b, others(zero), 0), rest, Full(b, rest, 0));
    exclusive = b.Select(Eq(b, others(nan), 0), exclusive, Full(b, rest, std::numeric_limits<double>::quiet_NaN()));
    result = b.Multiply(grad, b.Select(odd, exclusive, b.Divide(entries(a.tensor(1)), rows)));
  } else {
    Value hit = b.Or(b.Compare(rows, entries(a.tensor(1)), Direction::kEq), IsNan(b, rows));
    Value count = spread(PutDim(b, b.Zero(dtype, wide), s.place, b.Convert(hit, dtype), 0, CombineAdd));
    // Among equals PyTorch divides positive gradients only.
    Value shared = b.Divide(grad, b.Maximum(count, Full(b, count, 1)));
    Value chosen = b.Select(b.Compare(grad, Full(b, grad, 0), Direction::kGt), shared, grad);
    result = b.Select(hit, chosen, Full(b, grad, 0));
  }
  Value inside = b.BroadcastInDim(b.Compare(b.Remainder(s.place, b.ConstantInt(DType::kInt64, s.count + 1, {dims[0]})),
                                            b.ConstantInt(DType::kInt64, s.count, {dims[0]}), Direction::kLt),
                                  dims, {0});
  result = b.Select(inside, result, b.Zero(dtype, dims));
  return {b.Convert(b.Reshape(result, given.dims()), given.dtype())};
}

constexpr OpRow kRows[] = {
    {"segment_reduce", SegmentReduce},
    {"_segment_reduce_backward", SegmentReduceBackward},
};

}  // namespace

std::span<const OpRow> SegmentRows() { return kRows; }

}  // namespace torch_tpu
