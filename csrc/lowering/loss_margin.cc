// Multi-class and multi-label margin losses.
#include "base/error.h"
#include "lowering/elementwise.h"
#include "lowering/indexing.h"

namespace torch_tpu {
namespace {

enum Reduction { kNone, kMean, kSum };

// Rows [n, c] of a batch or of one sample.
Value Rows(Builder& b, Value x) {
  if (x.rank() == 2) return x;
  return b.Reshape(x, {1, x.rank() == 0 ? 1 : x.dim(0)});
}

Value Reduced(Builder& b, Value each, int64_t reduction, const Dims& dims) {
  if (reduction == kNone) return b.Reshape(each, dims);
  Value sum = Sum(b, each, {0});
  return reduction == kMean ? Mul(b, sum, 1.0 / static_cast<double>(each.dim(0))) : sum;
}

struct Margins {
  Value margin, own, weight;  // max(0, margin - x_y + x_j) for j != y; bool: j == y; [n, c]
};

Margins MarginsOf(Builder& b, const Args& a, size_t first, Value x) {
  Value target = b.Reshape(ToIndex(b, a.tensor(first)), {x.dim(0)});
  Value wide = b.BroadcastInDim(target, x.dims(), {0});
  Value own = b.Compare(b.Iota(DType::kInt64, x.dims(), 1), wide, Direction::kEq);
  Value zero = Full(b, x, 0);
  Value mine = b.BroadcastInDim(Sum(b, b.Select(own, x, zero), {1}), x.dims(), {0});
  Value limit = FullLike(b, Number(b, a, first + 2, x.dtype()), x);
  Value z = b.Add(b.Subtract(limit, mine), x);
  z = b.Select(b.Or(own, b.Compare(z, zero, Direction::kLe)), zero, z);
  Value weight = Full(b, x, 1);
  if (a.has(first + 3)) {
    weight = b.BroadcastInDim(TakeDim(b, Cast(b, a.tensor(first + 3), x.dtype()), target, 0), x.dims(), {0});
  }
  return {z, own, weight};
}

int64_t Power(const Args& a, size_t i) { return a.constant(i).value_or(1) == 2 ? 2 : 1; }

// self, target, p, margin, weight, reduction
Values MultiMargin(Builder& b, const Args& a) {
  Value given = a.tensor(0);
  Value x = Rows(b, ToCompute(b, given));
  const Dims out = given.rank() == 2 ? Dims{given.dim(0)} : a.tensor(1).dims();
  Margins m = MarginsOf(b, a, 1, x);
  Value z = Power(a, 2) == 2 ? b.Multiply(m.margin, m.margin) : m.margin;
  Value each = Mul(b, Sum(b, b.Multiply(z, m.weight), {1}), 1.0 / static_cast<double>(x.dim(1)));
  return {Cast(b, Reduced(b, each, a.integer_or(5, kMean), out), given.dtype())};
}

// grad_output, self, target, p, margin, weight, reduction
Values MultiMarginBackward(Builder& b, const Args& a) {
  Value given = a.tensor(1);
  Value x = Rows(b, ToCompute(b, given));
  const int64_t reduction = a.integer_or(6, kMean), n = x.dim(0);
  Margins m = MarginsOf(b, a, 2, x);
  Value open = b.Compare(m.margin, Full(b, x, 0), Direction::kGt);
  Value slope = Power(a, 3) == 2 ? Mul(b, m.margin, 2) : b.Convert(open, x.dtype());
  slope = Mul(b, b.Multiply(slope, m.weight),
              1.0 / static_cast<double>(x.dim(1)) / (reduction == kMean ? static_cast<double>(n) : 1.0));
  Value mine = b.BroadcastInDim(b.Negate(Sum(b, slope, {1})), x.dims(), {0});
  Value g = ToCompute(b, a.tensor(0));
  Value wide =
      g.numel() == 1 ? b.BroadcastTo(b.Reshape(g, {}), x.dims()) : b.BroadcastInDim(b.Reshape(g, {n}), x.dims(), {0});
  Value result = b.Multiply(b.Select(m.own, mine, slope), wide);
  return {Cast(b, b.Reshape(result, given.dims()), given.dtype())};
}

// Targets up to the first -1 of a row, as marks on classes: [n, c] in x's type.
struct Labels {
  Value index, valid, marks;
};

Labels LabelsOf(Builder& b, Value target, Value x) {
  Value index = Rows(b, ToIndex(b, target));
  Value ended =
      b.Convert(b.Compare(index, b.ConstantInt(DType::kInt64, 0, index.dims()), Direction::kLt), DType::kInt64);
  Value valid = b.Compare(RunningMax(b, ended), b.ConstantInt(DType::kInt64, 0, index.dims()), Direction::kEq);
  Value place = b.Select(valid, index, b.ConstantInt(DType::kInt64, x.dim(1), index.dims()));  // past the end: dropped
  Value marks = PutAlong(b, b.Zero(x.dtype(), x.dims()), place, Full(b, x, 1), 1, CombineMax);
  return {b.Select(valid, index, b.ConstantInt(DType::kInt64, 0, index.dims())), valid, marks};
}

struct PairMargins {
  Value margin;  // [n, targets, classes]: max(0, 1 - x_t + x_j) for labels t and classes j that are none
  Labels labels;
};

PairMargins PairsOf(Builder& b, Value target, Value x) {
  Labels labels = LabelsOf(b, target, x);
  const Dims cube = {x.dim(0), x.dim(1), x.dim(1)};
  Value mine = b.BroadcastInDim(TakeAlong(b, x, labels.index, 1, IndexTrust::kTrusted), cube, {0, 1});
  Value z = AddC(b, b.Subtract(b.BroadcastInDim(x, cube, {0, 2}), mine), 1);
  Value other = b.BroadcastInDim(Eq(b, labels.marks, 0), cube, {0, 2});
  Value counts = b.And(b.And(other, b.BroadcastInDim(labels.valid, cube, {0, 1})), Greater(b, z, 0));
  return {b.Select(counts, z, Full(b, z, 0)), labels};
}

// self, target, reduction
Values MultilabelMargin(Builder& b, const Args& a) {
  Value given = a.tensor(0), target = a.tensor(1);
  Value x = Rows(b, ToCompute(b, given));
  PairMargins pairs = PairsOf(b, target, x);
  Value each = Mul(b, Sum(b, pairs.margin, {1, 2}), 1.0 / static_cast<double>(x.dim(1)));
  const Dims out = given.rank() == 2 ? Dims{given.dim(0)} : Dims{};
  return {Cast(b, Reduced(b, each, a.integer_or(2, kMean), out), given.dtype()),
          Cast(b, b.Reshape(pairs.labels.marks, target.dims()), given.dtype())};
}

// grad_output, self, target, reduction, is_target
Values MultilabelMarginBackward(Builder& b, const Args& a) {
  Value given = a.tensor(1);
  Value x = Rows(b, ToCompute(b, given));
  const int64_t reduction = a.integer_or(3, kMean), n = x.dim(0);
  PairMargins pairs = PairsOf(b, a.tensor(2), x);
  Value open = b.Convert(b.Compare(pairs.margin, Full(b, pairs.margin, 0), Direction::kGt), x.dtype());
  Value down = b.Negate(Sum(b, open, {2}));
  Value slope = PutAlong(b, Sum(b, open, {1}), pairs.labels.index, down, 1, CombineAdd);
  slope = Mul(b, slope, 1.0 / static_cast<double>(x.dim(1)) / (reduction == kMean ? static_cast<double>(n) : 1.0));
  Value g = ToCompute(b, a.tensor(0));
  Value wide =
      g.numel() == 1 ? b.BroadcastTo(b.Reshape(g, {}), x.dims()) : b.BroadcastInDim(b.Reshape(g, {n}), x.dims(), {0});
  return {Cast(b, b.Reshape(b.Multiply(slope, wide), given.dims()), given.dtype())};
}

constexpr OpRow kRows[] = {
    {"multi_margin_loss", MultiMargin, kKeyScalars},
    {"multi_margin_loss_backward", MultiMarginBackward, kKeyScalars},
    {"multilabel_margin_loss_forward", MultilabelMargin},
    {"multilabel_margin_loss_backward", MultilabelMarginBackward},
};

}  // namespace

std::span<const OpRow> MarginLossRows() { return kRows; }

}  // namespace torch_tpu
