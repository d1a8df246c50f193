// Losses between two tensors of one shape.
#include "lowering/loss.h"

#include <vector>

#include "base/error.h"
#include "lowering/elementwise.h"

namespace torch_tpu {
namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// Of losses in the computing type, rounded to `dtype` once.
Value Reduced(Builder& b, Value losses, int64_t reduction, DType dtype) {
  if (reduction == kNone) return Cast(b, losses, dtype);
  Value sum = Sum(b, losses, WrapDims({}, losses.rank()));
  if (reduction == kMean) sum = b.Divide(sum, Full(b, sum, static_cast<double>(losses.numel())));
  return Cast(b, sum, dtype);
}

// What a mean divides the gradient by.
double Share(int64_t reduction, const Value& x) {
  return reduction == kMean ? 1.0 / static_cast<double>(x.numel()) : 1.0;
}

// (self, target, reduction, number?)
using LossFn = Value (*)(Builder&, const Args&, Value x, Value y);

template <LossFn F>
Values Loss(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  Values v = Operands(b, a, {0, 1}, dtype);
  return {Reduced(b, F(b, a, v[0], v[1]), a.integer_or(2, kMean), dtype)};
}

// (grad_output, self, target, reduction, number?): `F` is the derivative by self.
template <LossFn F>
Values LossBackward(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {1, 2});
  Values v = Operands(b, a, {0, 1, 2}, dtype);
  Value slope = F(b, a, v[1], v[2]);
  return {Cast(b, b.Multiply(Mul(b, slope, Share(a.integer(3), slope)), v[0]), dtype)};
}

Value SquaredError(Builder& b, const Args&, Value x, Value y) {
  Value gap = b.Subtract(x, y);
  return b.Multiply(gap, gap);
}

Value SquaredErrorSlope(Builder& b, const Args&, Value x, Value y) { return Mul(b, b.Subtract(x, y), 2); }

Value SmoothL1(Builder& b, const Args& a, Value x, Value y) {
  Value z = b.Abs(b.Subtract(x, y));
  Value beta = NumberLike(b, a, 3, z, 1);
  Value square = b.Divide(b.Multiply(Mul(b, z, 0.5), z), beta);
  return b.Select(b.Compare(z, beta, Direction::kLt), square, b.Subtract(z, Mul(b, beta, 0.5)));
}

// -1 and 1 outside of the bound, `middle` inside; NaN goes to the middle.
Value Between(Builder& b, Value gap, Value bound, Value middle) {
  Value inner = b.Select(b.Compare(gap, bound, Direction::kGe), Full(b, gap, 1), middle);
  return b.Select(b.Compare(gap, b.Negate(bound), Direction::kLe), Full(b, gap, -1), inner);
}

Value SmoothL1Slope(Builder& b, const Args& a, Value x, Value y) {
  Value gap = b.Subtract(x, y);
  Value beta = NumberLike(b, a, 4, gap, 1);
  // With beta 0 the two sides meet at 0, which belongs to the lower one.
  return Between(b, gap, beta, b.Divide(gap, beta));
}

Value Huber(Builder& b, const Args& a, Value x, Value y) {
  Value z = b.Abs(b.Subtract(x, y));
  Value delta = NumberLike(b, a, 3, z, 1);
  Value line = b.Multiply(delta, b.Subtract(z, Mul(b, delta, 0.5)));
  return b.Select(b.Compare(z, delta, Direction::kLt), b.Multiply(Mul(b, z, 0.5), z), line);
}

Value HuberSlope(Builder& b, const Args& a, Value x, Value y) {
  Value gap = b.Subtract(x, y);
  Value delta = NumberLike(b, a, 4, gap, 1);
  Value low = b.Compare(gap, b.Negate(delta), Direction::kLe), high = b.Compare(gap, delta, Direction::kGe);
  return b.Select(low, b.Negate(delta), b.Select(high, delta, gap));
}

Value SoftMargin(Builder& b, const Args&, Value x, Value y) { return b.Log1p(b.Exp(b.Negate(b.Multiply(x, y)))); }

