// Optimizer ops: the foreach rows, gradient scaling, and the fused optimizers.
#include "lowering/optimizer.h"

#include "base/error.h"
#include "lowering/math.h"

namespace torch_tpu {
namespace {

// A 0-d (or one-element) tensor or number as a 0-d value.
Value ScalarOf(Builder& b, Value x, DType dtype) { return Cast(b, x.rank() == 0 ? x : b.Reshape(x, {}), dtype); }

// x * c and x + c for a 0-d c of x's dtype.
Value Scale(Builder& b, Value x, Value c) { return b.Multiply(x, FullLike(b, c, x)); }
Value Shift(Builder& b, Value x, Value c) { return b.Add(x, FullLike(b, c, x)); }
Value OneMinus(Builder& b, Value x) { return b.Subtract(b.One(x.dtype(), x.dims()), x); }

// (self, found_inf, inv_scale) -> (self..., found_inf)
Values EmitUnscale(Builder& b, const Args& a) {
  Value found = ToCompute(b, a.tensor(1)), scale = a.tensor(2);
  Value any = b.ConstantInt(DType::kBool, 0);
  Values out;
  for (const Value& x : a.tensors(0)) {
    Value wide = ToCompute(b, x);
    Dims all(x.rank());
    for (int64_t i = 0; i < x.rank(); ++i) all[i] = i;
    Value bad = b.Not(b.IsFinite(wide));
    any = b.Or(any, all.empty() ? bad : b.Reduce(bad, Builder::Reducer::kOr, all));
    out.push_back(b.Convert(Scale(b, wide, ScalarOf(b, scale, wide.dtype())), x.dtype()));
  }
  Value now = b.Select(any, b.One(found.dtype(), found.dims()), found);
  out.push_back(b.Convert(now, a.tensor(1).dtype()));
  return out;
}

// (scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval) -> (scale, growth_tracker)
Values EmitUpdateScale(Builder& b, const Args& a) {
  Value scale = a.tensor(0), tracker = a.tensor(1);
  Value found = b.Compare(ScalarOf(b, a.tensor(2), DType::kFloat32), b.Zero(DType::kFloat32), Direction::kNe);
  Value grown = Scale(b, scale, a.scalar(b, 3, scale.dtype()));
  Value backed_off = Scale(b, scale, a.scalar(b, 4, scale.dtype()));
  Value next = AddC(b, tracker, 1);
  Value due = b.Compare(next, b.ConstantInt(next.dtype(), a.integer(5), next.dims()), Direction::kEq);
  Value due_here = b.Reshape(due, scale.dims());
  Value kept = b.Select(b.And(due_here, b.IsFinite(grown)), grown, scale);
  Value zero = b.Zero(next.dtype(), next.dims());
  return {b.Select(found, backed_off, kept), b.Select(found, zero, b.Select(due, zero, next))};
}

// What the fused optimizers share: unscaled gradients, and steps that are skipped when an infinity was found.
struct Guard {
  Value grad_scale, found_inf;  // 0-d, absent when there are none

