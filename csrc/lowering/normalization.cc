// Layer, RMS, group norm and softmax, forward and backward. Halves are computed, and their statistics kept, in float32.
#include <limits>
#include <numeric>

#include "base/error.h"
#include "lowering/math.h"
#include "lowering/normalization.h"
#include "lowering/table.h"

namespace torch_tpu {
namespace {

Dims DimRange(int64_t from, int64_t to) {
  Dims dims(to > from ? to - from : 0);
  std::iota(dims.begin(), dims.end(), from);
  return dims;
}

int64_t CountOf(const Value& x, const Dims& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= x.dim(dim);
  return count;
}

Value SumKeep(Builder& b, Value x, const Dims& dims) { return KeepDims(b, Sum(b, x, dims), x.dims(), dims); }

Value MeanKeep(Builder& b, Value x, const Dims& dims) {
  return Mul(b, SumKeep(b, x, dims), 1.0 / static_cast<double>(CountOf(x, dims)));
}

// x (op) y where y has ones in place of some of x's dims.
Value Minus(Builder& b, Value x, Value y) { return b.Subtract(x, b.BroadcastTo(y, x.dims())); }
Value Times(Builder& b, Value x, Value y) { return b.Multiply(x, b.BroadcastTo(y, x.dims())); }
Value Plus(Builder& b, Value x, Value y) { return b.Add(x, b.BroadcastTo(y, x.dims())); }

// x * w + c, either of which may be absent; both are cast to x's dtype and aligned by trailing dims.
Value ScaleShift(Builder& b, Value x, Value w, Value c) {
  if (w) x = Times(b, x, Cast(b, w, x.dtype()));
  if (c) x = Plus(b, x, Cast(b, c, x.dtype()));
  return x;
}

struct Moments {
  Value centered, mean, rstd;  // mean and rstd with ones in the reduced dims
};

Moments Standardize(Builder& b, Value x, const Dims& dims, Value eps) {
  Moments m;
  m.mean = MeanKeep(b, x, dims);
  m.centered = Minus(b, x, m.mean);
  m.rstd = InverseRoot(b, MeanKeep(b, b.Multiply(m.centered, m.centered), dims), eps);
  return m;
}

// Gradient with regard to x, where `g` already holds grad * w: rstd * (g - mean(g) - n * mean(g * n)), n = normalized.
Value StandardizeGradient(Builder& b, Value g, Value normalized, Value rstd, const Dims& dims) {
  Value inner = Minus(b, g, MeanKeep(b, g, dims));
  inner = b.Subtract(inner, Times(b, normalized, MeanKeep(b, b.Multiply(g, normalized), dims)));
  return Times(b, inner, rstd);
}

// Sum over the dims before `axis`, rounded to `like`'s dtype.
Value ParameterGradient(Builder& b, Value x, int64_t axis, DType dtype) {
  return b.Convert(Sum(b, x, DimRange(0, axis)), dtype);
}

// native_layer_norm(input, normalized_shape, weight?, bias?, eps) -> (out, mean, rstd)
Values EmitLayerNorm(Builder& b, const Args& a) {
  Value input = a.tensor(0), x = ToCompute(b, input);
  Dims dims = DimRange(x.rank() - static_cast<int64_t>(a.ints(1).size()), x.rank());
  Moments m = Standardize(b, x, dims, a.scalar(b, 4, x.dtype()));
  Value out = ScaleShift(b, Times(b, m.centered, m.rstd), a.tensor_or_absent(2), a.tensor_or_absent(3));
  return {b.Convert(out, input.dtype()), m.mean, m.rstd};
}

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask)
Values EmitLayerNormBackward(Builder& b, const Args& a) {
  Value input = a.tensor(1), x = ToCompute(b, input), g = Cast(b, a.tensor(0), x.dtype());
  const int64_t axis = x.rank() - static_cast<int64_t>(a.ints(2).size());
  const Dims& mask = a.ints(7);
  Value rstd = Cast(b, a.tensor(4), x.dtype());
  Value normalized = Times(b, Minus(b, x, Cast(b, a.tensor(3), x.dtype())), rstd);
  Value weight = a.tensor_or_absent(5), bias = a.tensor_or_absent(6);
  Values out(3);
  if (mask[0]) {
    Value gx = StandardizeGradient(b, ScaleShift(b, g, weight, {}), normalized, rstd, DimRange(axis, x.rank()));
    out[0] = b.Convert(gx, input.dtype());
  }
  DType parameter = weight ? weight.dtype() : bias ? bias.dtype() : input.dtype();
  if (mask[1]) out[1] = ParameterGradient(b, b.Multiply(g, normalized), axis, parameter);
  if (mask[2]) out[2] = ParameterGradient(b, g, axis, bias ? bias.dtype() : parameter);
  return out;
}

// _fused_rms_norm(input, normalized_shape, weight?, eps?) -> (out, rstd)
Values EmitRmsNorm(Builder& b, const Args& a) {
  Value input = a.tensor(0), x = ToCompute(b, input);
  Dims dims = DimRange(x.rank() - static_cast<int64_t>(a.ints(1).size()), x.rank());
  const double epsilon =
      x.dtype() == DType::kFloat64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  Value eps = a.has(3) ? a.scalar(b, 3, x.dtype()) : b.Constant(x.dtype(), epsilon);
  Value rstd = InverseRoot(b, MeanKeep(b, b.Multiply(x, x), dims), eps);
  Value out = ScaleShift(b, Times(b, x, rstd), a.tensor_or_absent(2), {});
  return {b.Convert(out, input.dtype()), rstd};
}

// _fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight?, output_mask)
Values EmitRmsNormBackward(Builder& b, const Args& a) {
  Value input = a.tensor(1), x = ToCompute(b, input), g = Cast(b, a.tensor(0), x.dtype());
  const int64_t axis = x.rank() - static_cast<int64_t>(a.ints(2).size());
  const Dims dims = DimRange(axis, x.rank());
  const Dims& mask = a.ints(5);
  Value rstd = Cast(b, a.tensor(3), x.dtype());
  Value normalized = Times(b, x, rstd);
  Value weight = a.tensor_or_absent(4);
  Values out(2);
  if (mask[0]) {
    Value gw = ScaleShift(b, g, weight, {});
    Value inner = b.Subtract(gw, Times(b, normalized, MeanKeep(b, b.Multiply(gw, normalized), dims)));
    out[0] = b.Convert(Times(b, inner, rstd), input.dtype());
  }
  if (mask[1]) {
    out[1] = ParameterGradient(b, b.Multiply(g, normalized), axis, weight ? weight.dtype() : input.dtype());
  }
  return out;
}

// Sizes of a group norm: [N, C, HxW] seen as [N, group, C / group, HxW].
struct Groups {
  int64_t batch, channels, area, groups;
  Dims grouped() const { return {batch, groups, channels / groups, area}; }
  Value Statistic(Builder& b, Value x) const { return b.Reshape(x, {batch, groups, 1, 1}); }
  Value Parameter(Builder& b, Value x) const { return b.Reshape(x, {1, groups, channels / groups, 1}); }
};

Groups GroupsOf(const Args& a, size_t first) {
  Groups g{a.integer(first), a.integer(first + 1), a.integer(first + 2), a.integer(first + 3)};
  Check(g.groups > 0 && g.channels % g.groups == 0, "group_norm: expected a number of groups that divides ", g.channels,
        " channels, got ", g.groups);
  return g;
}

// native_group_norm(input, weight?, bias?, N, C, HxW, group, eps) -> (out, mean, rstd)
Values EmitGroupNorm(Builder& b, const Args& a) {
  Value input = a.tensor(0), x = ToCompute(b, input);
  Groups groups = GroupsOf(a, 3);
  Moments m = Standardize(b, b.Reshape(x, groups.grouped()), {2, 3}, a.scalar(b, 7, x.dtype()));
  Value w = a.tensor_or_absent(1), c = a.tensor_or_absent(2);
  Value out =
      ScaleShift(b, Times(b, m.centered, m.rstd), w ? groups.Parameter(b, w) : w, c ? groups.Parameter(b, c) : c);
  Dims statistics = {groups.batch, groups.groups};
  return {b.Convert(b.Reshape(out, input.dims()), input.dtype()), b.Reshape(m.mean, statistics),
          b.Reshape(m.rstd, statistics)};
}

// native_group_norm_backward(grad_out, input, mean, rstd, weight?, N, C, HxW, group, output_mask)
Values EmitGroupNormBackward(Builder& b, const Args& a) {
  Value input = a.tensor(1), x = ToCompute(b, input);
  Groups groups = GroupsOf(a, 5);
  const Dims& mask = a.ints(9);
  Value g = b.Reshape(Cast(b, a.tensor(0), x.dtype()), groups.grouped());
  Value rstd = groups.Statistic(b, Cast(b, a.tensor(3), x.dtype()));
  Value mean = groups.Statistic(b, Cast(b, a.tensor(2), x.dtype()));
  Value normalized = Times(b, Minus(b, b.Reshape(x, groups.grouped()), mean), rstd);
  Value weight = a.tensor_or_absent(4);
  Values out(3);
  if (mask[0]) {
    Value gw = weight ? ScaleShift(b, g, groups.Parameter(b, weight), {}) : g;
    Value gx = StandardizeGradient(b, gw, normalized, rstd, {2, 3});
    out[0] = b.Convert(b.Reshape(gx, input.dims()), input.dtype());
  }
  DType parameter = weight ? weight.dtype() : input.dtype();
  auto reduced = [&](Value v) { return b.Convert(b.Reshape(Sum(b, v, {0, 3}), {groups.channels}), parameter); };
  if (mask[1]) out[1] = reduced(b.Multiply(g, normalized));
  if (mask[2]) out[2] = reduced(g);
  return out;
}

// A 0-d softmax is that of one element.
template <class Body>
Value AlongDim(Builder& b, Value x, int64_t dim, const Body& body) {
  if (x.rank() > 0) return body(x, Dims{WrapDim(dim, x.rank())});
  WrapDim(dim, 1);
  return b.Reshape(body(b.Reshape(x, {1}), Dims{0}), {});
}

Value SoftmaxOf(Builder& b, Value x, int64_t dim) {
  return AlongDim(b, x, dim, [&](Value v, const Dims& dims) {
    // A row with NaN is NaN by its sum, whatever the plugin's maximum makes of it.
    Value shifted = Minus(b, v, KeepDims(b, b.Reduce(v, Builder::Reducer::kMax, dims), v.dims(), dims));
    Value e = b.Exp(shifted);
    return b.Divide(e, b.BroadcastTo(SumKeep(b, e, dims), e.dims()));
  });
}

Value LogSoftmaxOf(Builder& b, Value x, int64_t dim) {
  return AlongDim(b, x, dim, [&](Value v, const Dims& dims) {
    Value shifted = Minus(b, v, KeepDims(b, b.Reduce(v, Builder::Reducer::kMax, dims), v.dims(), dims));
    return Minus(b, shifted, b.Log(SumKeep(b, b.Exp(shifted), dims)));
  });
}

// _softmax(self, dim, half_to_float), and _log_softmax
template <Value (*kFunction)(Builder&, Value, int64_t)>
Values EmitSoftmax(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  Value out = kFunction(b, ToCompute(b, x), a.integer(1));
  return {a.flag(2) ? out : b.Convert(out, x.dtype())};
}

// _safe_softmax(self, dim, dtype?): rows of -inf are zeros.
Values EmitSafeSoftmax(Builder& b, const Args& a) {
  Value input = Cast(b, a.tensor(0), a.dtype_or(2, a.tensor(0).dtype())), x = ToCompute(b, input);
  Value out = SoftmaxOf(b, x, a.integer(1));
  Value masked = AlongDim(b, b.Compare(x, b.MinOf(x.dtype(), x.dims()), Direction::kEq), a.integer(1),
                          [&](Value v, const Dims& dims) {
                            Value all = KeepDims(b, b.Reduce(v, Builder::Reducer::kAnd, dims), v.dims(), dims);
                            return b.BroadcastTo(all, v.dims());
                          });
  return {b.Convert(b.Select(masked, b.Zero(out.dtype(), out.dims()), out), input.dtype())};
}

// _softmax_backward_data(grad_output, output, dim, input_dtype)
Values EmitSoftmaxBackward(Builder& b, const Args& a) {
  Value output = ToCompute(b, a.tensor(1));
  Value weighted = b.Multiply(Cast(b, a.tensor(0), output.dtype()), output);
  Value total = AlongDim(b, weighted, a.integer(2),
                         [&](Value v, const Dims& dims) { return b.BroadcastTo(SumKeep(b, v, dims), v.dims()); });
  return {b.Convert(b.Subtract(weighted, b.Multiply(output, total)), a.dtype_or(3, a.tensor(0).dtype()))};
}

Values EmitLogSoftmaxBackward(Builder& b, const Args& a) {
  Value output = ToCompute(b, a.tensor(1)), g = Cast(b, a.tensor(0), output.dtype());
  Value total = AlongDim(b, g, a.integer(2),
                         [&](Value v, const Dims& dims) { return b.BroadcastTo(SumKeep(b, v, dims), v.dims()); });
  return {b.Convert(b.Subtract(g, b.Multiply(b.Exp(output), total)), a.dtype_or(3, a.tensor(0).dtype()))};
}

// All dims but `dim`, as torch.norm_except_dim.
Dims AllBut(const Value& x, int64_t dim) {
  Dims dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != dim) dims.push_back(i);
  }
  return dims;
}

