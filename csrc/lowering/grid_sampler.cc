// grid_sampler: reading images of two or three spatial dims at positions of a grid.
#include "base/error.h"
#include "lowering/elementwise.h"
#include "lowering/indexing.h"

namespace torch_tpu {
namespace {

enum Interpolation { kLinear, kNearest, kCubic };
enum Padding { kZeros, kBorder, kReflection };

Value Between(Builder& b, Value x, double low, double high) {
  return b.Clamp(b.Constant(x.dtype(), low), x, b.Constant(x.dtype(), high));
}

// Position x folded back into [low / 2, high / 2].
Value Reflect(Builder& b, Value x, double low, double high) {
  if (low == high) return Full(b, x, 0);
  const double least = low / 2, span = (high - low) / 2;
  Value away = b.Abs(AddC(b, x, -least));
  Value turns = b.Floor(Mul(b, away, 1 / span));
  Value extra = b.Remainder(away, Full(b, away, span));
  Value half = Mul(b, turns, 0.5);
  Value even = b.Compare(half, b.Floor(half), Direction::kEq);
  return AddC(b, b.Select(even, extra, SubFrom(b, span, extra)), least);
}

Value Padded(Builder& b, Value x, int64_t size, int64_t padding, bool align) {
  const double last = static_cast<double>(size - 1);
  if (padding == kZeros) return x;
  if (padding == kReflection) x = align ? Reflect(b, x, 0, 2 * last) : Reflect(b, x, -1, 2 * last + 1);
  return Between(b, x, 0, last);
}

// From [-1, 1] to elements.
Value Positions(Builder& b, Value g, int64_t size, bool align) {
  if (align) return Mul(b, AddC(b, g, 1), static_cast<double>(size - 1) / 2);
  return Mul(b, AddC(b, Mul(b, AddC(b, g, 1), static_cast<double>(size)), -1), 0.5);
}

// One element read along one dim: a whole position and its weight (absent: one).
struct Tap {
  Value at, weight;
};

std::vector<Tap> CubicTaps(Builder& b, Value x, int64_t size, int64_t padding, bool align) {
  constexpr double kA = -0.75;
  Value base = b.Floor(x);
  Value t = b.Subtract(x, base);
  auto near = [&](Value d) {  // |d| <= 1
    return AddC(b, b.Multiply(b.Multiply(AddC(b, Mul(b, d, kA + 2), -(kA + 3)), d), d), 1);
  };
  auto far = [&](Value d) {  // 1 < |d| < 2
    Value inner = AddC(b, b.Multiply(AddC(b, Mul(b, d, kA), -5 * kA), d), 8 * kA);
    return AddC(b, b.Multiply(inner, d), -4 * kA);
  };
  Value rest = SubFrom(b, 1, t);
  const Value weights[] = {far(AddC(b, t, 1)), near(t), near(rest), far(AddC(b, rest, 1))};
  std::vector<Tap> taps;
  for (int i = 0; i < 4; ++i) taps.push_back({Padded(b, AddC(b, base, i - 1), size, padding, align), weights[i]});
  return taps;
}

std::vector<Tap> Taps(Builder& b, Value g, int64_t size, int64_t mode, int64_t padding, bool align) {
  Value x = Positions(b, g, size, align);
  if (mode == kCubic) return CubicTaps(b, x, size, padding, align);
  x = Padded(b, x, size, padding, align);
  if (mode == kNearest) return {{b.RoundNearestEven(x), Value()}};
  Value low = b.Floor(x);
  Value t = b.Subtract(x, low);
  return {{low, SubFrom(b, 1, t)}, {AddC(b, low, 1), t}};
}

// input [n, c, spatial..], grid [n, out.., dims], interpolation_mode, padding_mode, align_corners
Values GridSampler(Builder& b, const Args& a) {
  Value given = a.tensor(0);
  Value input = ToCompute(b, given), grid = ToCompute(b, a.tensor(1));
  const int64_t mode = a.integer(2), padding = a.integer(3), spatial = input.rank() - 2;
  const bool align = a.flag(4);
  Check(grid.dim(-1) == spatial, "grid_sampler: expected grid to have size ", spatial, " in last dimension, but got ",
        grid.dim(-1));
  const int64_t n = input.dim(0), c = input.dim(1);
  Dims out = {n, c};
  int64_t places = 1, plane = 1;
  for (int64_t i = 0; i < spatial; ++i) {
    out.push_back(grid.dim(1 + i));
    places *= grid.dim(1 + i);
    plane *= input.dim(2 + i);
  }
  if (n * c * places == 0) return {b.Zero(given.dtype(), out)};
  Value flat_grid = b.Reshape(grid, {n, places, spatial}), image = b.Reshape(input, {n, c, plane});
  // The grid's last dim goes x, y, z: the image's dims from the last one.
  std::vector<std::vector<Tap>> taps;
  for (int64_t d = 0; d < spatial; ++d) {
    Value g = b.Reshape(b.SliceDim(flat_grid, 2, spatial - 1 - d, spatial - d), {n, places});
    taps.push_back(Taps(b, g, input.dim(2 + d), mode, padding, align));
  }
  size_t combinations = 1;
  for (const auto& dim : taps) combinations *= dim.size();
  Value sum;
  for (size_t k = 0; k < combinations; ++k) {
    Value index = b.ConstantInt(DType::kInt64, 0, {n, places}), weight,
          inside = b.ConstantInt(DType::kBool, 1, {n, places});
    size_t rest = k;
    for (int64_t d = 0; d < spatial; ++d) {
      const Tap& tap = taps[d][rest % taps[d].size()];
      rest /= taps[d].size();
      const int64_t size = input.dim(2 + d);
      const double last = static_cast<double>(size - 1);
      inside = b.And(inside, b.And(b.Compare(tap.at, Full(b, tap.at, 0), Direction::kGe),
                                   b.Compare(tap.at, Full(b, tap.at, last), Direction::kLe)));
      Value at = b.Convert(Between(b, b.Select(IsNan(b, tap.at), Full(b, tap.at, 0), tap.at), 0, last), DType::kInt64);
      index = b.Add(b.Multiply(index, b.ConstantInt(DType::kInt64, size, index.dims())), at);
      if (tap.weight) weight = weight ? b.Multiply(weight, tap.weight) : tap.weight;
    }
    const Dims wide = {n, c, places};
    Value read = TakeAlong(b, image, b.BroadcastInDim(index, wide, {0, 2}), 2, IndexTrust::kTrusted);
    if (weight) read = b.Multiply(read, b.BroadcastInDim(weight, wide, {0, 2}));
    read = b.Select(b.BroadcastInDim(inside, wide, {0, 2}), read, Full(b, read, 0));
    sum = sum ? b.Add(sum, read) : read;
  }
  return {Cast(b, b.Reshape(sum, out), given.dtype())};
}

constexpr OpRow kRows[] = {
    {"grid_sampler_2d", GridSampler},
    {"grid_sampler_3d", GridSampler},
};

}  // namespace

std::span<const OpRow> GridSamplerRows() { return kRows; }

}  // namespace torch_tpu