  Value Unscaled(Builder& b, Value grad) const {
    return grad_scale ? b.Divide(grad, FullLike(b, b.Convert(grad_scale, grad.dtype()), grad)) : grad;
  }
  // `now` unless the step is skipped, as `before`'s dtype.
  Value Take(Builder& b, Value before, Value now) const {
    Value rounded = b.Convert(now, before.dtype());
    return found_inf ? b.Select(found_inf, before, rounded) : rounded;
  }
};

Guard ReadGuard(Builder& b, const Args& a, size_t grad_scale, size_t found_inf) {
  Guard guard;
  if (a.has(grad_scale)) guard.grad_scale = ScalarOf(b, a.tensor(grad_scale), DType::kFloat32);
  if (a.has(found_inf)) {
    guard.found_inf =
        b.Compare(ScalarOf(b, a.tensor(found_inf), DType::kFloat32), b.One(DType::kFloat32), Direction::kEq);
  }
  return guard;
}

void CheckLengths(const Args& a, size_t lists) {
  for (size_t i = 1; i < lists; ++i) {
    Check(a.tensors(i).size() == a.tensors(0).size(), a.call().row->name, ": expected lists of one length, got ",
          a.tensors(0).size(), " and ", a.tensors(i).size());
  }
}

// Learning rate: a number, or the tensor of the .tensor_lr overloads.
Value LearningRate(Builder& b, const Args& a, size_t i, DType dtype) {
  return a.kind(i) == Arg::Kind::kTensor ? ScalarOf(b, a.tensor(i), dtype) : a.scalar(b, i, dtype);
}

// (self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad,
//  maximize, grad_scale?, found_inf?) -> (self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs)
template <bool kDecoupled>
Values EmitFusedAdam(Builder& b, const Args& a) {
  CheckLengths(a, 4);
  const bool amsgrad = a.flag(11), maximize = a.flag(12);
  Guard guard = ReadGuard(b, a, 13, 14);
  Values self = a.tensors(0), grads = a.tensors(1), averages = a.tensors(2), squares = a.tensors(3);
  Values tops = a.tensors(4), steps = a.tensors(5);
  Values new_self, new_grads, new_averages, new_squares, new_tops;
  for (size_t i = 0; i < self.size(); ++i) {
    const DType dtype = ComputeType(self[i].dtype());
    // Bias corrections lose their first digits in float32 (1 - 0.999^step): they are float64 as on CPU.
    const DType exact = DType::kFloat64;
    auto correction = [&](size_t beta) {
      return OneMinus(b, b.Power(a.scalar(b, beta, exact), ScalarOf(b, steps.at(i), exact)));
    };
    Value step_size = b.Convert(b.Divide(LearningRate(b, a, 6, exact), correction(7)), dtype);
    Value root = b.Convert(b.Sqrt(correction(8)), dtype);
    Value one_minus_beta1 = b.Convert(OneMinus(b, a.scalar(b, 7, exact)), dtype);
    Value one_minus_beta2 = b.Convert(OneMinus(b, a.scalar(b, 8, exact)), dtype);
    Value unscaled = guard.Unscaled(b, Cast(b, grads[i], dtype));
    new_grads.push_back(b.Convert(unscaled, grads[i].dtype()));
    Value g = maximize ? b.Negate(unscaled) : unscaled;
    Value p = b.Convert(self[i], dtype);
    if (kDecoupled) {
      Value decay = b.Multiply(LearningRate(b, a, 6, exact), a.scalar(b, 9, exact));
      p = Scale(b, p, b.Convert(OneMinus(b, decay), dtype));
    } else {
      g = b.Add(g, Scale(b, p, a.scalar(b, 9, dtype)));
    }
    Value average = Cast(b, averages[i], dtype), square = Cast(b, squares[i], dtype);
    average = b.Add(average, Scale(b, b.Subtract(g, average), one_minus_beta1));
    square = b.Add(Scale(b, square, a.scalar(b, 8, dtype)), Scale(b, b.Multiply(g, g), one_minus_beta2));
    Value top = square;
    if (amsgrad) {
      top = MaxNan(b, Cast(b, tops.at(i), dtype), square);
      new_tops.push_back(guard.Take(b, tops[i], top));
    }
    Value spread = Shift(b, b.Divide(b.Sqrt(top), FullLike(b, root, top)), a.scalar(b, 10, dtype));
    p = b.Subtract(p, b.Divide(Scale(b, average, step_size), spread));
    new_self.push_back(guard.Take(b, self[i], p));
    new_averages.push_back(guard.Take(b, averages[i], average));
    new_squares.push_back(guard.Take(b, squares[i], square));
  }
  if (!amsgrad) new_tops = tops;
  Values out;
  for (const Values* list : {&new_self, &new_grads, &new_averages, &new_squares, &new_tops}) {
    out.insert(out.end(), list->begin(), list->end());
  }
  return out;
}

// (self, grads, momentum_buffers, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
//  grad_scale?, found_inf?) -> (self, grads, momentum_buffers); no buffers: no momentum
Values EmitFusedSgd(Builder& b, const Args& a) {
  CheckLengths(a, 2);
  const bool nesterov = a.flag(7), maximize = a.flag(8), first = a.flag(9);
  Guard guard = ReadGuard(b, a, 10, 11);
  Values self = a.tensors(0), grads = a.tensors(1), buffers = a.tensors(2);
  Values new_self, new_grads, new_buffers;
  for (size_t i = 0; i < self.size(); ++i) {
    const DType dtype = ComputeType(self[i].dtype());
    Value unscaled = guard.Unscaled(b, Cast(b, grads[i], dtype));
    new_grads.push_back(b.Convert(unscaled, grads[i].dtype()));
    Value g = maximize ? b.Negate(unscaled) : unscaled;
    Value p = b.Convert(self[i], dtype);
    g = b.Add(g, Scale(b, p, a.scalar(b, 3, dtype)));
    if (!buffers.empty()) {
      Value momentum = a.scalar(b, 4, dtype), buffer = g;
      if (!first) {
        Value taken = Scale(b, g, OneMinus(b, a.scalar(b, 6, dtype)));
        buffer = b.Add(Scale(b, Cast(b, buffers.at(i), dtype), momentum), taken);
      }
      new_buffers.push_back(guard.Take(b, buffers.at(i), buffer));
      g = nesterov ? b.Add(g, Scale(b, buffer, momentum)) : buffer;
    }
    new_self.push_back(guard.Take(b, self[i], b.Subtract(p, Scale(b, g, LearningRate(b, a, 5, dtype)))));
  }
  Values out;
  for (const Values* list : {&new_self, &new_grads, &new_buffers}) out.insert(out.end(), list->begin(), list->end());
  return out;
}

// (self, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale?, found_inf?)
// -> (self, grads, state_sums, and state_steps as they were where the schema returns them)
template <bool kWithSteps>
Values EmitFusedAdagrad(Builder& b, const Args& a) {
  CheckLengths(a, 4);
  const bool maximize = a.flag(8);
  Guard guard = ReadGuard(b, a, 9, 10);
  Values self = a.tensors(0), grads = a.tensors(1), sums = a.tensors(2), steps = a.tensors(3);
  Values new_self, new_grads, new_sums;
  for (size_t i = 0; i < self.size(); ++i) {
    const DType dtype = ComputeType(self[i].dtype()), exact = DType::kFloat64;
    Value decay = b.Multiply(AddC(b, ScalarOf(b, steps[i], exact), -1), a.scalar(b, 5, exact));
    Value rate = b.Convert(b.Divide(LearningRate(b, a, 4, exact), AddC(b, decay, 1)), dtype);
    Value unscaled = guard.Unscaled(b, Cast(b, grads[i], dtype));
    new_grads.push_back(b.Convert(unscaled, grads[i].dtype()));
    Value g = maximize ? b.Negate(unscaled) : unscaled, p = b.Convert(self[i], dtype);
    g = b.Add(g, Scale(b, p, a.scalar(b, 6, dtype)));
    Value sum = b.Add(Cast(b, sums[i], dtype), b.Multiply(g, g));
    Value spread = Shift(b, b.Sqrt(sum), a.scalar(b, 7, dtype));
    new_self.push_back(guard.Take(b, self[i], b.Subtract(p, Scale(b, b.Divide(g, spread), rate))));
    new_sums.push_back(guard.Take(b, sums[i], sum));
  }
  Values out;
  for (const Values* list : {&new_self, &new_grads, &new_sums}) out.insert(out.end(), list->begin(), list->end());
  if (kWithSteps) out.insert(out.end(), steps.begin(), steps.end());
  return out;
}

constexpr OpRow kRows[] = {
    {"_foreach_add.Scalar", EmitForeach},
    {"_foreach_add.ScalarList", EmitForeach},
    {"_foreach_add.List", EmitForeach},
    {"_foreach_add.Tensor", EmitForeach},
    {"_foreach_sub.Scalar", EmitForeach},
    {"_foreach_sub.ScalarList", EmitForeach},
    {"_foreach_sub.List", EmitForeach},
    {"_foreach_mul.Scalar", EmitForeach},
    {"_foreach_mul.ScalarList", EmitForeach},
    {"_foreach_mul.List", EmitForeach},
    {"_foreach_mul.Tensor", EmitForeach},
    {"_foreach_div.Scalar", EmitForeach},
    {"_foreach_div.ScalarList", EmitForeach},
    {"_foreach_div.List", EmitForeach},
    {"_foreach_div.Tensor", EmitForeach},
    {"_foreach_maximum.Scalar", EmitForeach},
    {"_foreach_maximum.ScalarList", EmitForeach},
    {"_foreach_maximum.List", EmitForeach},
    {"_foreach_minimum.Scalar", EmitForeach},
    {"_foreach_minimum.ScalarList", EmitForeach},
    {"_foreach_minimum.List", EmitForeach},
    {"_foreach_clamp_min.Scalar", EmitForeach},
    {"_foreach_clamp_min.ScalarList", EmitForeach},
    {"_foreach_clamp_min.List", EmitForeach},
    {"_foreach_clamp_max.Scalar", EmitForeach},
    {"_foreach_clamp_max.ScalarList", EmitForeach},
    {"_foreach_clamp_max.List", EmitForeach},
    {"_foreach_addcmul.Scalar", EmitForeach},
    {"_foreach_addcmul.ScalarList", EmitForeach},
    {"_foreach_addcdiv.Scalar", EmitForeach},
    {"_foreach_addcdiv.ScalarList", EmitForeach},
    {"_foreach_lerp.Scalar", EmitForeach},
    {"_foreach_lerp.ScalarList", EmitForeach},
    {"_foreach_lerp.List", EmitForeach},
    {"_foreach_pow.Scalar", EmitForeach, kPowIdentity},
    {"_foreach_pow.ScalarList", EmitForeach},
    {"_foreach_pow.List", EmitForeach},
    {"_foreach_pow.ScalarAndTensor", EmitForeach},
    {"_foreach_abs", EmitForeachUnary},
    {"_foreach_acos", EmitForeachUnary},
    {"_foreach_asin", EmitForeachUnary},
    {"_foreach_atan", EmitForeachUnary},
    {"_foreach_ceil", EmitForeachUnary},
    {"_foreach_cos", EmitForeachUnary},
    {"_foreach_cosh", EmitForeachUnary},
    {"_foreach_erf", EmitForeachUnary},
    {"_foreach_erfc", EmitForeachUnary},
    {"_foreach_exp", EmitForeachUnary},
    {"_foreach_expm1", EmitForeachUnary},
    {"_foreach_floor", EmitForeachUnary},
    {"_foreach_frac", EmitForeachUnary},
    {"_foreach_lgamma", EmitForeachUnary},
    {"_foreach_log", EmitForeachUnary},
    {"_foreach_log10", EmitForeachUnary},
    {"_foreach_log1p", EmitForeachUnary},
    {"_foreach_log2", EmitForeachUnary},
    {"_foreach_max", EmitForeachUnary},
    {"_foreach_neg", EmitForeachUnary},
    {"_foreach_reciprocal", EmitForeachUnary},
    {"_foreach_round", EmitForeachUnary},
    {"_foreach_rsqrt", EmitForeachUnary},
    {"_foreach_sigmoid", EmitForeachUnary},
    {"_foreach_sign", EmitForeachUnary},
    {"_foreach_sin", EmitForeachUnary},
    {"_foreach_sinh", EmitForeachUnary},
    {"_foreach_sqrt", EmitForeachUnary},
    {"_foreach_tan", EmitForeachUnary},
    {"_foreach_tanh", EmitForeachUnary},
    {"_foreach_trunc", EmitForeachUnary},
    {"_foreach_norm.Scalar", EmitForeachNorm, kKeyScalars},
    {"_foreach_zero", EmitForeachZero},
    {"_foreach_clone", EmitForeachClone},
    {"_foreach_copy", EmitForeachCopy},
    {"_amp_foreach_non_finite_check_and_unscale", EmitUnscale},
    {"_amp_update_scale", EmitUpdateScale},
    {"_fused_adam", EmitFusedAdam<false>},
    {"_fused_adam.tensor_lr", EmitFusedAdam<false>},
    {"_fused_adamw", EmitFusedAdam<true>},
    {"_fused_adamw.tensor_lr", EmitFusedAdam<true>},
    {"_fused_sgd", EmitFusedSgd},
    {"_fused_sgd.tensor_lr", EmitFusedSgd},
    {"_fused_adagrad", EmitFusedAdagrad<true>},
    {"_fused_adagrad.tensor_lr", EmitFusedAdagrad<false>},
};

}  // namespace

std::span<const OpRow> OptimizerRows() { return kRows; }

}  // namespace torch_tpu
