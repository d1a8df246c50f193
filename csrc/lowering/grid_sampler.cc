// grid_sampler: reading images of two or three spatial dims at positions of a grid.
#include <cstdint>

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

// A position, and its change with the grid's coordinate.
struct Position {
  Value at, slope;
};

// Folded back into [low / 2, high / 2].
Position Reflect(Builder& b, Position x, double low, double high) {
  if (low == high) return {Full(b, x.at, 0), Full(b, x.at, 0)};
  const double least = low / 2, span = (high - low) / 2;
  Value from = AddC(b, x.at, -least), away = b.Abs(from);
  Value turns = b.Floor(Mul(b, away, 1 / span));
  Value extra = b.Remainder(away, Full(b, away, span));
  Value half = Mul(b, turns, 0.5);
  Value even = b.Compare(half, b.Floor(half), Direction::kEq);
  Value backwards = b.Xor(Less(b, from, 0), b.Not(even));
  return {AddC(b, b.Select(even, extra, SubFrom(b, span, extra)), least),
          b.Select(backwards, b.Negate(x.slope), x.slope)};
}

Position Padded(Builder& b, Position x, int64_t size, int64_t padding, bool align) {
  const double last = static_cast<double>(size - 1);
  if (padding == kZeros) return x;
  if (padding == kReflection) x = align ? Reflect(b, x, 0, 2 * last) : Reflect(b, x, -1, 2 * last + 1);
  Value inside = b.And(Greater(b, x.at, 0), Less(b, x.at, last));
  return {Between(b, x.at, 0, last), b.Select(inside, x.slope, Full(b, x.slope, 0))};
}

// From [-1, 1] to elements.
Position Unnormalized(Builder& b, Value g, int64_t size, bool align) {
  const double half = static_cast<double>(align ? size - 1 : size) / 2;
  Value at =
      align ? Mul(b, AddC(b, g, 1), half) : Mul(b, AddC(b, Mul(b, AddC(b, g, 1), static_cast<double>(size)), -1), 0.5);
  return {at, Full(b, g, half)};
}

// One element read along one dim: a whole position, its weight (absent: one), and how the weight changes with the
// grid's coordinate (absent: not at all).
struct Tap {
  Value at, weight, slope;
};

std::vector<Tap> CubicTaps(Builder& b, Position x, int64_t size, int64_t padding, bool align) {
  constexpr double kA = -0.75;
  Value base = b.Floor(x.at);
  Value t = b.Subtract(x.at, base);
  auto near = [&](Value d) {  // |d| <= 1
    return AddC(b, b.Multiply(b.Multiply(AddC(b, Mul(b, d, kA + 2), -(kA + 3)), d), d), 1);
  };
  auto far = [&](Value d) {  // 1 < |d| < 2
    Value inner = AddC(b, b.Multiply(AddC(b, Mul(b, d, kA), -5 * kA), d), 8 * kA);
    return AddC(b, b.Multiply(inner, d), -4 * kA);
  };
  auto near_slope = [&](Value d) { return b.Multiply(AddC(b, Mul(b, d, 3 * (kA + 2)), -2 * (kA + 3)), d); };
  auto far_slope = [&](Value d) { return AddC(b, b.Multiply(AddC(b, Mul(b, d, 3 * kA), -10 * kA), d), 8 * kA); };
  Value rest = SubFrom(b, 1, t), before = AddC(b, t, 1), after = AddC(b, rest, 1);
  const Value weights[] = {far(before), near(t), near(rest), far(after)};
  const Value slopes[] = {far_slope(before), near_slope(t), b.Negate(near_slope(rest)), b.Negate(far_slope(after))};
  std::vector<Tap> taps;
  for (int i = 0; i < 4; ++i) {
    Value at = Padded(b, {AddC(b, base, i - 1), x.slope}, size, padding, align).at;
    taps.push_back({at, weights[i], b.Multiply(slopes[i], x.slope)});
  }
  return taps;
}

