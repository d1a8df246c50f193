// Scaled dot-product attention of [batch, heads, positions, size] as one program, with the row-wise log-sum-exp that
// its backward needs.
//
// Scores and softmax are float32 for halves; the probabilities are rounded to the inputs' dtype before the
// second product.
#include <cmath>

#include "base/error.h"
#include "lowering/math.h"
#include "lowering/table.h"

namespace torch_tpu {
namespace {

// [..., m, k] x [..., n, k] and the like: all dims but the last two are batch. The result is in the accumulation type.
Value BatchDot(Builder& b, Value lhs, int64_t lhs_contract, Value rhs, int64_t rhs_contract) {
  DotDims dims;
  for (int64_t i = 0; i + 2 < lhs.rank(); ++i) dims.lhs_batch.push_back(i);
  dims.rhs_batch = dims.lhs_batch;
  dims.lhs_contract = {lhs.rank() + lhs_contract};
  dims.rhs_contract = {rhs.rank() + rhs_contract};
  return b.DotGeneral(lhs, rhs, dims, ComputeType(lhs.dtype()));
}

// Grouped queries: key and value heads are repeated, each for as many consecutive query heads.
Value RepeatHeads(Builder& b, Value x, int64_t heads) {
  if (x.dim(-3) == heads) return x;
  Check(x.dim(-3) > 0 && heads % x.dim(-3) == 0,
        "scaled_dot_product_attention: expected key and value heads that divide ", heads, " query heads, got ",
        x.dim(-3));
  const int64_t head_dim = x.rank() - 3;
  Dims expanded = x.dims(), dims = x.dims(), kept;
  expanded.insert(expanded.begin() + head_dim + 1, heads / x.dim(-3));
  dims[head_dim] = heads;
  for (int64_t i = 0; i <= x.rank(); ++i) {
    if (i != head_dim + 1) kept.push_back(i);
  }
  return b.Reshape(b.BroadcastInDim(x, expanded, kept), dims);
}

Value SumRepeated(Builder& b, Value x, int64_t heads) {
  if (x.dim(-3) == heads) return x;
  const int64_t head_dim = x.rank() - 3;
  Dims split = x.dims();
  split[head_dim] = heads;
  split.insert(split.begin() + head_dim + 1, x.dim(-3) / heads);
  return Sum(b, b.Reshape(x, split), {head_dim + 1});
}

// Sums the dims along which `shape` was broadcast to x's.
Value SumTo(Builder& b, Value x, const Dims& shape) {
  const int64_t extra = x.rank() - static_cast<int64_t>(shape.size());
  Dims dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i < extra || (shape[i - extra] == 1 && x.dim(i) != 1)) dims.push_back(i);
  }
  return dims.empty() ? x : b.Reshape(Sum(b, x, dims), shape);
}

struct Inputs {
  Value query, key, value, bias;  // heads repeated
  bool causal = false;
  Value scale;
};

Inputs Read(Builder& b, const Args& a, size_t query, size_t bias, size_t causal, size_t scale) {
  Inputs in;
  in.query = a.tensor(query);
  const int64_t heads = in.query.dim(-3);
  in.key = RepeatHeads(b, a.tensor(query + 1), heads);
  in.value = RepeatHeads(b, a.tensor(query + 2), heads);
  in.bias = a.tensor_or_absent(bias);
  in.causal = a.flag(causal);
  DType dtype = ComputeType(in.query.dtype());
  in.scale = a.has(scale) ? a.scalar(b, scale, dtype)
                          : b.Constant(dtype, 1.0 / std::sqrt(static_cast<double>(in.query.dim(-1))));
  return in;
}

Value Scores(Builder& b, const Inputs& in) {
  Value scores = BatchDot(b, in.query, -1, in.key, -1);
  scores = b.Multiply(scores, FullLike(b, in.scale, scores));
  Value hidden = b.MinOf(scores.dtype(), scores.dims());
  if (in.bias && IsBool(in.bias.dtype())) {
    scores = b.Select(b.BroadcastTo(in.bias, scores.dims()), scores, hidden);
  } else if (in.bias) {
    scores = b.Add(scores, b.BroadcastTo(Cast(b, in.bias, scores.dtype()), scores.dims()));
  }
  if (in.causal) {
    Value row = b.Iota(DType::kInt32, scores.dims(), scores.rank() - 2);
    Value column = b.Iota(DType::kInt32, scores.dims(), scores.rank() - 1);
    scores = b.Select(b.Compare(row, column, Direction::kGe), scores, hidden);
  }
  return scores;
}

