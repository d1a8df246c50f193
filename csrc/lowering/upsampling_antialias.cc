// Antialiased upsampling: each output is a weighted mean of the window that it covers. Windows and weights are known
// when the program is made.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "lowering/math.h"
#include "lowering/pooling.h"

namespace torch_tpu {

namespace {

enum class Filter : uint8_t { kLinear, kCubic, kLanczos };

int64_t Width(Filter filter) { return filter == Filter::kLinear ? 2 : filter == Filter::kCubic ? 4 : 6; }

template <class T>
T Evaluate(Filter filter, T x) {
  x = std::abs(x);
  switch (filter) {
    case Filter::kLinear:
      return x < 1 ? 1 - x : T(0);
    case Filter::kCubic: {
      const T a = T(-0.5);
      if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
      return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : T(0);
    }
    default: {
      auto sinc = [](T v) { return v == 0 ? T(1) : std::sin(v * std::numbers::pi_v<T>) / (v * std::numbers::pi_v<T>); };
      return x < 3 ? sinc(x) * sinc(x / 3) : T(0);
    }
  }
}

// weights[o][i]: row-major [out, in]. Computed in T, as PyTorch does.
template <class T>
std::vector<double> Windows(Filter filter, int64_t in, int64_t out, bool align_corners, std::optional<double> given) {
  T scale = given && *given > 0 ? static_cast<T>(1.0 / *given) : static_cast<T>(in) / static_cast<T>(out);
  if (align_corners) scale = out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
  const T half = static_cast<T>(Width(filter)) / 2;
  const T support = scale >= 1 ? half * scale : half, inverse = scale >= 1 ? 1 / scale : T(1);
  const int64_t longest = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  std::vector<double> weights(static_cast<size_t>(in * out), 0.0);
  for (int64_t o = 0; o < out; ++o) {
    const T center = scale * (static_cast<T>(o) + T(0.5));
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + T(0.5)), 0);
    const int64_t end = std::min(static_cast<int64_t>(center + support + T(0.5)), in);
    const int64_t count = std::clamp<int64_t>(end - first, 0, longest);
    std::vector<T> window;
    T total = 0;
    for (int64_t j = 0; j < count; ++j) {
      window.push_back(Evaluate<T>(filter, (static_cast<T>(j + first) - center + T(0.5)) * inverse));
      total += window.back();
    }
    for (int64_t j = 0; j < count; ++j) weights[o * in + first + j] = total != 0 ? window[j] / total : window[j];
  }
  return weights;
}

Value Matrix(Builder& b, Filter filter, DType dtype, int64_t in, int64_t out, bool align_corners,
             std::optional<double> scale) {
  const std::vector<double> weights = dtype == DType::kFloat64 ? Windows<double>(filter, in, out, align_corners, scale)
                                                               : Windows<float>(filter, in, out, align_corners, scale);
  return b.Reshape(b.Convert(b.ConstantFloats(DType::kFloat64, weights), dtype), {out, in});
}

// Bytes: the weights as 16-bit fixed point numbers, rounded after each dim.
Value ContractBytes(Builder& b, Filter filter, Value x, int64_t dim, int64_t out, bool align_corners,
                    std::optional<double> scale) {
  const int64_t in = x.dim(dim);
  const std::vector<double> weights = Windows<double>(filter, in, out, align_corners, scale);
  const double largest = *std::max_element(weights.begin(), weights.end());
  int digits = 0;
  while (digits < 22 && static_cast<int64_t>(0.5 + largest * std::ldexp(1.0, digits + 1)) < (1 << 15)) ++digits;
  Dims fixed;
  for (double w : weights) fixed.push_back(static_cast<int64_t>(std::round(std::ldexp(w, digits))));
  Value table = b.Reshape(b.ConstantInts(DType::kInt32, fixed), {out, in});
  Value sum = ContractDim(b, b.Convert(x, DType::kInt32), table, dim);
  sum = b.Add(sum, b.ConstantInt(DType::kInt32, digits > 0 ? int64_t{1} << (digits - 1) : 0, sum.dims()));
  sum = b.ShiftRightArithmetic(sum, b.ConstantInt(DType::kInt32, digits, sum.dims()));
  sum = b.Clamp(b.ConstantInt(DType::kInt32, 0), sum, b.ConstantInt(DType::kInt32, 255));
  return b.Convert(sum, x.dtype());
}

std::optional<double> Scale(const Args& a, size_t i) { return a.has(i) ? a.constant(i) : std::nullopt; }

// self, output_size, align_corners, scales_h, scales_w
Values Forward(Builder& b, const Args& a, Filter filter) {
  Value self = a.tensor(0), x = ToCompute(b, self);
  const Dims& size = a.ints(1);
  const bool bytes = self.dtype() == DType::kUInt8;
  Check(bytes || IsFloat(self.dtype()), "upsample: expected floats or uint8, got ", Name(self.dtype()));
  for (int64_t i = 2; i-- > 0;) {
    const int64_t dim = x.rank() - 2 + i;
    if (x.dim(dim) == size[i]) continue;  // every weight would be one or zero
    if (bytes) {
      x = ContractBytes(b, filter, x, dim, size[i], a.flag(2), Scale(a, 3 + i));
    } else {
      x = ContractDim(b, x, Matrix(b, filter, x.dtype(), x.dim(dim), size[i], a.flag(2), Scale(a, 3 + i)), dim);
    }
  }
  return {b.Convert(x, self.dtype())};
}

// grad_output, output_size, input_size, align_corners, scales_h, scales_w
Values Backward(Builder& b, const Args& a, Filter filter) {
  Value grad = a.tensor(0), x = ToCompute(b, grad);
  const Dims& size = a.ints(1);
  const Dims& input = a.ints(2);
  for (int64_t i = 0; i < 2; ++i) {
    const int64_t dim = x.rank() - 2 + i, in = input[dim];
    if (in == size[i]) continue;
    Value weights = Matrix(b, filter, x.dtype(), in, size[i], a.flag(3), Scale(a, 4 + i));
    x = ContractDim(b, x, b.Transpose(weights, {1, 0}), dim);
  }
  return {b.Convert(x, grad.dtype())};
}

template <Filter F>
Values ForwardRow(Builder& b, const Args& a) {
  return Forward(b, a, F);
}
template <Filter F>
Values BackwardRow(Builder& b, const Args& a) {
  return Backward(b, a, F);
}

}  // namespace

std::vector<OpRow> AntialiasRows() {
  return {
      {"_upsample_bilinear2d_aa", ForwardRow<Filter::kLinear>, kKeyScalars},
      {"_upsample_bicubic2d_aa", ForwardRow<Filter::kCubic>, kKeyScalars},
      {"_upsample_lanczos2d_aa", ForwardRow<Filter::kLanczos>, kKeyScalars},
      {"_upsample_bilinear2d_aa_backward", BackwardRow<Filter::kLinear>, kKeyScalars},
      {"_upsample_bicubic2d_aa_backward", BackwardRow<Filter::kCubic>, kKeyScalars},
      {"_upsample_lanczos2d_aa_backward", BackwardRow<Filter::kLanczos>, kKeyScalars},
  };
}

}  // namespace torch_tpu
