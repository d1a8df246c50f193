// Connectionist temporal classification: sums over alignments by dynamic programming in log space.
#include <limits>

#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/linalg.h"
#include "lowering/loss.h"
#include "lowering/math.h"

namespace torch_tpu {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Of a and others: -inf where all are.
Value LogSumExp(Builder& b, const Values& terms) {
  Value most = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) most = b.Maximum(most, terms[i]);
  Value finite = b.Select(Eq(b, most, -kInf), Full(b, most, 0), most);
  Value sum;
  for (const Value& term : terms) {
    Value part = b.Exp(b.Subtract(term, finite));
    sum = sum ? b.Add(sum, part) : part;
  }
  return b.Add(b.Log(sum), finite);
}

// What both directions share. A target of length L is seen as 2 L + 1 states: blanks around its labels.
struct Trellis {
  int64_t steps, batch, classes, states;
  Value input_lengths, target_lengths;  // int64 [batch]
  Value labels;                         // int64 [batch, states]
  Value used;                           // bool [batch, states]: within the target
  Value skips;                          // bool [batch, states]: state s may follow s - 2
  Value scores;                         // [steps, batch, states]: log probability of the state's label

  Dims row() const { return {batch, states}; }
  Value Spread(Builder& b, Value per_item) const { return b.BroadcastInDim(per_item, row(), {0}); }
  Value State(Builder& b) const { return b.Iota(DType::kInt64, row(), 1); }
  // Last state of each item minus `back`.
  Value IsEnd(Builder& b, int64_t back) const {
    Value end = AddC(b, b.Multiply(target_lengths, b.ConstantInt(DType::kInt64, 2, {batch})), -back);
    return b.Compare(State(b), Spread(b, end), Direction::kEq);
  }
  Value ScoresAt(Builder& b, Value scores_now, Value t) const {
    Value zero = b.Zero(DType::kInt64);
    return b.Reshape(b.DynamicSlice(scores_now, {b.Convert(t, DType::kInt64), zero, zero}, {1, batch, states}), row());
  }
  // x moved by `by` states towards higher ones (negative: lower), -inf where nothing comes from.
  Value Shift(Builder& b, Value x, int64_t by) const {
    return b.Pad(x, b.Constant(x.dtype(), -kInf), {0, by}, {0, -by});
  }
};

// log_probs [steps, batch, classes], targets [batch, any] or one behind the other
Trellis MakeTrellis(Builder& b, Value log_probs, Value targets, Value input_lengths, Value target_lengths,
                    int64_t longest, int64_t blank) {
  Trellis t{log_probs.dim(0), log_probs.dim(1), log_probs.dim(2), 2 * longest + 1, {}, {}, {}, {}, {}, {}};
  t.input_lengths = ToIndex(b, input_lengths);
  t.target_lengths = ToIndex(b, target_lengths);
  targets = ToIndex(b, targets);
  Value start;  // of each item in the flat targets
  if (targets.rank() == 1) {
    start = b.Subtract(RunningSum(b, t.target_lengths), t.target_lengths);
  } else {
    start = b.Multiply(b.Iota(DType::kInt64, {t.batch}, 0), b.ConstantInt(DType::kInt64, targets.dim(1), {t.batch}));
  }
  Value state = t.State(b), one = b.One(DType::kInt64, t.row());
  Value is_label = b.Compare(b.And(state, one), one, Direction::kEq);
  t.used = b.Compare(state, t.Spread(b, b.Multiply(t.target_lengths, b.ConstantInt(DType::kInt64, 2, {t.batch}))),
                     Direction::kLe);
  t.labels = b.ConstantInt(DType::kInt64, blank, t.row());
  if (targets.numel() > 0) {
    Value at = b.Add(t.Spread(b, start), b.ShiftRightLogical(state, one));
    at = b.Minimum(at, b.ConstantInt(DType::kInt64, targets.numel() - 1, t.row()));
    Value read = TakeDim(b, b.Reshape(targets, {targets.numel()}), at, 0, IndexTrust::kTrusted);
    t.labels = b.Select(b.And(is_label, t.used), read, t.labels);
  }
  Value two_before = b.Pad(t.labels, b.ConstantInt(DType::kInt64, -1), {0, 2}, {0, -2});
  t.skips = b.And(b.Compare(state, one, Direction::kGt), b.Compare(t.labels, two_before, Direction::kNe));
  t.scores = TakeAlong(b, log_probs, b.BroadcastInDim(t.labels, {t.steps, t.batch, t.states}, {1, 2}), 2);
  return t;
}

Value Allowed(Builder& b, Value mask, Value x) { return b.Select(mask, x, Full(b, x, -kInf)); }

