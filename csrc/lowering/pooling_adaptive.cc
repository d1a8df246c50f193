// Adaptive pools: bin o of `out` covers [floor(o * size / out), ceil((o + 1) * size / out)).
#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"
#include "lowering/pooling.h"

namespace torch_tpu {

namespace {

constexpr int64_t kSliceLimit = 32;  // bins summed one by one; more go through a matrix product

struct Bins {
  int64_t dim, size, out;
  Dims begin, end;

  bool even() const { return out > 0 && size % out == 0; }
  PoolDim window() const { return {dim, size, size / out, size / out, 0, 1, out}; }
};

Bins BinsOf(int64_t dim, int64_t size, int64_t out) {
  Bins bins{dim, size, out, {}, {}};
  for (int64_t o = 0; o < out; ++o) {
    bins.begin.push_back(o * size / out);
    bins.end.push_back(((o + 1) * size + out - 1) / out);
  }
  return bins;
}

std::vector<Bins> AllBins(const Value& x, int spatial, const Dims& out) {
  std::vector<Bins> all;
  for (int i = 0; i < spatial; ++i) {
    const int64_t dim = x.rank() - spatial + i;
    all.push_back(BinsOf(dim, x.dim(dim), out.size() == 1 ? out[0] : out.at(i)));
  }
  return all;
}

// [out, size]: 1 / length inside of the bin, 0 elsewhere
Value Weights(Builder& b, const Bins& bins, DType dtype) {
  const Dims dims = {bins.out, bins.size};
  Value begin = b.ConstantInts(DType::kInt64, bins.begin), end = b.ConstantInts(DType::kInt64, bins.end);
  Value i = b.Iota(DType::kInt64, dims, 1);
  Value inside = b.And(b.Compare(i, b.BroadcastInDim(begin, dims, {0}), Direction::kGe),
                       b.Compare(i, b.BroadcastInDim(end, dims, {0}), Direction::kLt));
  Value length = b.BroadcastInDim(b.Convert(b.Subtract(end, begin), dtype), dims, {0});
  return b.Divide(b.Convert(inside, dtype), length);
}

Value MeanOfBins(Builder& b, Value x, const Bins& bins) {
  if (bins.even()) {
    Value sum = WindowSum(b, x, bins.window());
    return b.Divide(sum, b.ConstantInt(x.dtype(), bins.size / bins.out, sum.dims()));
  }
  if (bins.out > kSliceLimit) return ContractDim(b, x, Weights(b, bins, x.dtype()), bins.dim);
  Values parts;
  for (int64_t o = 0; o < bins.out; ++o) {
    Value part = b.SliceDim(x, bins.dim, bins.begin[o], bins.end[o]);
    Value sum = KeepDims(b, Sum(b, part, {bins.dim}), part.dims(), {bins.dim});
    parts.push_back(b.Divide(sum, b.ConstantInt(x.dtype(), bins.end[o] - bins.begin[o], sum.dims())));
  }
  return parts.size() == 1 ? parts[0] : b.Concatenate(parts, bins.dim);
}

// self, output_size
Values AverageForward(Builder& b, const Args& a, int spatial) {
  Value self = a.tensor(0), x = ToCompute(b, self);
  auto all = AllBins(self, spatial, a.ints(1));
  Dims out = self.dims();
  for (const Bins& bins : all) out[bins.dim] = bins.out;
  if (Product(out) == 0) return {b.Zero(self.dtype(), out)};
  for (size_t i = all.size(); i-- > 0;) x = MeanOfBins(b, x, all[i]);
  return {b.Convert(x, self.dtype())};
}

// grad_output, self
Values AverageBackward(Builder& b, const Args& a, int spatial) {
  Value grad = a.tensor(0), self = a.tensor(1), x = ToCompute(b, grad);
  if (grad.numel() == 0) return {b.Zero(grad.dtype(), self.dims())};
  for (int i = 0; i < spatial; ++i) {
    const int64_t dim = self.rank() - spatial + i;
    const Bins bins = BinsOf(dim, self.dim(dim), grad.dim(dim));
    if (bins.even()) {
      x = b.Divide(x, b.ConstantInt(x.dtype(), bins.size / bins.out, x.dims()));
      x = WindowSumBackward(b, x, bins.window());
    } else {
      x = ContractDim(b, x, b.Transpose(Weights(b, bins, x.dtype()), {1, 0}), dim);
    }
  }
  return {b.Convert(x, grad.dtype())};
}

bool AllEven(const std::vector<Bins>& all) {
  for (const Bins& bins : all) {
    if (!bins.even()) return false;
  }
  return true;
}

std::vector<PoolDim> Windows(const std::vector<Bins>& all) {
  std::vector<PoolDim> dims;
  for (const Bins& bins : all) dims.push_back(bins.window());
  return dims;
}

// self, output_size -> (values, positions)
Values MaxForward(Builder& b, const Args& a, int spatial) {
  Value self = a.tensor(0);
  auto all = AllBins(self, spatial, a.ints(1));
  Dims out = self.dims();
  for (const Bins& bins : all) out[bins.dim] = bins.out;
  if (Product(out) == 0) return {b.Zero(self.dtype(), out), b.Zero(DType::kInt64, out)};
  if (AllEven(all)) return MaxPool(b, self, Windows(all));
  Value value = ToCompute(b, self), position;
  int64_t scale = 1;
  for (size_t i = all.size(); i-- > 0;) {
    const Bins& bins = all[i];
    Value along = b.Iota(DType::kInt32, value.dims(), bins.dim);
    if (scale != 1) along = b.Multiply(along, b.ConstantInt(DType::kInt32, scale, value.dims()));
    position = position ? b.Add(position, along) : along;
    int64_t longest = 0;
    for (int64_t o = 0; o < bins.out; ++o) longest = std::max(longest, bins.end[o] - bins.begin[o]);
    BestSoFar best;
    for (int64_t k = 0; k < longest; ++k) {
      // Shorter bins offer their last element again, which changes nothing.
      Dims from;
      for (int64_t o = 0; o < bins.out; ++o) from.push_back(std::min(bins.begin[o] + k, bins.end[o] - 1));
      Value index = b.ConstantInts(DType::kInt64, from);
      best.Offer(b, TakeDim(b, value, index, bins.dim, IndexTrust::kTrusted),
                 TakeDim(b, position, index, bins.dim, IndexTrust::kTrusted));
    }
    value = best.value;
    position = best.position;
    scale *= bins.size;
  }
  return {b.Convert(value, self.dtype()), b.Convert(position, DType::kInt64)};
}

// grad_output, self, indices
Values MaxBackward(Builder& b, const Args& a, int spatial) {
  Value grad = a.tensor(0), self = a.tensor(1);
  const Dims out(grad.dims().end() - spatial, grad.dims().end());
  auto all = AllBins(self, spatial, out);
  return {MaxPoolBackward(b, grad, a.tensor(2), self, spatial, AllEven(all) ? Windows(all) : std::vector<PoolDim>())};
}

Values AdaptiveAvgPool2d(Builder& b, const Args& a) { return AverageForward(b, a, 2); }
Values AdaptiveAvgPool3d(Builder& b, const Args& a) { return AverageForward(b, a, 3); }
Values AdaptiveAvgPool2dBackward(Builder& b, const Args& a) { return AverageBackward(b, a, 2); }
Values AdaptiveAvgPool3dBackward(Builder& b, const Args& a) { return AverageBackward(b, a, 3); }
Values AdaptiveMaxPool2d(Builder& b, const Args& a) { return MaxForward(b, a, 2); }
Values AdaptiveMaxPool3d(Builder& b, const Args& a) { return MaxForward(b, a, 3); }
Values AdaptiveMaxPool2dBackward(Builder& b, const Args& a) { return MaxBackward(b, a, 2); }
Values AdaptiveMaxPool3dBackward(Builder& b, const Args& a) { return MaxBackward(b, a, 3); }

}  // namespace

std::vector<OpRow> AdaptivePoolRows() {
  return {
      {"_adaptive_avg_pool2d", AdaptiveAvgPool2d},
      {"_adaptive_avg_pool3d", AdaptiveAvgPool3d},
      {"_adaptive_avg_pool2d_backward", AdaptiveAvgPool2dBackward},
      {"_adaptive_avg_pool3d_backward", AdaptiveAvgPool3dBackward},
      {"adaptive_max_pool2d", AdaptiveMaxPool2d},
      {"adaptive_max_pool3d", AdaptiveMaxPool3d},
      {"adaptive_max_pool2d_backward", AdaptiveMaxPool2dBackward},
      {"adaptive_max_pool3d_backward", AdaptiveMaxPool3dBackward},
  };
}

}  // namespace torch_tpu