Value SoftMarginSlope(Builder& b, const Args&, Value x, Value y) {
  Value z = b.Exp(b.Negate(b.Multiply(x, y)));
  return b.Negate(b.Divide(b.Multiply(y, z), AddC(b, z, 1)));
}

// (self, target, weight?, reduction): logarithms stop at -100, so that a certain wrong answer costs a finite loss.
Values BinaryCrossEntropy(Builder& b, const Args& a) {
  const DType dtype = a.tensor(0).dtype();
  Values v = Operands(b, a, {0, 1, 2}, dtype);
  Value x = v[0], y = v[1];
  Value floor = Full(b, x, -100);
  Value no = b.Multiply(AddC(b, y, -1), MaxNan(b, b.Log1p(b.Negate(x)), floor));
  Value yes = b.Multiply(y, MaxNan(b, b.Log(x), floor));
  Value loss = b.Subtract(no, yes);
  if (v[2]) loss = b.Multiply(loss, v[2]);
  return {Reduced(b, loss, a.integer_or(3, kMean), dtype)};
}

// (grad_output, self, target, weight?, reduction)
Values BinaryCrossEntropyBackward(Builder& b, const Args& a) {
  const DType dtype = a.tensor(1).dtype();
  Values v = Operands(b, a, {0, 1, 2, 3}, dtype);
  Value grad = v[0], x = v[1], y = v[2];
  Value scale = MaxNan(b, b.Multiply(SubFrom(b, 1, x), x), Full(b, x, 1e-12));
  Value slope = b.Divide(b.Multiply(grad, b.Subtract(x, y)), scale);
  if (v[3]) slope = b.Multiply(slope, v[3]);
  return {Cast(b, Mul(b, slope, Share(a.integer_or(4, kMean), x)), dtype)};
}

// (self, target, weight?, pos_weight?, reduction)
Values BinaryCrossEntropyWithLogits(Builder& b, const Args& a) {
  const DType dtype = a.tensor(0).dtype();
  Values v = Operands(b, a, {0, 1, 2, 3}, dtype);
  Value x = v[0], y = v[1];
  // log sigmoid(x) = min(x, 0) - log(1 + e^-|x|)
  Value log_sigmoid = b.Subtract(MinNan(b, x, Full(b, x, 0)), b.Log1p(b.Exp(b.Negate(b.Abs(x)))));
  if (v[3]) log_sigmoid = b.Multiply(AddC(b, b.Multiply(AddC(b, v[3], -1), y), 1), log_sigmoid);
  Value loss = b.Subtract(b.Multiply(SubFrom(b, 1, y), x), log_sigmoid);
  if (v[2]) loss = b.Multiply(loss, v[2]);
  return {Reduced(b, loss, a.integer_or(4, kMean), dtype)};
}

constexpr OpRow kRows[] = {
    {"mse_loss", Loss<SquaredError>},
    {"mse_loss_backward", LossBackward<SquaredErrorSlope>},
    {"smooth_l1_loss", Loss<SmoothL1>},
    {"smooth_l1_loss_backward", LossBackward<SmoothL1Slope>},
    {"huber_loss", Loss<Huber>},
    {"huber_loss_backward", LossBackward<HuberSlope>},
    {"soft_margin_loss", Loss<SoftMargin>},
    {"soft_margin_loss_backward", LossBackward<SoftMarginSlope>},
    {"binary_cross_entropy", BinaryCrossEntropy},
    {"binary_cross_entropy_backward", BinaryCrossEntropyBackward},
    {"binary_cross_entropy_with_logits", BinaryCrossEntropyWithLogits},
};

}  // namespace

std::span<const OpRow> LossRows() {
  static const std::vector<OpRow>* rows = [] {
    auto* all = new std::vector<OpRow>(std::begin(kRows), std::end(kRows));
    for (auto part : {NllLossRows(), CtcLossRows()}) all->insert(all->end(), part.begin(), part.end());
    return all;
  }();
  return *rows;
}

}  // namespace torch_tpu