// log_probs, targets, input_lengths, target_lengths, longest target, blank -> loss [batch], log_alpha
// [batch, steps, states]
Values Forward(Builder& b, const Args& a) {
  Value given = a.tensor(0), log_probs = ToCompute(b, given);
  Trellis t = MakeTrellis(b, log_probs, a.tensor(1), a.tensor(2), a.tensor(3), a.integer(4), a.integer(5));
  const DType dtype = log_probs.dtype();
  const Dims all = {t.steps, t.batch, t.states};
  if (t.batch == 0) return {b.Zero(given.dtype(), {0}), b.Zero(given.dtype(), {0, t.steps, t.states})};
  Value first = b.Compare(t.State(b), b.One(DType::kInt64, t.row()), Direction::kLe);
  Value row = Allowed(b, b.And(first, t.used), t.ScoresAt(b, t.scores, b.Zero(DType::kInt64)));
  Value zero = b.Zero(DType::kInt64);
  Value alpha =
      b.DynamicUpdateSlice(b.Constant(dtype, -kInf, all), b.Reshape(row, {1, t.batch, t.states}), {zero, zero, zero});
  Values done =
      ForEach(b, t.steps - 1, {row, alpha, t.scores, t.skips, t.used}, [&](Value k, const Values& s) -> Values {
        Value now = b.Add(b.Convert(k, DType::kInt64), b.One(DType::kInt64));
        Value next = LogSumExp(b, {s[0], t.Shift(b, s[0], 1), Allowed(b, s[3], t.Shift(b, s[0], 2))});
        next = Allowed(b, s[4], b.Add(next, t.ScoresAt(b, s[2], now)));
        Value kept = b.DynamicUpdateSlice(s[1], b.Reshape(next, {1, t.batch, t.states}),
                                          {now, b.Zero(DType::kInt64), b.Zero(DType::kInt64)});
        return {next, kept, s[2], s[3], s[4]};
      });
  alpha = b.Transpose(done[1], {1, 0, 2});
  // The two last states at the item's last step; an item without steps has a loss only if it has a target.
  Value last = b.Maximum(AddC(b, t.input_lengths, -1), b.Zero(DType::kInt64, {t.batch}));
  Value at = b.BroadcastInDim(last, {t.batch, 1, t.states}, {0});
  Value ends = b.Reshape(TakeAlong(b, alpha, at, 1), t.row());
  auto end = [&](int64_t back) {
    return b.Reduce(b.Select(t.IsEnd(b, back), ends, Full(b, ends, -kInf)), Builder::Reducer::kMax, {1});
  };
  Value loss = b.Negate(LogSumExp(b, {end(0), end(1)}));
  Value nothing = b.Select(Eq(b, t.target_lengths, 0), b.Zero(dtype, {t.batch}), b.Constant(dtype, kInf, {t.batch}));
  loss = b.Select(Eq(b, t.input_lengths, 0), nothing, loss);
  return {b.Convert(loss, given.dtype()), b.Convert(alpha, given.dtype())};
}

// grad, log_probs, targets, input_lengths, target_lengths, loss, log_alpha, longest target, blank, zero_infinity
Values Backward(Builder& b, const Args& a) {
  Value given = a.tensor(1), log_probs = ToCompute(b, given);
  Trellis t = MakeTrellis(b, log_probs, a.tensor(2), a.tensor(3), a.tensor(4), a.integer(7), a.integer(8));
  const DType dtype = log_probs.dtype();
  const Dims all = {t.steps, t.batch, t.states}, wide = log_probs.dims();
  if (Product(wide) == 0) return {b.Zero(given.dtype(), wide)};
  Value end = b.Or(t.IsEnd(b, 0), t.IsEnd(b, 1));
  Value forth = b.Pad(t.skips, b.Zero(DType::kBool), {0, -2}, {0, 2});  // s + 2 may follow s
  Value last = t.Spread(b, AddC(b, t.input_lengths, -1));
  Values done = ForEach(
      b, t.steps,
      {b.Constant(dtype, -kInf, t.row()), b.Constant(dtype, -kInf, all), t.scores, t.used, end, forth, last},
      [&](Value k, const Values& s) -> Values {
        Value now = b.Convert(k, DType::kInt64);
        Value next = LogSumExp(b, {s[0], t.Shift(b, s[0], -1), Allowed(b, s[5], t.Shift(b, s[0], -2))});
        Value starts = b.Compare(b.BroadcastTo(now, t.row()), s[6], Direction::kEq);
        next = b.Select(starts, Allowed(b, s[4], b.Zero(dtype, t.row())), next);
        next = Allowed(b, s[3], b.Add(next, t.ScoresAt(b, s[2], now)));
        Value kept = b.DynamicUpdateSlice(s[1], b.Reshape(next, {1, t.batch, t.states}),
                                          {now, b.Zero(DType::kInt64), b.Zero(DType::kInt64)});
        return {next, kept, s[2], s[3], s[4], s[5], s[6]};
      },
      /*backwards=*/true);
  Value both = b.Add(b.Transpose(ToCompute(b, a.tensor(6)), {1, 0, 2}), done[1]);
  // Per class: the log of the sum over its states.
  Value most = b.Reduce(both, Builder::Reducer::kMax, {2});
  Value finite = b.Select(Eq(b, most, -kInf), Full(b, most, 0), most);
  Value shares = b.Exp(b.Subtract(both, b.BroadcastInDim(finite, all, {0, 1})));
  Value sums = PutAlong(b, b.Zero(dtype, wide), b.BroadcastInDim(t.labels, all, {1, 2}), shares, 2, CombineAdd);
  Value collected = b.Add(b.Log(sums), b.BroadcastInDim(finite, wide, {0, 1}));
  Value loss = ToCompute(b, a.tensor(5));
  Value expected = b.Exp(b.Subtract(b.Add(collected, b.BroadcastInDim(loss, wide, {1})), log_probs));
  Value result =
      b.Multiply(b.Subtract(b.Exp(log_probs), expected), b.BroadcastInDim(ToCompute(b, a.tensor(0)), wide, {1}));
  Value inside =
      b.Compare(b.Iota(DType::kInt64, wide, 0), b.BroadcastInDim(t.input_lengths, wide, {1}), Direction::kLt);
  if (a.flag(9)) inside = b.And(inside, b.BroadcastInDim(b.Not(Eq(b, loss, kInf)), wide, {1}));
  return {b.Convert(b.Select(inside, result, Full(b, result, 0)), given.dtype())};
}

constexpr OpRow kRows[] = {
    {"tpu::ctc_loss", Forward, kInternal},
    {"tpu::ctc_loss_backward", Backward, kInternal},
};

}  // namespace

std::span<const OpRow> CtcLossRows() { return kRows; }

}  // namespace torch_tpu
