#include "lowering/pooling.h"

#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"

namespace torch_tpu {

namespace {

constexpr int64_t kUnrollLimit = 64;

int64_t Pick(const Dims& dims, int i, int64_t otherwise) {
  return dims.empty() ? otherwise : dims.size() == 1 ? dims[0] : dims.at(i);
}

int64_t FloorDivide(int64_t a, int64_t d) { return a / d - (a % d != 0 && (a < 0) != (d < 0)); }

bool Tiles(const PoolDim& p) {
  return p.kernel == p.stride && p.padding == 0 && p.dilation == 1 && p.out * p.kernel <= p.size;
}

}  // namespace

std::vector<PoolDim> PoolDims(const Value& x, int spatial, const Dims& kernel, const Dims& stride, const Dims& padding,
                              const Dims& dilation, bool ceil_mode) {
  std::vector<PoolDim> dims;
  for (int i = 0; i < spatial; ++i) {
    PoolDim p;
    p.dim = x.rank() - spatial + i;
    p.size = x.dim(p.dim);
    p.kernel = Pick(kernel, i, 1);
    p.stride = Pick(stride, i, p.kernel);
    p.padding = Pick(padding, i, 0);
    p.dilation = Pick(dilation, i, 1);
    Check(p.kernel > 0 && p.stride > 0 && p.dilation > 0,
          "pool: expected kernel, stride and dilation greater than zero");
    p.out = FloorDivide(p.size + 2 * p.padding - p.dilation * (p.kernel - 1) - 1 + (ceil_mode ? p.stride - 1 : 0),
                        p.stride) +
            1;
    // The last window must start inside of the input or its left padding.
    if (ceil_mode && (p.out - 1) * p.stride >= p.size + p.padding) --p.out;
    Check(p.out > 0, "pool: expected a window that fits, got kernel ", p.kernel, " on a dim of length ", p.size);
    dims.push_back(p);
  }
  return dims;
}

Value WindowTap(Builder& b, Value x, const PoolDim& p, int64_t k, Value fill) {
  const int64_t first = k * p.dilation - p.padding, last = first + (p.out - 1) * p.stride;
  const int64_t low = std::max<int64_t>(0, -first), high = std::max<int64_t>(0, last + 1 - p.size);
  if (low > 0 || high > 0) {
    Dims lows(x.rank(), 0), highs(x.rank(), 0);
    lows[p.dim] = low;
    highs[p.dim] = high;
    x = b.Pad(x, fill, lows, highs);
  }
  return b.SliceDim(x, p.dim, first + low, last + low + 1, p.stride);
}

Value WindowTapBackward(Builder& b, Value grad, const PoolDim& p, int64_t k) {
  const int64_t first = k * p.dilation - p.padding, last = first + (p.out - 1) * p.stride;
  Dims low(grad.rank(), 0), high(grad.rank(), 0), interior(grad.rank(), 0);
  low[p.dim] = first;
  high[p.dim] = p.size - last - 1;
  interior[p.dim] = p.stride - 1;
  return b.Pad(grad, b.Zero(grad.dtype()), low, high, interior);
}

Value WindowSum(Builder& b, Value x, const PoolDim& p) {
  if (Tiles(p)) {
    if (p.out * p.kernel != p.size) x = b.SliceDim(x, p.dim, 0, p.out * p.kernel);
    Dims split = x.dims();
    split[p.dim] = p.out;
    split.insert(split.begin() + p.dim + 1, p.kernel);
    return Sum(b, b.Reshape(x, split), {p.dim + 1});
  }
  Value zero = b.Zero(x.dtype());
  if (p.kernel > kUnrollLimit) {
    ReduceWindow window;
    window.dims = window.strides = Dims(x.rank(), 1);
    window.pad_low = window.pad_high = Dims(x.rank(), 0);
    window.dims[p.dim] = p.kernel;
    window.strides[p.dim] = p.stride;
    window.pad_low[p.dim] = p.padding;
    window.pad_high[p.dim] = std::max<int64_t>(0, (p.out - 1) * p.stride + p.kernel - p.size - p.padding);
    Value sum = b.ReduceWindowOp(x, zero, window, [&](const Values& v) { return Values{b.Add(v[0], v[1])}; });
    return b.SliceDim(sum, p.dim, 0, p.out);
  }
  Value sum = WindowTap(b, x, p, 0, zero);
  for (int64_t k = 1; k < p.kernel; ++k) sum = b.Add(sum, WindowTap(b, x, p, k, zero));
  return sum;
}

Value WindowSumBackward(Builder& b, Value grad, const PoolDim& p) {
  if (Tiles(p)) {
    Dims split = grad.dims(), at;
    split.insert(split.begin() + p.dim + 1, p.kernel);
    for (int64_t i = 0; i < grad.rank(); ++i) at.push_back(i <= p.dim ? i : i + 1);
    Dims joined = grad.dims();
    joined[p.dim] = p.out * p.kernel;
    Value spread = b.Reshape(b.BroadcastInDim(grad, split, at), joined);
    if (p.out * p.kernel == p.size) return spread;
    Dims low(grad.rank(), 0), high(grad.rank(), 0);
    high[p.dim] = p.size - p.out * p.kernel;
    return b.Pad(spread, b.Zero(grad.dtype()), low, high);
  }
  Value total;
  if (p.kernel > kUnrollLimit) {
    Value apart = WindowTapBackward(b, grad, {p.dim, p.size + 2 * p.kernel, 1, p.stride, 0, 1, p.out}, 0);
    // apart[o * stride] = grad[o]; result[i] sums apart over (i + padding - kernel, i + padding].
    ReduceWindow window;
    window.dims = window.strides = Dims(grad.rank(), 1);
    window.pad_low = window.pad_high = Dims(grad.rank(), 0);
    window.dims[p.dim] = p.kernel;
    window.pad_low[p.dim] = p.kernel - 1;
    Value sums = b.ReduceWindowOp(apart, b.Zero(grad.dtype()), window,
                                  [&](const Values& v) { return Values{b.Add(v[0], v[1])}; });
    return b.SliceDim(sums, p.dim, p.padding, p.padding + p.size);
  }
  for (int64_t k = 0; k < p.kernel; ++k) {
    Value part = WindowTapBackward(b, grad, p, k);
    total = total ? b.Add(total, part) : part;
  }
  return total;
}

void BestSoFar::Offer(Builder& b, Value candidate, Value at) {
  if (!value) {
    value = candidate;
    position = at;
    return;
  }
  Value zero = b.Zero(at.dtype(), at.dims());
  Value better = b.Or(b.Compare(candidate, value, Direction::kGt), b.Compare(position, zero, Direction::kLt));
  if (IsFloat(candidate.dtype())) better = b.Or(better, IsNan(b, candidate));
  better = b.And(better, b.Compare(at, zero, Direction::kGe));
  value = b.Select(better, candidate, value);
  position = b.Select(better, at, position);
}

Values MaxPool(Builder& b, Value x, const std::vector<PoolDim>& dims) {
  const DType dtype = x.dtype();
  Value value = ToCompute(b, x), position;
  int64_t scale = 1;  // of a step along the dim, in the plane
  for (size_t i = dims.size(); i-- > 0;) {
    const PoolDim& p = dims[i];
    Value along = b.Iota(DType::kInt32, value.dims(), p.dim);
    if (scale != 1) along = b.Multiply(along, b.ConstantInt(DType::kInt32, scale, value.dims()));
    position = position ? b.Add(position, along) : along;
    BestSoFar best;
    Value lowest = b.MinOf(value.dtype()), outside = b.ConstantInt(DType::kInt32, -1);
    for (int64_t k = 0; k < p.kernel; ++k) {
      best.Offer(b, WindowTap(b, value, p, k, lowest), WindowTap(b, position, p, k, outside));
    }
    value = best.value;
    position = best.position;
    scale *= p.size;
  }
  return {b.Convert(value, dtype), b.Convert(position, DType::kInt64)};
}

Value MaxPoolBackward(Builder& b, Value grad, Value indices, Value self, int spatial,
                      const std::vector<PoolDim>& dims) {
  const DType dtype = grad.dtype();
  grad = ToCompute(b, grad);
  int64_t taps = 1;
  for (const PoolDim& p : dims) taps *= p.kernel;
  // The CPU plugins' scatter costs a few ns an element, less than the pads below.
  if (b.target() == Target::kCpu || grad.numel() == 0 || dims.empty() || taps > kUnrollLimit) {
    int64_t plane = 1, pooled = 1, lead = 1;
    for (int64_t i = 0; i < self.rank(); ++i) {
      if (i < self.rank() - spatial) {
        lead *= self.dim(i);
      } else {
        plane *= self.dim(i);
        pooled *= grad.dim(i);
      }
    }
    Value zero = b.Zero(grad.dtype(), {lead, plane});
    Value sum = PutAlong(b, zero, b.Reshape(indices, {lead, pooled}), b.Reshape(grad, {lead, pooled}), 1, CombineAdd);
    return b.Convert(b.Reshape(sum, self.dims()), dtype);
  }
  // Each window position in turn takes the gradients whose index it is. Plain pads and adds, which TPUs
  // do far faster than a scatter.
  indices = b.Convert(indices, DType::kInt32);
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1].size;
  std::function<Value(size_t, Value)> descend = [&](size_t level, Value base) -> Value {
    if (level == dims.size()) {
      return b.Select(b.Compare(indices, base, Direction::kEq), grad, b.Zero(grad.dtype(), grad.dims()));
    }
    const PoolDim& p = dims[level];
    Value total;
    for (int64_t k = 0; k < p.kernel; ++k) {
      Value at = b.ConstantInt(DType::kInt32, (k * p.dilation - p.padding) * strides[level], grad.dims());
      Value part = WindowTapBackward(b, descend(level + 1, b.Add(base, at)), p, k);
      total = total ? b.Add(total, part) : part;
    }
    return total;
  };
  Value base = b.Zero(DType::kInt32, grad.dims());
  for (size_t i = 0; i < dims.size(); ++i) {
    Value at = b.Iota(DType::kInt32, grad.dims(), dims[i].dim);
    base = b.Add(base, b.Multiply(at, b.ConstantInt(DType::kInt32, dims[i].stride * strides[i], grad.dims())));
  }
  return b.Convert(descend(0, base), dtype);
}

