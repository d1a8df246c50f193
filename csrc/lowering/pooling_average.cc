// avg_pool2d, avg_pool3d and their backwards.
#include <algorithm>

#include "base/error.h"
#include "lowering/math.h"
#include "lowering/pooling.h"

namespace torch_tpu {

namespace {

// How many elements each window counts along one dim.
std::vector<double> Counts(const PoolDim& p, bool include_pad) {
  std::vector<double> counts;
  for (int64_t o = 0; o < p.out; ++o) {
    int64_t begin = o * p.stride - p.padding, end = std::min(begin + p.kernel, p.size + p.padding);
    if (!include_pad) {
      begin = std::max<int64_t>(begin, 0);
      end = std::min(end, p.size);
    }
    counts.push_back(static_cast<double>(std::max<int64_t>(end - begin, 1)));
  }
  return counts;
}

// x (dims of the pooled result) divided by the windows' sizes.
Value DivideByCounts(Builder& b, Value x, const std::vector<PoolDim>& dims, bool include_pad,
                     std::optional<int64_t> divisor) {
  if (divisor) return b.Divide(x, b.ConstantInt(x.dtype(), *divisor, x.dims()));
  double same = 1;
  Value varying;
  for (const PoolDim& p : dims) {
    std::vector<double> counts = Counts(p, include_pad);
    if (std::all_of(counts.begin(), counts.end(), [&](double c) { return c == counts[0]; })) {
      same *= counts[0];
      continue;
    }
    Value along = b.Convert(b.ConstantFloats(DType::kFloat64, counts), x.dtype());
    along = b.BroadcastInDim(along, x.dims(), {p.dim});
    varying = varying ? b.Multiply(varying, along) : along;
  }
  Value total = b.Constant(x.dtype(), same, x.dims());
  return b.Divide(x, varying ? b.Multiply(varying, total) : total);
}

std::optional<int64_t> Divisor(const Args& a, size_t i) {
  if (!a.has(i)) return std::nullopt;
  Check(a.integer(i) != 0, "avg_pool: divisor must be not zero");
  return a.integer(i);
}

// self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
Values Forward(Builder& b, const Args& a, int spatial) {
  Value x = a.tensor(0);
  auto dims = PoolDims(x, spatial, a.ints(1), a.ints_or(2, {}), a.ints_or(3, {}), {}, a.flag(4));
  Value sum = ToCompute(b, x);
  for (size_t i = dims.size(); i-- > 0;) sum = WindowSum(b, sum, dims[i]);
  const bool include_pad = a.has(5) ? a.flag(5) : true;
  return {b.Convert(DivideByCounts(b, sum, dims, include_pad, Divisor(a, 6)), x.dtype())};
}

// grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
Values Backward(Builder& b, const Args& a, int spatial) {
  Value grad = a.tensor(0), self = a.tensor(1);
  auto dims = PoolDims(self, spatial, a.ints(2), a.ints_or(3, {}), a.ints_or(4, {}), {}, a.flag(5));
  Value x = DivideByCounts(b, ToCompute(b, grad), dims, a.has(6) ? a.flag(6) : true, Divisor(a, 7));
  for (const PoolDim& p : dims) x = WindowSumBackward(b, x, p);
  return {b.Convert(x, grad.dtype())};
}

Values AvgPool2d(Builder& b, const Args& a) { return Forward(b, a, 2); }
Values AvgPool3d(Builder& b, const Args& a) { return Forward(b, a, 3); }
Values AvgPool2dBackward(Builder& b, const Args& a) { return Backward(b, a, 2); }
Values AvgPool3dBackward(Builder& b, const Args& a) { return Backward(b, a, 3); }

}  // namespace

std::vector<OpRow> AveragePoolRows() {
  return {
      {"avg_pool2d", AvgPool2d},
      {"avg_pool3d", AvgPool3d},
      {"avg_pool2d_backward", AvgPool2dBackward},
      {"avg_pool3d_backward", AvgPool3dBackward},
  };
}

}  // namespace torch_tpu