std::vector<Tap> Taps(Builder& b, Value g, int64_t size, int64_t mode, int64_t padding, bool align) {
  Position x = Unnormalized(b, g, size, align);
  if (mode == kCubic) return CubicTaps(b, x, size, padding, align);
  x = Padded(b, x, size, padding, align);
  if (mode == kNearest) return {{b.RoundNearestEven(x.at), Value(), Value()}};
  Value low = b.Floor(x.at);
  Value t = b.Subtract(x.at, low);
  return {{low, SubFrom(b, 1, t), b.Negate(x.slope)}, {AddC(b, low, 1), t, x.slope}};
}

// The image as [n, c, plane], and the taps per image dim at each of the grid's places, [n, places].
struct Sampler {
  int64_t n, c, plane = 1, places = 1;
  Dims image, grid;  // spatial dims
  std::vector<std::vector<Tap>> taps;

  Sampler(Builder& b, const Value& input, const Value& given_grid, int64_t mode, int64_t padding, bool align)
      : n(input.dim(0)), c(input.dim(1)) {
    const int64_t spatial = input.rank() - 2;
    Check(given_grid.dim(-1) == spatial, "grid_sampler: expected grid to have size ", spatial,
          " in last dimension, but got ", given_grid.dim(-1));
    for (int64_t i = 0; i < spatial; ++i) {
      grid.push_back(given_grid.dim(1 + i));
      image.push_back(input.dim(2 + i));
    }
    places = Product(grid);
    plane = Product(image);
    if (n * places == 0) return;
    Value flat = b.Reshape(given_grid, {n, places, spatial});
    // The grid's last dim goes x, y, z: the image's dims from the last one.
    for (int64_t d = 0; d < spatial; ++d) {
      Value g = b.Reshape(b.SliceDim(flat, 2, spatial - 1 - d, spatial - d), {n, places});
      taps.push_back(Taps(b, g, image[d], mode, padding, align));
    }
  }

  // Each combination of one tap per dim: place in the plane (0 when outside), whether it is inside, and the taps.
  template <class Visit>
  void ForEachTap(Builder& b, const Visit& visit) const {
    size_t combinations = 1;
    for (const auto& dim : taps) combinations *= dim.size();
    for (size_t k = 0; k < combinations; ++k) {
      Value index = b.ConstantInt(DType::kInt64, 0, {n, places}), inside = b.ConstantInt(DType::kBool, 1, {n, places});
      std::vector<Tap> chosen;
      size_t rest = k;
      for (size_t d = 0; d < taps.size(); ++d) {
        const Tap& tap = taps[d][rest % taps[d].size()];
        rest /= taps[d].size();
        const double last = static_cast<double>(image[d] - 1);
        inside = b.And(inside, b.And(b.Compare(tap.at, Full(b, tap.at, 0), Direction::kGe),
                                     b.Compare(tap.at, Full(b, tap.at, last), Direction::kLe)));
        Value at =
            b.Convert(Between(b, b.Select(IsNan(b, tap.at), Full(b, tap.at, 0), tap.at), 0, last), DType::kInt64);
        index = b.Add(b.Multiply(index, b.ConstantInt(DType::kInt64, image[d], index.dims())), at);
        chosen.push_back(tap);
      }
      visit(index, inside, chosen);
    }
  }

  // The product of the weights, with that of dim `but` replaced by its slope; absent: one.
  static Value Weight(Builder& b, const std::vector<Tap>& chosen, size_t but = SIZE_MAX) {
    Value weight;
    for (size_t d = 0; d < chosen.size(); ++d) {
      const Value& factor = d == but ? chosen[d].slope : chosen[d].weight;
      if (factor) weight = weight ? b.Multiply(weight, factor) : factor;
    }
    return weight;
  }
};

