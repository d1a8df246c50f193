// Nearest, linear and cubic upsampling, one dim at a time. Positions and weights are known when the program is made:
// the scale factors are part of the program.
#include <cmath>

#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"
#include "lowering/pooling.h"

namespace torch_tpu {

namespace {

// result[o] = sum of taps: x[index[o]] * weight[o]
struct Tap {
  Dims index;
  std::vector<double> weight;
};

// Positions are computed in the type PyTorch uses (float or double): T.
template <class T>
T Ratio(int64_t in, int64_t out, std::optional<double> scale) {
  return scale && *scale > 0 ? static_cast<T>(1.0 / *scale) : static_cast<T>(in) / static_cast<T>(out);
}

template <class T>
T PixelRatio(int64_t in, int64_t out, bool align_corners, std::optional<double> scale) {
  if (!align_corners) return Ratio<T>(in, out, scale);
  return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
}

template <class T>
std::vector<Tap> LinearTaps(int64_t in, int64_t out, bool align_corners, std::optional<double> scale) {
  std::vector<Tap> taps(2);
  const T ratio = PixelRatio<T>(in, out, align_corners, scale);
  for (int64_t o = 0; o < out; ++o) {
    T at = align_corners ? ratio * static_cast<T>(o) : ratio * (static_cast<T>(o) + T(0.5)) - T(0.5);
    if (at < 0) at = 0;
    if (in == out) at = static_cast<T>(o);
    const int64_t left = std::min(static_cast<int64_t>(at), in - 1);
    const T right_weight = std::min(std::max(at - static_cast<T>(left), T(0)), T(1));
    taps[0].index.push_back(left);
    taps[0].weight.push_back(T(1) - right_weight);
    taps[1].index.push_back(std::min(left + 1, in - 1));
    taps[1].weight.push_back(right_weight);
  }
  return taps;
}

template <class T>
std::vector<Tap> CubicTaps(int64_t in, int64_t out, bool align_corners, std::optional<double> scale) {
  std::vector<Tap> taps(4);
  const T ratio = PixelRatio<T>(in, out, align_corners, scale), a = T(-0.75);
  auto near = [&](T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  auto far = [&](T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  for (int64_t o = 0; o < out; ++o) {
    const T at = align_corners ? ratio * static_cast<T>(o) : ratio * (static_cast<T>(o) + T(0.5)) - T(0.5);
    const int64_t left = std::min(static_cast<int64_t>(std::floor(at)), in - 1);
    const T t = std::min(std::max(at - static_cast<T>(left), T(0)), T(1));
    const T weights[4] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    for (int k = 0; k < 4; ++k) {
      taps[k].index.push_back(std::min(std::max<int64_t>(left - 1 + k, 0), in - 1));
      taps[k].weight.push_back(weights[k]);
    }
  }
  return taps;
}

Dims NearestIndex(int64_t in, int64_t out, bool exact, std::optional<double> scale) {
  Dims index;
  const float ratio = Ratio<float>(in, out, scale);
  for (int64_t o = 0; o < out; ++o) {
    int64_t at = o;
    if (in != out) {
      const float position = exact ? (static_cast<float>(o) + 0.5f) * ratio : static_cast<float>(o) * ratio;
      at = std::min(static_cast<int64_t>(std::floor(position)), in - 1);
    }
    index.push_back(at);
  }
  return index;
}

// The factor when every element is simply repeated, 0 otherwise.
int64_t RepeatFactor(const Dims& index, int64_t in) {
  const int64_t out = static_cast<int64_t>(index.size());
  if (in == 0 || out % in != 0) return 0;
  for (int64_t o = 0; o < out; ++o) {
    if (index[o] != o / (out / in)) return 0;
  }
  return out / in;
}

PoolDim Tile(int64_t dim, int64_t count, int64_t factor) { return {dim, count * factor, factor, factor, 0, 1, count}; }

std::optional<double> Scale(const Args& a, size_t i) { return a.has(i) ? a.constant(i) : std::nullopt; }

// [out, in]
Value TapMatrix(Builder& b, const std::vector<Tap>& taps, int64_t in, DType dtype) {
  const Dims dims = {static_cast<int64_t>(taps[0].index.size()), in};
  Value column = b.Iota(DType::kInt64, dims, 1), total;
  for (const Tap& tap : taps) {
    Value here =
        b.Compare(column, b.BroadcastInDim(b.ConstantInts(DType::kInt64, tap.index), dims, {0}), Direction::kEq);
    Value weight = b.BroadcastInDim(b.Convert(b.ConstantFloats(DType::kFloat64, tap.weight), dtype), dims, {0});
    Value part = b.Select(here, weight, b.Zero(dtype, dims));
    total = total ? b.Add(total, part) : part;
  }
  return total;
}

Value ApplyTaps(Builder& b, Value x, const std::vector<Tap>& taps, int64_t dim) {
  Value total;
  for (const Tap& tap : taps) {
    Value part = TakeDim(b, x, b.ConstantInts(DType::kInt64, tap.index), dim, IndexTrust::kTrusted);
    Value weight = b.Convert(b.ConstantFloats(DType::kFloat64, tap.weight), x.dtype());
    part = b.Multiply(part, b.BroadcastInDim(weight, part.dims(), {dim}));
    total = total ? b.Add(total, part) : part;
  }
  return total;
}

// self, output_size, scales...
Values NearestForward(Builder& b, const Args& a, bool exact) {
  Value x = a.tensor(0);
  const Dims& size = a.ints(1);
  const int64_t spatial = static_cast<int64_t>(size.size());
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t dim = x.rank() - spatial + i, in = x.dim(dim);
    const Dims index = NearestIndex(in, size[i], exact, Scale(a, 2 + i));
    const int64_t factor = RepeatFactor(index, in);
    if (factor == 1) continue;
    x = factor > 1 ? WindowSumBackward(b, x, Tile(dim, in, factor))  // repeats
                   : TakeDim(b, x, b.ConstantInts(DType::kInt64, index), dim, IndexTrust::kTrusted);
  }
  return {x};
}

// grad_output, output_size, input_size, scales...
Values NearestBackward(Builder& b, const Args& a, bool exact) {
  Value grad = a.tensor(0), x = ToCompute(b, grad);
  const Dims& size = a.ints(1);
  const Dims& input = a.ints(2);
  const int64_t spatial = static_cast<int64_t>(size.size());
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t dim = x.rank() - spatial + i, in = input[dim];
    const Dims index = NearestIndex(in, size[i], exact, Scale(a, 3 + i));
    const int64_t factor = RepeatFactor(index, in);
    if (factor == 1) continue;
    if (factor > 1) {
      x = WindowSum(b, x, Tile(dim, in, factor));
    } else {
      Tap tap{index, std::vector<double>(index.size(), 1.0)};
      x = ContractDim(b, x, b.Transpose(TapMatrix(b, {tap}, in, x.dtype()), {1, 0}), dim);
    }
  }
  return {b.Convert(x, grad.dtype())};
}

std::vector<Tap> SmoothTaps(DType dtype, bool cubic, int64_t in, int64_t out, bool align_corners,
                            std::optional<double> scale) {
  if (dtype == DType::kFloat64) {
    return cubic ? CubicTaps<double>(in, out, align_corners, scale) : LinearTaps<double>(in, out, align_corners, scale);
  }
  return cubic ? CubicTaps<float>(in, out, align_corners, scale) : LinearTaps<float>(in, out, align_corners, scale);
}

// self, output_size, align_corners, scales...
Values SmoothForward(Builder& b, const Args& a, bool cubic) {
  Value self = a.tensor(0);
  if (!IsFloat(self.dtype()))
    Fail(Code::kUnimplemented, "upsample: expected a floating point dtype, got ", Name(self.dtype()));
  Value x = ToCompute(b, self);
  const Dims& size = a.ints(1);
  const int64_t spatial = static_cast<int64_t>(size.size());
  for (int64_t i = spatial; i-- > 0;) {
    const int64_t dim = x.rank() - spatial + i, in = x.dim(dim);
    if (in == size[i]) continue;  // every weight would be one or zero
    x = ApplyTaps(b, x, SmoothTaps(x.dtype(), cubic, in, size[i], a.flag(2), Scale(a, 3 + i)), dim);
  }
  return {b.Convert(x, self.dtype())};
}

// grad_output, output_size, input_size, align_corners, scales...
Values SmoothBackward(Builder& b, const Args& a, bool cubic) {
  Value grad = a.tensor(0), x = ToCompute(b, grad);
  const Dims& size = a.ints(1);
  const Dims& input = a.ints(2);
  const int64_t spatial = static_cast<int64_t>(size.size());
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t dim = x.rank() - spatial + i, in = input[dim];
    if (in == size[i]) continue;
    auto taps = SmoothTaps(x.dtype(), cubic, in, size[i], a.flag(3), Scale(a, 4 + i));
    x = ContractDim(b, x, b.Transpose(TapMatrix(b, taps, in, x.dtype()), {1, 0}), dim);
  }
  return {b.Convert(x, grad.dtype())};
}

Values Nearest(Builder& b, const Args& a) { return NearestForward(b, a, false); }
Values NearestExact(Builder& b, const Args& a) { return NearestForward(b, a, true); }
Values NearestGrad(Builder& b, const Args& a) { return NearestBackward(b, a, false); }
Values NearestExactGrad(Builder& b, const Args& a) { return NearestBackward(b, a, true); }
Values Linear(Builder& b, const Args& a) { return SmoothForward(b, a, false); }
Values LinearGrad(Builder& b, const Args& a) { return SmoothBackward(b, a, false); }
Values Cubic(Builder& b, const Args& a) { return SmoothForward(b, a, true); }
Values CubicGrad(Builder& b, const Args& a) { return SmoothBackward(b, a, true); }

}  // namespace

