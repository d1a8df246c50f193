// Convolutions as matrix products, for the CPU plugin: it has a fast product, and no fast form of a 1x1 kernel's weight
// gradient, of a grouped one's, or of a large image's.
#include <numeric>

#include "lowering/convolution.h"
#include "lowering/math.h"

namespace torch_tpu {
namespace {

bool AllEqual(const Dims& dims, int64_t value) {
  for (int64_t dim : dims) {
    if (dim != value) return false;
  }
  return true;
}

bool IsPointwise(const ConvGeometry& g, const Dims& kernel) {
  return g.groups == 1 && AllEqual(kernel, 1) && AllEqual(g.padding, 0);
}

// [n, c, ...] -> [n, c, product of spatial dims]
Value Flat(Builder& b, Value x) { return b.Reshape(x, {x.dim(0), x.dim(1), Product(SpatialOf(x))}); }

// The elements of the padded input that the tap at `offset` of the kernel meets: [n, c, output size...].
Value Tap(Builder& b, Value padded, const Dims& offset, const ConvGeometry& g, const Dims& output) {
  Dims start = {0, 0}, limit = {padded.dim(0), padded.dim(1)}, step = {1, 1};
  for (int64_t i = 0; i < g.rank(); ++i) {
    start.push_back(offset[i] * g.dilation[i]);
    limit.push_back(start.back() + (output[i] - 1) * g.stride[i] + 1);
    step.push_back(g.stride[i]);
  }
  return b.Slice(padded, start, limit, step);
}

Value PadSpatial(Builder& b, Value x, const Dims& padding) {
  if (AllEqual(padding, 0)) return x;
  Dims pad = {0, 0};
  pad.insert(pad.end(), padding.begin(), padding.end());
  return b.Pad(x, b.Zero(x.dtype()), pad, pad);
}

// Every offset in a kernel, row-major.
std::vector<Dims> Offsets(const Dims& kernel) {
  std::vector<Dims> all;
  for (int64_t k = 0; k < Product(kernel); ++k) {
    Dims offset(kernel.size());
    int64_t rest = k;
    for (size_t i = kernel.size(); i-- > 0;) {
      offset[i] = rest % kernel[i];
      rest /= kernel[i];
    }
    all.push_back(offset);
  }
  return all;
}

// [n, groups * c, s] x [n, groups * d, s] -> [groups * d, c]: sums over n and s, group by group.
Value GroupProduct(Builder& b, Value input, Value grad, int64_t groups) {
  const int64_t c = input.dim(1) / groups, d = grad.dim(1) / groups;
  if (groups == 1) return b.DotGeneral(grad, input, {{}, {}, {0, 2}, {0, 2}}, input.dtype());
  Value x = b.Reshape(input, {input.dim(0), groups, c, input.dim(2)});
  Value y = b.Reshape(grad, {grad.dim(0), groups, d, grad.dim(2)});
  return b.Reshape(b.DotGeneral(y, x, {{1}, {1}, {0, 3}, {0, 3}}, input.dtype()), {groups * d, c});
}

// [n, c, spatial...] -> [n * spatial, c]
Value ChannelsLastRows(Builder& b, Value x) {
  return b.Reshape(b.Transpose(Flat(b, x), {0, 2, 1}), {x.numel() / x.dim(1), x.dim(1)});
}

// One product of the output's gradient with all taps side by side.
Value ColumnsProduct(Builder& b, Value input, Value grad, const ConvGeometry& g, const Dims& kernel) {
  Value padded = PadSpatial(b, input, g.padding);
  Values taps;
  for (const Dims& offset : Offsets(kernel)) {
    taps.push_back(ChannelsLastRows(b, Tap(b, padded, offset, g, SpatialOf(grad))));
  }
  Value columns = b.Concatenate(taps, 1);
  Value product = b.DotGeneral(ChannelsLastRows(b, grad), columns, {{}, {}, {0}, {0}}, input.dtype());
  const int64_t count = static_cast<int64_t>(taps.size()), channels = input.dim(1);
  Dims dims = {grad.dim(1), channels};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  return b.Reshape(b.Transpose(b.Reshape(product, {grad.dim(1), count, channels}), {0, 2, 1}), dims);
}

bool IsSuited(Builder& b, const Value& x) { return b.target() == Target::kCpu && IsFloat(x.dtype()) && x.numel() > 0; }

}  // namespace

Value DotForward(Builder& b, Value input, Value weight, const ConvGeometry& g, const Dims& output) {
  if (!IsSuited(b, input) || !IsPointwise(g, SpatialOf(weight))) return {};
  Value x = Flat(b, Tap(b, input, Dims(g.rank(), 0), g, output));
  Value w = b.Reshape(weight, {weight.dim(0), weight.dim(1)});
  Value many = b.BroadcastInDim(w, {x.dim(0), w.dim(0), w.dim(1)}, {1, 2});
  Dims dims = {x.dim(0), w.dim(0)};
  dims.insert(dims.end(), output.begin(), output.end());
  return b.Reshape(b.DotGeneral(many, x, {{0}, {0}, {2}, {1}}, x.dtype()), dims);
}

Value DotInputGradient(Builder& b, Value grad, Value weight, const ConvGeometry& g, const Dims& input_spatial) {
  if (!IsSuited(b, grad) || !IsPointwise(g, SpatialOf(weight))) return {};
  Value w = b.Reshape(weight, {weight.dim(0), weight.dim(1)});
  Value many = b.BroadcastInDim(w, {grad.dim(0), w.dim(0), w.dim(1)}, {1, 2});
  Value flat = b.DotGeneral(many, Flat(b, grad), {{0}, {0}, {1}, {1}}, grad.dtype());
  Dims dims = {grad.dim(0), w.dim(1)}, none = {0, 0}, high = {0, 0}, interior = {0, 0};
  for (int64_t i = 0; i < g.rank(); ++i) {
    dims.push_back(grad.dim(i + 2));
    none.push_back(0);
    high.push_back(input_spatial[i] - (grad.dim(i + 2) - 1) * g.stride[i] - 1);
    interior.push_back(g.stride[i] - 1);
  }
  Value out = b.Reshape(flat, dims);
  if (AllEqual(g.stride, 1) && AllEqual(high, 0)) return out;
  return b.Pad(out, b.Zero(out.dtype()), none, high, interior);
}

Value DotWeightGradient(Builder& b, Value input, Value grad, const ConvGeometry& g, const Dims& kernel) {
  if (!IsSuited(b, input) || grad.numel() == 0) return {};
  const int64_t taps = Product(kernel);
  constexpr int64_t kMostTaps = 49, kMostColumns = 9, kLargeImage = 1024;
  if (g.groups == 1 && taps > 1) {
    const bool large = Product(SpatialOf(grad)) >= kLargeImage && input.dim(1) >= 16 && taps <= kMostColumns;
    return large ? ColumnsProduct(b, input, grad, g, kernel) : Value();
  }
  if (taps > kMostTaps) return {};
  Value padded = PadSpatial(b, input, g.padding), flat_grad = Flat(b, grad);
  Values products;
  for (const Dims& offset : Offsets(kernel)) {
    Value product = GroupProduct(b, Flat(b, Tap(b, padded, offset, g, SpatialOf(grad))), flat_grad, g.groups);
    products.push_back(b.Reshape(product, {product.dim(0), product.dim(1), 1}));
  }
  Dims dims = {grad.dim(1), input.dim(1) / g.groups};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  return b.Reshape(products.size() == 1 ? products[0] : b.Concatenate(products, 2), dims);
}

}  // namespace torch_tpu