// _weight_norm_interface(v, g, dim) -> (w, norms)
Values EmitWeightNorm(Builder& b, const Args& a) {
  Value v = ToCompute(b, a.tensor(0));
  Dims dims = AllBut(v, WrapDim(a.integer_or(2, 0), v.rank()));
  Value norms = b.Sqrt(SumKeep(b, b.Multiply(v, v), dims));
  Value scale = b.Divide(Cast(b, a.tensor(1), v.dtype()), norms);
  return {b.Convert(Times(b, v, scale), a.tensor(0).dtype()), norms};
}

// _weight_norm_interface_backward(grad_w, saved_v, saved_g, saved_norms, dim) -> (grad_v, grad_g)
Values EmitWeightNormBackward(Builder& b, const Args& a) {
  Value v = ToCompute(b, a.tensor(1)), grad = Cast(b, a.tensor(0), v.dtype());
  Dims dims = AllBut(v, WrapDim(a.integer(4), v.rank()));
  Value g = Cast(b, a.tensor(2), v.dtype()), norms = Cast(b, a.tensor(3), v.dtype());
  Value grad_g = b.Divide(SumKeep(b, b.Multiply(grad, v), dims), norms);
  Value unit = b.Divide(v, b.BroadcastTo(norms, v.dims()));
  Value grad_v = Times(b, b.Subtract(grad, Times(b, unit, grad_g)), b.Divide(g, norms));
  return {b.Convert(grad_v, a.tensor(1).dtype()), b.Convert(grad_g, a.tensor(2).dtype())};
}

