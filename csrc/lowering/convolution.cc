#include "lowering/convolution.h"

#include <numeric>

#include "base/error.h"
#include "lowering/host_call.h"
#include "lowering/math.h"
#include "lowering/table.h"

namespace torch_tpu {
namespace {

Dims Ones(int64_t n) { return Dims(n, 1); }

// The plugin for CPU only has fast convolutions of float32.
Value FastOperand(Builder& b, Value x) { return b.target() == Target::kCpu ? ToCompute(b, x) : x; }

Value Convolve(Builder& b, Value lhs, Value rhs, const ConvDims& dims, const ConvWindow& window) {
  return b.Convolution(lhs, rhs, dims, window, ComputeType(lhs.dtype()));
}

// Weight [out, c / g, ...] as [c, out / g, ...] with its taps reversed: the weight of the input gradient.
Value TransposedWeight(Builder& b, Value weight, int64_t groups) {
  Dims split = {groups, weight.dim(0) / groups, weight.dim(1)}, order = {0, 2, 1}, taps;
  Dims merged = {groups * weight.dim(1), weight.dim(0) / groups};
  for (int64_t i = 2; i < weight.rank(); ++i) {
    split.push_back(weight.dim(i));
    merged.push_back(weight.dim(i));
    order.push_back(i + 1);
    taps.push_back(i);
  }
  Value swapped = b.Reshape(b.Transpose(b.Reshape(weight, split), order), merged);
  return b.Reverse(swapped, taps);
}

}  // namespace

Dims SpatialOf(const Value& x) { return Dims(x.dims().begin() + 2, x.dims().end()); }

ConvDims DefaultConvDims(int64_t spatial) {
  ConvDims dims;
  dims.lhs_spatial.resize(spatial);
  std::iota(dims.lhs_spatial.begin(), dims.lhs_spatial.end(), 2);
  dims.rhs_spatial = dims.out_spatial = dims.lhs_spatial;
  return dims;
}

Dims ConvGeometry::OutputSize(const Dims& input, const Dims& kernel) const {
  Dims out;
  for (int64_t i = 0; i < rank(); ++i) {
    const int64_t room = input.at(i) + 2 * padding[i] - dilation[i] * (kernel.at(i) - 1) - 1;
    Check(room >= 0, "convolution: expected a kernel no larger than the padded input, got kernel ", ToString(kernel),
          ", input ", ToString(input), " and padding ", ToString(padding));
    out.push_back(room / stride[i] + 1);
  }
  return out;
}

Value ConvForward(Builder& b, Value input, Value weight, const ConvGeometry& g, const Dims& output_spatial) {
  input = FastOperand(b, input), weight = FastOperand(b, weight);
  if (Value dot = DotForward(b, input, weight, g, output_spatial)) return dot;
  ConvWindow window;
  window.strides = g.stride;
  window.pad_low = g.padding;
  for (int64_t i = 0; i < g.rank(); ++i) {
    const int64_t reach = (output_spatial.at(i) - 1) * g.stride[i] + g.dilation[i] * (weight.dim(i + 2) - 1) + 1;
    window.pad_high.push_back(reach - input.dim(i + 2) - g.padding[i]);
  }
  window.lhs_dilation = Ones(g.rank());
  window.rhs_dilation = g.dilation;
  window.feature_groups = g.groups;
  return Convolve(b, input, weight, DefaultConvDims(g.rank()), window);
}

Value ConvInputGradient(Builder& b, Value grad, Value weight, const ConvGeometry& g, const Dims& input_spatial) {
  grad = FastOperand(b, grad), weight = FastOperand(b, weight);
  if (Value dot = DotInputGradient(b, grad, weight, g, input_spatial)) return dot;
  ConvWindow window;
  window.strides = Ones(g.rank());
  window.lhs_dilation = g.stride;
  window.rhs_dilation = g.dilation;
  window.feature_groups = g.groups;
  for (int64_t i = 0; i < g.rank(); ++i) {
    const int64_t reach = g.dilation[i] * (weight.dim(i + 2) - 1);
    const int64_t low = reach - g.padding[i];
    const int64_t dilated = (grad.dim(i + 2) - 1) * g.stride[i] + 1;
    window.pad_low.push_back(low);
    window.pad_high.push_back(input_spatial.at(i) - dilated - low + reach);
  }
  return Convolve(b, grad, TransposedWeight(b, weight, g.groups), DefaultConvDims(g.rank()), window);
}

Value ConvWeightGradient(Builder& b, Value input, Value grad, const ConvGeometry& g, const Dims& kernel_spatial) {
  input = FastOperand(b, input), grad = FastOperand(b, grad);
  if (Value dot = DotWeightGradient(b, input, grad, g, kernel_spatial)) return dot;
  // Channels are the batch, the batch is the feature, and the output's gradient is the kernel.
  ConvDims dims = DefaultConvDims(g.rank());
  dims.lhs_batch = 1, dims.lhs_feature = 0;
  dims.rhs_out = 1, dims.rhs_in = 0;
  dims.out_batch = 1, dims.out_feature = 0;
  ConvWindow window;
  window.strides = g.dilation;
  window.lhs_dilation = Ones(g.rank());
  window.rhs_dilation = g.stride;
  window.batch_groups = g.groups;
  window.pad_low = g.padding;
  for (int64_t i = 0; i < g.rank(); ++i) {
    const int64_t reach = (grad.dim(i + 2) - 1) * g.stride[i] + 1;
    window.pad_high.push_back((kernel_spatial.at(i) - 1) * g.dilation[i] + reach - input.dim(i + 2) - g.padding[i]);
  }
  return Convolve(b, input, grad, dims, window);
}

namespace {

Dims Expanded(const Dims& values, int64_t n, const char* what) {
  if (values.size() == 1) return Dims(n, values[0]);
  Check(static_cast<int64_t>(values.size()) == n, "convolution: expected ", what, " of one or ", n, " numbers, got ",
        ToString(values));
  return values;
}

// Arguments stride, padding, dilation, transposed, output_padding, groups start at `first`.
ConvGeometry GeometryOf(const Args& a, size_t first, const Value& input) {
  const int64_t n = input.rank() - 2;
  ConvGeometry g;
  g.stride = Expanded(a.ints(first), n, "stride");
  g.padding = Expanded(a.ints(first + 1), n, "padding");
  g.dilation = Expanded(a.ints(first + 2), n, "dilation");
  g.groups = a.integer(first + 5);
  return g;
}

// oneDNN's form, where it can be had. It takes what PyTorch's CPU convolution takes, in the same dtypes.
bool HasHostForm(Builder& b, const Value& x, const Value& y) {
  return b.host_kernels() && IsFloat(x.dtype()) && ItemSize(x.dtype()) > 1 && x.numel() > 0 && y.numel() > 0;
}

Dims HostNumbers(const ConvGeometry& g, bool transposed, const Dims& output_padding) {
  Dims numbers = {g.rank()};
  for (const Dims& part : {g.stride, g.padding, g.dilation, output_padding}) {
    numbers.insert(numbers.end(), part.begin(), part.end());
  }
  numbers.insert(numbers.end(), {transposed, g.groups});
  return numbers;
}

// (input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups)
Values EmitConvolution(Builder& b, const Args& a) {
  Value input = a.tensor(0), weight = a.tensor(1), bias = a.tensor_or_absent(2);
  ConvGeometry g = GeometryOf(a, 3, input);
  const bool transposed = a.flag(6);
  const Dims extra = Expanded(a.ints(7), g.rank(), "output_padding");
  Dims size;
  if (transposed) {
    for (int64_t i = 0; i < g.rank(); ++i) {
      size.push_back((input.dim(i + 2) - 1) * g.stride[i] - 2 * g.padding[i] + g.dilation[i] * (weight.dim(i + 2) - 1) +
                     extra[i] + 1);
    }
  } else {
    size = g.OutputSize(SpatialOf(input), SpatialOf(weight));
  }
  if (HasHostForm(b, input, weight) && torch_tpu::Product(size) > 0) {
    Dims dims = {input.dim(0), transposed ? weight.dim(1) * g.groups : weight.dim(0)};
    dims.insert(dims.end(), size.begin(), size.end());
    Values operands = {input, weight};
    if (bias) operands.push_back(bias);
    return CallHost(b, "convolution", operands, {{input.dtype(), dims}}, HostNumbers(g, transposed, extra));
  }
  Value out = transposed ? ConvInputGradient(b, input, weight, g, size) : ConvForward(b, input, weight, g, size);
  if (bias) out = b.Add(out, b.BroadcastInDim(Cast(b, bias, out.dtype()), out.dims(), {1}));
  return {b.Convert(out, input.dtype())};
}

// (grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, output_mask)
Values EmitConvolutionBackward(Builder& b, const Args& a) {
  Value grad = a.tensor(0), input = a.tensor(1), weight = a.tensor(2);
  ConvGeometry g = GeometryOf(a, 3, input);
  const bool transposed = a.flag(6);
  const Dims& mask = a.ints(9);
  Values out(3);
  if (HasHostForm(b, input, weight) && grad.numel() > 0) {
    Dims numbers = HostNumbers(g, transposed, Expanded(a.ints(7), g.rank(), "output_padding"));
    numbers.insert(numbers.end(), mask.begin(), mask.begin() + 3);
    const std::vector<TensorType> all = {input.type(), weight.type(), {grad.dtype(), {grad.dim(1)}}};
    std::vector<TensorType> wanted;
    for (size_t i = 0; i < all.size(); ++i) {
      if (mask[i]) wanted.push_back(all[i]);
    }
    if (wanted.empty()) return out;
    const Values made = CallHost(b, "convolution_backward", {grad, input, weight}, wanted, numbers);
    for (size_t i = 0, next = 0; i < out.size(); ++i) {
      if (mask[i]) out[i] = made[next++];
    }
    return out;
  }
  if (mask[0]) {
    Value gx = transposed ? ConvForward(b, grad, weight, g, SpatialOf(input))
                          : ConvInputGradient(b, grad, weight, g, SpatialOf(input));
    out[0] = b.Convert(gx, input.dtype());
  }
  if (mask[1]) {
    Value gw = transposed ? ConvWeightGradient(b, grad, input, g, SpatialOf(weight))
                          : ConvWeightGradient(b, input, grad, g, SpatialOf(weight));
    out[1] = b.Convert(gw, weight.dtype());
  }
  if (mask[2]) {
    Dims dims = {0};
    for (int64_t i = 2; i < grad.rank(); ++i) dims.push_back(i);
    out[2] = b.Convert(Sum(b, ToCompute(b, grad), dims), grad.dtype());
  }
  return out;
}

// PyTorch's own kernels of these two only raise, on the meta device too.
constexpr OpRow kRows[] = {
    {"convolution_overrideable", EmitConvolution, kNoMeta},
    {"convolution_backward_overrideable", EmitConvolutionBackward, kNoMeta},
};

}  // namespace

std::span<const OpRow> ConvolutionRows() { return kRows; }

}  // namespace torch_tpu
