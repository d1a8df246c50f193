// Derivatives of activations, each as CPU's kernel has it (which side a kink belongs to included).
#include <cmath>
#include <numbers>
#include <string>

#include "base/error.h"
#include "lowering/activation.h"
#include "lowering/elementwise.h"
#include "lowering/special_functions.h"

namespace torch_tpu {
namespace {

// Emits of the form: gradient, input (or result), then numbers.
using GradFn = Value (*)(Builder&, const Args&, Value grad, Value x);

template <GradFn F>
Values Backward(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  Values v = Operands(b, a, {0, 1}, dtype);
  return {Cast(b, F(b, a, v[0], v[1]), dtype)};
}

Value ZeroWhere(Builder& b, Value condition, Value grad) { return b.Select(condition, Full(b, grad, 0), grad); }

Value Gelu(Builder& b, const Args& a, Value grad, Value x) {
  Value derivative;
  if (a.text(2) == "tanh") {
    const double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    Value square = b.Multiply(x, x);
    Value inner = Mul(b, b.Multiply(x, AddC(b, Mul(b, square, 0.044715), 1)), beta);
    Value t = b.Tanh(inner);
    Value left = Mul(b, AddC(b, t, 1), 0.5);
    Value slope = Mul(b, AddC(b, Mul(b, square, 3 * 0.044715), 1), beta);
    Value right = b.Multiply(b.Multiply(Mul(b, x, 0.5), SubFrom(b, 1, b.Multiply(t, t))), slope);
    derivative = b.Add(left, right);
  } else {
    Value cdf = Mul(b, AddC(b, Erf(b, Mul(b, x, std::numbers::sqrt2 / 2)), 1), 0.5);
    Value pdf = Mul(b, b.Exp(Mul(b, b.Multiply(x, x), -0.5)), std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
    derivative = b.Add(cdf, b.Multiply(x, pdf));
  }
  return b.Multiply(grad, derivative);
}

Value Silu(Builder& b, const Args&, Value grad, Value x) {
  Value s = Sigmoid(b, x);
  return b.Multiply(b.Multiply(grad, s), AddC(b, b.Multiply(x, SubFrom(b, 1, s)), 1));
}

Value Mish(Builder& b, const Args&, Value grad, Value x) {
  Value s = Sigmoid(b, x), t = b.Tanh(b.Log1p(b.Exp(x)));
  Value slope = b.Multiply(b.Multiply(x, s), SubFrom(b, 1, b.Multiply(t, t)));
  return b.Multiply(grad, b.Add(t, slope));
}

Value Threshold(Builder& b, const Args& a, Value grad, Value x) {
  return ZeroWhere(b, b.Compare(x, NumberLike(b, a, 2, x), Direction::kLe), grad);
}

Value Conjugate(Builder& b, Value x) { return IsComplex(x.dtype()) ? b.Complex(b.Real(x), b.Negate(b.Imag(x))) : x; }

Value SigmoidOfResult(Builder& b, const Args&, Value grad, Value y) {
  return b.Multiply(grad, Conjugate(b, b.Multiply(SubFrom(b, 1, y), y)));
}

Value TanhOfResult(Builder& b, const Args&, Value grad, Value y) {
  return b.Multiply(grad, Conjugate(b, SubFrom(b, 1, b.Multiply(y, y))));
}

// (grad, alpha, scale, input_scale, is_result, self_or_result)
Values Elu(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 5});
  Values v = Operands(b, a, {0, 5}, dtype);
  Value grad = v[0], x = v[1];
  Value alpha = NumberLike(b, a, 1, x, 1), scale = NumberLike(b, a, 2, x, 1), input_scale = NumberLike(b, a, 3, x, 1);
  Value low_scale = b.Multiply(alpha, scale);
  Value low = a.flag(4) ? b.Multiply(input_scale, b.Add(x, low_scale))
                        : b.Multiply(b.Multiply(input_scale, low_scale), b.Exp(b.Multiply(x, input_scale)));
  Value slope = b.Select(Greater(b, x, 0), scale, low);
  return {Cast(b, b.Multiply(grad, slope), dtype)};
}

Value Hardtanh(Builder& b, const Args& a, Value grad, Value x) {
  Value inside =
      b.And(b.Compare(x, NumberLike(b, a, 2, x), Direction::kGt), b.Compare(x, NumberLike(b, a, 3, x), Direction::kLt));
  return ZeroWhere(b, b.Not(inside), grad);
}

Value LeakyRelu(Builder& b, const Args& a, Value grad, Value x) {
  return b.Select(Greater(b, x, 0), grad, b.Multiply(grad, NumberLike(b, a, 2, x)));
}

Value Softplus(Builder& b, const Args& a, Value grad, Value x) {
  Value scaled = b.Multiply(x, NumberLike(b, a, 2, x));
  Value z = b.Exp(scaled);
  Value soft = b.Divide(b.Multiply(grad, z), AddC(b, z, 1));
  return b.Select(b.Compare(scaled, NumberLike(b, a, 3, x), Direction::kGt), grad, soft);
}

// (grad, self, buffer), the buffer being e^-|x|.
Values LogSigmoid(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  Values v = Operands(b, a, {0, 1, 2}, dtype);
  Value grad = v[0], x = v[1], decay = v[2];
  Value share = b.Divide(decay, AddC(b, decay, 1));
  Value slope = b.Select(Less(b, x, 0), SubFrom(b, 1, share), share);
  return {Cast(b, b.Multiply(grad, slope), dtype)};
}

// (grad, self, dim): the gradient of both halves, one after the other.
Values Glu(Builder& b, const Args& a) {
  Value x = a.tensor(1);
  const DType dtype = x.dtype();
  const int64_t dim = WrapDim(a.integer(2), x.rank());
  const int64_t half = x.dim(dim) / 2;
  Value grad = ToCompute(b, a.tensor(0));
  Value first = ToCompute(b, b.SliceDim(x, dim, 0, half));
  Value s = Sigmoid(b, ToCompute(b, b.SliceDim(x, dim, half, 2 * half)));
  Value left = b.Multiply(s, grad);
  Value right = b.Multiply(b.Multiply(b.Multiply(SubFrom(b, 1, s), s), grad), first);
  return {Cast(b, b.Concatenate({left, right}, dim), dtype)};
}

Value Hardswish(Builder& b, const Args&, Value grad, Value x) {
  Value middle = b.Multiply(grad, AddC(b, b.Divide(x, Full(b, x, 3)), 0.5));
  Value low = b.Compare(x, Full(b, x, -3), Direction::kLe);
  Value upper = b.Select(Less(b, x, 3), middle, grad);
  return ZeroWhere(b, low, b.Select(IsNan(b, x), middle, upper));
}

Value Hardsigmoid(Builder& b, const Args&, Value grad, Value x) {
  Value inside = b.And(Greater(b, x, -3), Less(b, x, 3));
  return b.Select(inside, Mul(b, grad, 1.0f / 6.0f), Full(b, grad, 0));
}

// Hardshrink and softshrink alike: no gradient between -lambda and lambda.
Value Shrink(Builder& b, const Args& a, Value grad, Value x) {
  Value bound = b.Convert(b.Convert(NumberLike(b, a, 2, x), a.tensor(1).dtype()), x.dtype());  // rounded, as on CPU
  Value outside = b.Or(b.Compare(x, b.Negate(bound), Direction::kLt), b.Compare(x, bound, Direction::kGt));
  return ZeroWhere(b, b.Not(outside), grad);
}

// (grad, self, weight) -> gradients of self and, before it is summed to the weight's shape, of the weight.
Values Prelu(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  Values v = Operands(b, a, {0, 1, 2}, dtype);
  Value grad = v[0], x = v[1], weight = v[2];
  Value positive = Greater(b, x, 0);
  Value of_self = b.Select(positive, grad, b.Multiply(weight, grad));
  Value of_weight = ZeroWhere(b, positive, b.Multiply(x, grad));
  return {Cast(b, of_self, dtype), Cast(b, of_weight, dtype)};
}

// (grad, self, eps?): without eps, NaN outside of [0, 1]; with it, zero where the input was clamped.
Value Logit(Builder& b, const Args& a, Value grad, Value x) {
  Value slope = b.Divide(grad, b.Multiply(x, SubFrom(b, 1, x)));
  auto outside = [&](Value low, Value high) {
    return b.Or(b.Compare(x, low, Direction::kLt), b.Compare(x, high, Direction::kGt));
  };
  Value plain = b.Select(outside(Full(b, x, 0), Full(b, x, 1)), Full(b, x, NAN), slope);
  if (!a.has(2)) return plain;
  Value eps = NumberLike(b, a, 2, x);
  return b.Select(Less(b, eps, 0), plain, ZeroWhere(b, outside(eps, SubFrom(b, 1, eps)), slope));
}

constexpr OpRow kRows[] = {
    {"gelu_backward", Backward<Gelu>},
    {"silu_backward", Backward<Silu>, kOwnDerivative},
    {"mish_backward", Backward<Mish>, kOwnDerivative},
    {"threshold_backward", Backward<Threshold>},
    {"sigmoid_backward", Backward<SigmoidOfResult>},
    {"tanh_backward", Backward<TanhOfResult>},
    {"elu_backward", Elu},
    {"hardtanh_backward", Backward<Hardtanh>},
    {"leaky_relu_backward", Backward<LeakyRelu>},
    {"softplus_backward", Backward<Softplus>},
    {"log_sigmoid_backward", LogSigmoid},
    {"glu_backward", Glu},
    {"hardswish_backward", Backward<Hardswish>},
    {"hardsigmoid_backward", Backward<Hardsigmoid>},
    {"softshrink_backward", Backward<Shrink>},
    {"hardshrink_backward", Backward<Shrink>},
    {"_prelu_kernel_backward", Prelu},
    {"logit_backward", Backward<Logit>},
};

}  // namespace

std::span<const OpRow> ActivationBackwardRows() { return kRows; }

}  // namespace torch_tpu
