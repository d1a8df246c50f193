// Activations. Every formula is CPU's kernel; short floats are computed in float32 and rounded once.
#include <numbers>
#include <string>
#include <vector>

#include "base/error.h"
#include "lowering/activation.h"
#include "lowering/elementwise.h"
#include "lowering/special_functions.h"

namespace torch_tpu {
namespace {

// Emits of the form: one tensor, then numbers.
using NumbersFn = Value (*)(Builder&, const Args&, Value);

template <NumbersFn F>
Values Activation(Builder& b, const Args& a) {
  const DType dtype = a.tensor(0).dtype();
  return {Cast(b, F(b, a, ToCompute(b, a.tensor(0))), dtype)};
}

Value LeakyRelu(Builder& b, const Args& a, Value x) {
  return b.Select(Greater(b, x, 0), x, b.Multiply(x, NumberLike(b, a, 1, x, 0.01)));
}

Value Elu(Builder& b, const Args& a, Value x) {
  Value alpha = NumberLike(b, a, 1, x, 1), scale = NumberLike(b, a, 2, x, 1), input_scale = NumberLike(b, a, 3, x, 1);
  Value low = b.Multiply(b.Expm1(b.Multiply(x, input_scale)), b.Multiply(alpha, scale));
  return b.Select(b.Compare(x, Full(b, x, 0), Direction::kLe), low, b.Multiply(x, scale));
}

Value Gelu(Builder& b, const Args& a, Value x) {
  const std::string approximate = a.text(1);
  Value inner;
  if (approximate == "tanh") {
    Value cube = b.Multiply(b.Multiply(x, x), x);
    inner = b.Tanh(Mul(b, b.Add(x, Mul(b, cube, 0.044715)), std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
  } else {
    Check(approximate.empty() || approximate == "none", "gelu: expected approximate to be none or tanh, got ",
          approximate);
    inner = Erf(b, Mul(b, x, std::numbers::sqrt2 / 2));
  }
  return b.Multiply(Mul(b, x, 0.5), AddC(b, inner, 1));
}

Value Silu(Builder& b, Value x) { return b.Divide(x, AddC(b, b.Exp(b.Negate(x)), 1)); }
Value Mish(Builder& b, Value x) { return b.Multiply(x, b.Tanh(b.Log1p(b.Exp(x)))); }

Value Hardtanh(Builder& b, const Args& a, Value x) {
  return MinNan(b, MaxNan(b, x, NumberLike(b, a, 1, x, -1)), NumberLike(b, a, 2, x, 1));
}

Value SixthOfClamped(Builder& b, Value x) {
  return b.Divide(MinNan(b, Relu(b, AddC(b, x, 3)), Full(b, x, 6)), Full(b, x, 6));
}

Value Hardswish(Builder& b, Value x) {
  Value clamped = MinNan(b, Relu(b, AddC(b, x, 3)), Full(b, x, 6));
  return b.Divide(b.Multiply(x, clamped), Full(b, x, 6));
}

// Hardshrink, unlike softshrink, compares with lambda in the tensor's own dtype: 0.6 is 0.6015625 to a bfloat16.
Value ShrinkBound(Builder& b, const Args& a, Value x) {
  return b.Convert(b.Convert(NumberLike(b, a, 1, x, 0.5), a.tensor(0).dtype()), x.dtype());
}

Value Hardshrink(Builder& b, const Args& a, Value x) {
  Value bound = ShrinkBound(b, a, x);
  Value inside = b.And(b.Compare(x, b.Negate(bound), Direction::kGe), b.Compare(x, bound, Direction::kLe));
  return b.Select(inside, Full(b, x, 0), x);
}

Value Softshrink(Builder& b, const Args& a, Value x) {
  Value bound = NumberLike(b, a, 1, x, 0.5);
  Value low = b.Select(b.Compare(x, b.Negate(bound), Direction::kLt), b.Add(x, bound), Full(b, x, 0));
  Value result = b.Select(b.Compare(x, bound, Direction::kGt), b.Subtract(x, bound), low);
  return b.Select(IsNan(b, x), x, result);
}

Value Softplus(Builder& b, const Args& a, Value x) {
  Value beta = NumberLike(b, a, 1, x, 1), threshold = NumberLike(b, a, 2, x, 20);
  Value scaled = b.Multiply(x, beta);
  Value soft = b.Divide(b.Log1p(b.Exp(scaled)), beta);
  return b.Select(b.Compare(scaled, threshold, Direction::kGt), x, soft);
}

Value Threshold(Builder& b, const Args& a, Value x) {
  return b.Select(b.Compare(x, NumberLike(b, a, 1, x), Direction::kLe), NumberLike(b, a, 2, x), x);
}

// The buffer holds e^-|x| for the backward, as CPU's does.
Values LogSigmoid(Builder& b, const Args& a) {
  const DType dtype = a.tensor(0).dtype();
  Value x = ToCompute(b, a.tensor(0));
  Value decay = b.Exp(b.Negate(b.Abs(x)));
  Value result = b.Subtract(MinNan(b, x, Full(b, x, 0)), b.Log1p(decay));
  return {Cast(b, result, dtype), Cast(b, decay, dtype)};
}

Values Glu(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const int64_t dim = WrapDim(a.integer_or(1, -1), x.rank());
  Check(x.rank() > 0 && x.dim(dim) % 2 == 0, "Halving dimension must be even, but dimension ", dim, " is size ",
        x.rank() > 0 ? x.dim(dim) : 0);
  const int64_t half = x.dim(dim) / 2;
  Value first = ToCompute(b, b.SliceDim(x, dim, 0, half)), second = ToCompute(b, b.SliceDim(x, dim, half, 2 * half));
  return {Cast(b, b.Multiply(first, Sigmoid(b, second)), x.dtype())};
}

Values Prelu(Builder& b, const Args& a) {
  const DType dtype = a.tensor(0).dtype();
  Values v = Operands(b, a, {0, 1}, dtype);
  return {Cast(b, b.Select(Greater(b, v[0], 0), v[0], b.Multiply(v[1], v[0])), dtype)};
}

constexpr OpRow kRows[] = {
    {"relu", SameUnary<Relu>},
    {"leaky_relu", Activation<LeakyRelu>},
    {"elu", Activation<Elu>},
    {"gelu", Activation<Gelu>},
    {"silu", SameUnary<Silu>},
    {"mish", SameUnary<Mish>},
    {"hardtanh", Activation<Hardtanh>},
    {"hardswish", SameUnary<Hardswish>},
    {"hardsigmoid", SameUnary<SixthOfClamped>},
    {"hardshrink", Activation<Hardshrink>},
    {"softshrink", Activation<Softshrink>},
    {"softplus", Activation<Softplus>},
    {"threshold", Activation<Threshold>},
    {"log_sigmoid_forward", LogSigmoid},
    {"glu", Glu},
    {"_prelu_kernel", Prelu},
};

}  // namespace

std::span<const OpRow> ActivationRows() {
  static const std::vector<OpRow>* rows = [] {
    auto* all = new std::vector<OpRow>(std::begin(kRows), std::end(kRows));
    for (auto part : {ActivationBackwardRows(), RecurrentRows()}) all->insert(all->end(), part.begin(), part.end());
    return all;
  }();
  return *rows;
}

}  // namespace torch_tpu