Value ContractDim(Builder& b, Value x, Value weights, int64_t dim) {
  DotDims dims;
  dims.lhs_contract = {dim};
  dims.rhs_contract = {1};
  Value product = Dot(b, x, weights, dims);  // dim's place is last now
  Dims order;
  for (int64_t i = 0; i < x.rank(); ++i) order.push_back(i < dim ? i : i == dim ? x.rank() - 1 : i - 1);
  return b.Transpose(product, order);
}

namespace {

// self, kernel_size, stride, padding, dilation, ceil_mode
Values MaxPoolForward(Builder& b, const Args& a, int spatial) {
  Value x = a.tensor(0);
  return MaxPool(b, x,
                 PoolDims(x, spatial, a.ints(1), a.ints_or(2, {}), a.ints_or(3, {}), a.ints_or(4, {}), a.flag(5)));
}

Values MaxPool2d(Builder& b, const Args& a) { return MaxPoolForward(b, a, 2); }
Values MaxPool3d(Builder& b, const Args& a) { return MaxPoolForward(b, a, 3); }

// grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices
Values MaxPoolGrad(Builder& b, const Args& a, int spatial) {
  Value self = a.tensor(1);
  auto dims = PoolDims(self, spatial, a.ints(2), a.ints_or(3, {}), a.ints_or(4, {}), a.ints_or(5, {}), a.flag(6));
  return {MaxPoolBackward(b, a.tensor(0), a.tensor(7), self, spatial, dims)};
}

Values MaxPool2dGrad(Builder& b, const Args& a) { return MaxPoolGrad(b, a, 2); }
Values MaxPool3dGrad(Builder& b, const Args& a) { return MaxPoolGrad(b, a, 3); }

std::vector<OpRow> MaxPoolRows() {
  return {
      {"max_pool2d_with_indices", MaxPool2d},
      {"max_pool3d_with_indices", MaxPool3d},
      {"max_pool2d_with_indices_backward", MaxPool2dGrad},
      {"max_pool3d_with_indices_backward", MaxPool3dGrad},
  };
}

}  // namespace

std::span<const OpRow> PoolingRows() {
  static const std::vector<OpRow> rows = [] {
    std::vector<OpRow> all = MaxPoolRows();
    for (const auto& part :
         {AveragePoolRows(), AdaptivePoolRows(), FractionalPoolRows(), UpsamplingRows(), AntialiasRows()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return rows;
}

}  // namespace torch_tpu
