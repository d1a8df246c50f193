// Batch norm: channel is dim 1, statistics over all other dims, in float32 for halves.
#include "base/error.h"
#include "lowering/math.h"
#include "lowering/normalization.h"

namespace torch_tpu {
namespace {

Dims AllButChannel(const Value& x) {
  Dims dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != 1) dims.push_back(i);
  }
  return dims;
}

// A per-channel value over x's dims.
Value PerChannel(Builder& b, Value channel, const Value& x) { return b.BroadcastInDim(channel, x.dims(), {1}); }

Value OptionalCast(Builder& b, Value x, DType dtype) { return x ? Cast(b, x, dtype) : x; }

Value Required(Value x, const char* what) {
  Check(static_cast<bool>(x), "batch_norm: expected ", what, " when not training, got None");
  return x;
}

}  // namespace

Value InverseRoot(Builder& b, Value variance, Value eps) {
  Value root = b.Sqrt(b.Add(variance, FullLike(b, eps, variance)));
  return b.Divide(b.One(root.dtype(), root.dims()), root);
}

Values EmitBatchNorm(Builder& b, const Args& a) {
  Value input = a.tensor(0), x = ToCompute(b, input);
  Check(x.rank() >= 2, "batch_norm: expected an input of at least 2 dims, got ", x.type().ToString());
  const DType dtype = x.dtype();
  const Dims dims = AllButChannel(x);
  const double count = static_cast<double>(x.numel()) / static_cast<double>(x.dim(1));
  Value running_mean = a.tensor_or_absent(3), running_var = a.tensor_or_absent(4);
  Value eps = a.scalar(b, 7, dtype);
  Values out(5);
  Value mean, invstd, centered;
  if (a.flag(5)) {
    mean = Mul(b, Sum(b, x, dims), 1.0 / count);
    centered = b.Subtract(x, PerChannel(b, mean, x));
    Value squares = Sum(b, b.Multiply(centered, centered), dims);
    Value variance = Mul(b, squares, 1.0 / count);
    invstd = InverseRoot(b, variance, eps);
    Value momentum = a.scalar(b, 6, dtype);
    auto updated = [&](Value running, Value now) {
      if (!running) return running;
      Value rate = FullLike(b, momentum, now);
      Value kept = b.Multiply(Cast(b, running, dtype), b.Subtract(b.One(dtype, now.dims()), rate));
      return Cast(b, b.Add(kept, b.Multiply(rate, now)), running.dtype());
    };
    out[3] = updated(running_mean, mean);
    // The running variance is the unbiased one. A single element has none: 0 / 0, as on CPU.
    out[4] = updated(running_var, b.Divide(squares, b.Constant(dtype, count - 1, squares.dims())));
  } else {
    mean = Cast(b, Required(running_mean, "running_mean"), dtype);
    invstd = InverseRoot(b, Cast(b, Required(running_var, "running_var"), dtype), eps);
    centered = b.Subtract(x, PerChannel(b, mean, x));
    out[3] = running_mean;
    out[4] = running_var;
  }
  Value weight = OptionalCast(b, a.tensor_or_absent(1), dtype), bias = OptionalCast(b, a.tensor_or_absent(2), dtype);
  Value y = b.Multiply(centered, PerChannel(b, weight ? b.Multiply(invstd, weight) : invstd, x));
  if (bias) y = b.Add(y, PerChannel(b, bias, x));
  out[0] = b.Convert(y, input.dtype());
  out[1] = mean;
  out[2] = invstd;
  return out;
}

// (grad_out, input, weight?, running_mean?, running_var?, save_mean?, save_invstd?, train, eps, output_mask)
Values EmitBatchNormBackward(Builder& b, const Args& a) {
  Value input = a.tensor(1), x = ToCompute(b, input);
  const DType dtype = x.dtype();
  Value g = Cast(b, a.tensor(0), dtype);
  const Dims dims = AllButChannel(x);
  const double count = static_cast<double>(x.numel()) / static_cast<double>(x.dim(1));
  const bool training = a.flag(7);
  const Dims& mask = a.ints(9);
  Value weight = a.tensor_or_absent(2);
  Value mean, invstd;
  if (training) {
    mean = Cast(b, a.tensor(5), dtype);
    invstd = Cast(b, a.tensor(6), dtype);
  } else {
    mean = Cast(b, Required(a.tensor_or_absent(3), "running_mean"), dtype);
    invstd = InverseRoot(b, Cast(b, Required(a.tensor_or_absent(4), "running_var"), dtype), a.scalar(b, 8, dtype));
  }
  Value scale = weight ? b.Multiply(invstd, Cast(b, weight, dtype)) : invstd;
  Value centered = b.Subtract(x, PerChannel(b, mean, x));
  Values out(3);
  Value total, projection;
  if (training || mask[2]) total = Sum(b, g, dims);
  if (training || mask[1]) projection = Sum(b, b.Multiply(g, centered), dims);
  if (mask[0]) {
    Value gx = g;
    if (training) {
      Value slope = b.Multiply(b.Multiply(invstd, invstd), Mul(b, projection, 1.0 / count));
      gx = b.Subtract(gx, PerChannel(b, Mul(b, total, 1.0 / count), x));
      gx = b.Subtract(gx, b.Multiply(centered, PerChannel(b, slope, x)));
    }
    out[0] = b.Convert(b.Multiply(gx, PerChannel(b, scale, x)), input.dtype());
  }
  DType parameter = weight ? weight.dtype() : input.dtype();
  if (mask[1]) out[1] = Cast(b, b.Multiply(projection, invstd), parameter);
  if (mask[2]) out[2] = Cast(b, total, parameter);
  return out;
}

}  // namespace torch_tpu