std::vector<OpRow> UpsamplingRows() {
  return {
      {"upsample_nearest1d", Nearest, kKeyScalars},
      {"upsample_nearest2d", Nearest, kKeyScalars},
      {"upsample_nearest3d", Nearest, kKeyScalars},
      {"upsample_nearest1d_backward", NearestGrad, kKeyScalars},
      {"upsample_nearest2d_backward", NearestGrad, kKeyScalars},
      {"upsample_nearest3d_backward", NearestGrad, kKeyScalars},
      {"_upsample_nearest_exact1d", NearestExact, kKeyScalars},
      {"_upsample_nearest_exact2d", NearestExact, kKeyScalars},
      {"_upsample_nearest_exact3d", NearestExact, kKeyScalars},
      {"_upsample_nearest_exact1d_backward", NearestExactGrad, kKeyScalars},
      {"_upsample_nearest_exact2d_backward", NearestExactGrad, kKeyScalars},
      {"_upsample_nearest_exact3d_backward", NearestExactGrad, kKeyScalars},
      {"upsample_linear1d", Linear, kKeyScalars},
      {"upsample_bilinear2d", Linear, kKeyScalars},
      {"upsample_trilinear3d", Linear, kKeyScalars},
      {"upsample_linear1d_backward", LinearGrad, kKeyScalars},
      {"upsample_bilinear2d_backward", LinearGrad, kKeyScalars},
      {"upsample_trilinear3d_backward", LinearGrad, kKeyScalars},
      {"upsample_bicubic2d", Cubic, kKeyScalars},
      {"upsample_bicubic2d_backward", CubicGrad, kKeyScalars},
  };
}

}  // namespace torch_tpu