constexpr OpRow kRows[] = {
    {"native_layer_norm", EmitLayerNorm},
    {"native_layer_norm_backward", EmitLayerNormBackward},
    {"_fused_rms_norm", EmitRmsNorm, kOwnDerivative},
    {"_fused_rms_norm_backward", EmitRmsNormBackward},
    {"native_group_norm", EmitGroupNorm},
    {"native_group_norm_backward", EmitGroupNormBackward},
    {"_softmax", EmitSoftmax<SoftmaxOf>},
    {"_log_softmax", EmitSoftmax<LogSoftmaxOf>},
    {"_safe_softmax", EmitSafeSoftmax},
    {"_softmax_backward_data", EmitSoftmaxBackward},
    {"_log_softmax_backward_data", EmitLogSoftmaxBackward},
    {"_weight_norm_interface", EmitWeightNorm},
    {"_weight_norm_interface_backward", EmitWeightNormBackward},
    {"native_batch_norm_backward", EmitBatchNormBackward},
    // Its tenth argument, the reserve of other libraries, is not read.
    {"batch_norm_backward", EmitBatchNormBackward},
    // (input, weight?, bias?, running_mean?, running_var?, training, momentum, eps)
    //   -> (out, save_mean, save_invstd, new running_mean, new running_var)
    {"tpu::batch_norm", EmitBatchNorm, kInternal},
};

}  // namespace

std::span<const OpRow> NormalizationRows() { return kRows; }

}  // namespace torch_tpu