// input [n, c, spatial..], grid [n, out.., dims], interpolation_mode, padding_mode, align_corners
Values GridSampler(Builder& b, const Args& a) {
  Value given = a.tensor(0);
  Value input = ToCompute(b, given), grid = ToCompute(b, a.tensor(1));
  const Sampler s(b, input, grid, a.integer(2), a.integer(3), a.flag(4));
  Dims out = {s.n, s.c};
  out.insert(out.end(), s.grid.begin(), s.grid.end());
  if (Product(out) == 0) return {b.Zero(given.dtype(), out)};
  const Dims wide = {s.n, s.c, s.places};
  Value image = b.Reshape(input, {s.n, s.c, s.plane}), sum;
  s.ForEachTap(b, [&](Value index, Value inside, const std::vector<Tap>& chosen) {
    Value read = TakeAlong(b, image, b.BroadcastInDim(index, wide, {0, 2}), 2, IndexTrust::kTrusted);
    Value weight = Sampler::Weight(b, chosen);
    if (weight) read = b.Multiply(read, b.BroadcastInDim(weight, wide, {0, 2}));
    read = b.Select(b.BroadcastInDim(inside, wide, {0, 2}), read, Full(b, read, 0));
    sum = sum ? b.Add(sum, read) : read;
  });
  return {Cast(b, b.Reshape(sum, out), given.dtype())};
}

// grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask -> gradients of input and grid
Values GridSamplerBackward(Builder& b, const Args& a) {
  Value given = a.tensor(1), given_grid = a.tensor(2);
  Value grad = ToCompute(b, a.tensor(0)), input = ToCompute(b, given), grid = ToCompute(b, given_grid);
  const Sampler s(b, input, grid, a.integer(3), a.integer(4), a.flag(5));
  const bool of_input = a.ints(6)[0] != 0;
  const Dims wide = {s.n, s.c, s.places}, flat = {s.n, s.places};
  Value image = b.Reshape(input, {s.n, s.c, s.plane}), input_sum = b.Zero(image.dtype(), image.dims());
  Values grid_sums(s.image.size(), b.Zero(grid.dtype(), flat));
  if (Product(wide) > 0) {
    grad = b.Reshape(grad, wide);
    s.ForEachTap(b, [&](Value index, Value inside, const std::vector<Tap>& chosen) {
      if (of_input) {
        Value weight = Sampler::Weight(b, chosen);
        Value part = weight ? b.Multiply(grad, b.BroadcastInDim(weight, wide, {0, 2})) : grad;
        Value place = b.Select(inside, index, b.ConstantInt(DType::kInt64, s.plane, flat));  // past the end: dropped
        input_sum = PutAlong(b, input_sum, b.BroadcastInDim(place, wide, {0, 2}), part, 2, CombineAdd);
      }
      if (!chosen[0].slope) return;
      Value read = TakeAlong(b, image, b.BroadcastInDim(index, wide, {0, 2}), 2, IndexTrust::kTrusted);
      Value along = Sum(b, b.Multiply(read, grad), {1});
      along = b.Select(inside, along, Full(b, along, 0));
      for (size_t d = 0; d < grid_sums.size(); ++d) {
        grid_sums[d] = b.Add(grid_sums[d], b.Multiply(along, Sampler::Weight(b, chosen, d)));
      }
    });
  }
  Values columns;
  for (size_t d = grid_sums.size(); d-- > 0;) columns.push_back(b.Reshape(grid_sums[d], {s.n, s.places, 1}));
  Value grid_grad = b.Reshape(b.Concatenate(columns, 2), given_grid.dims());
  return {of_input ? Cast(b, b.Reshape(input_sum, given.dims()), given.dtype()) : Value(),
          Cast(b, grid_grad, given_grid.dtype())};
}

constexpr OpRow kRows[] = {
    {"grid_sampler_2d", GridSampler},
    {"grid_sampler_3d", GridSampler},
    {"grid_sampler_2d_backward", GridSamplerBackward},
    {"grid_sampler_3d_backward", GridSamplerBackward},
};

}  // namespace

std::span<const OpRow> GridSamplerRows() { return kRows; }

}  // namespace torch_tpu