// exp(x - row), with `row` one rank lower.
Value ExpMinus(Builder& b, Value x, Value row) {
  return b.Exp(b.Subtract(x, b.BroadcastTo(Unsqueeze(b, row, row.rank()), x.dims())));
}

// [b, h, s, d] as [b, s, h, d].
Value Lay(Builder& b, Value x, bool positions_first) { return positions_first ? b.Transpose(x, {0, 2, 1, 3}) : x; }

// (query, key, value, bias?, causal, scale?, positions_first) -> (output, logsumexp). A row without a visible key gives
// zeros and has +inf as its logsumexp, so that its probabilities come out as zeros again in the backward.
Values EmitAttention(Builder& b, const Args& a) {
  Inputs in = Read(b, a, 0, 3, 4, 5);
  Value scores = Scores(b, in);
  const Dims last = {scores.rank() - 1};
  Value top = ReduceMax(b, scores, last);
  Value empty = b.Compare(top, b.MinOf(top.dtype(), top.dims()), Direction::kEq);
  Value e = ExpMinus(b, scores, b.Select(empty, b.Zero(top.dtype(), top.dims()), top));
  Value total = Sum(b, e, last);
  Value divisor = b.Select(empty, b.One(total.dtype(), total.dims()), total);
  Value p = b.Divide(e, b.BroadcastTo(Unsqueeze(b, divisor, divisor.rank()), e.dims()));
  Value out = BatchDot(b, b.Convert(p, in.value.dtype()), -1, in.value, -2);
  Value logsumexp = b.Select(empty, b.MaxOf(top.dtype(), top.dims()), b.Add(top, b.Log(divisor)));
  return {Lay(b, b.Convert(out, in.query.dtype()), a.flag(6)), logsumexp};
}

// (grad, query, key, value, bias?, out, logsumexp, causal, scale?, mask, positions_first)
//   -> gradients of query, key, value, bias
Values EmitAttentionBackward(Builder& b, const Args& a) {
  Inputs in = Read(b, a, 1, 4, 7, 8);
  const Dims& mask = a.ints(9);
  const Dims& positions_first = a.ints(10);
  const DType dtype = in.query.dtype();
  Value grad = b.Convert(a.tensor(0), dtype);
  Value p = ExpMinus(b, Scores(b, in), a.tensor(6));
  Values out(4);
  if (mask[2]) {
    Value gv = BatchDot(b, b.Convert(p, dtype), -2, grad, -2);
    out[2] = Lay(b, b.Convert(SumRepeated(b, gv, a.tensor(3).dim(-3)), dtype), positions_first[2]);
  }
  if (!mask[0] && !mask[1] && !mask[3]) return out;
  Value wide = ToCompute(b, grad);
  Value delta = Sum(b, b.Multiply(wide, Cast(b, a.tensor(5), wide.dtype())), {grad.rank() - 1});
  Value gp = BatchDot(b, grad, -1, in.value, -1);
  Value gs = b.Multiply(p, b.Subtract(gp, b.BroadcastTo(Unsqueeze(b, delta, delta.rank()), gp.dims())));
  if (mask[3] && in.bias) out[3] = Cast(b, SumTo(b, gs, in.bias.dims()), in.bias.dtype());
  Value scaled = b.Convert(b.Multiply(gs, FullLike(b, in.scale, gs)), dtype);
  if (mask[0]) out[0] = Lay(b, b.Convert(BatchDot(b, scaled, -1, in.key, -2), dtype), positions_first[0]);
  if (mask[1]) {
    Value gk = BatchDot(b, scaled, -2, in.query, -2);
    out[1] = Lay(b, b.Convert(SumRepeated(b, gk, a.tensor(2).dim(-3)), dtype), positions_first[1]);
  }
  return out;
}

constexpr OpRow kRows[] = {
    {"tpu::attention", EmitAttention, kInternal},
    {"tpu::attention_backward", EmitAttentionBackward, kInternal},
};

}  // namespace

std::span<const OpRow> AttentionRows() { return kRows; }

}  // namespace torch_tpu
