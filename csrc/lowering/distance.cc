// Distances between rows (cdist, pdist) and renorm. The order p of the norm is part of the program.
#include <cmath>

#include "base/error.h"
#include "lowering/elementwise.h"
#include "lowering/indexing.h"

namespace torch_tpu {
namespace {

double Order(const Args& a, size_t i) {
  const std::optional<double> p = a.constant(i);
  Check(p.has_value(), "norm: expected an order that is part of the program");
  return *p;
}

// The p-norm of differences over the last dim.
Value Norm(Builder& b, Value difference, double p) {
  const Dims last = {difference.rank() - 1};
  Value size = b.Abs(difference);
  if (p == 0) return Sum(b, b.Convert(b.Compare(size, Full(b, size, 0), Direction::kNe), size.dtype()), last);
  if (p == 1) return Sum(b, size, last);
  if (p == 2) return b.Sqrt(Sum(b, b.Multiply(size, size), last));
  if (std::isinf(p)) return size.dim(-1) == 0 ? Sum(b, size, last) : ReduceMax(b, size, last);
  Value sum = Sum(b, b.Power(size, Full(b, size, p)), last);
  return b.Power(sum, Full(b, sum, 1 / p));
}

// d norm / d difference, times grad; norm and grad have the difference's dims.
Value NormGradient(Builder& b, Value difference, Value norm, Value grad, double p) {
  Value size = b.Abs(difference), zero = Full(b, size, 0);
  if (p == 0) return zero;
  if (p == 1) return b.Multiply(grad, b.Sign(difference));
  if (std::isinf(p)) return b.Select(b.Compare(size, norm, Direction::kEq), b.Multiply(grad, b.Sign(difference)), zero);
  Value none = Eq(b, norm, 0);
  Value safe = b.Select(none, Full(b, norm, 1), norm);
  if (p == 2) return b.Select(none, zero, b.Divide(b.Multiply(grad, difference), safe));
  Value flat = Eq(b, size, 0);
  Value base = b.Select(flat, Full(b, size, 1), size);
  Value power = b.Multiply(b.Sign(difference), b.Power(base, Full(b, base, p - 1)));
  Value scaled = b.Divide(b.Multiply(grad, power), b.Power(safe, Full(b, safe, p - 1)));
  return b.Select(b.Or(none, flat), zero, scaled);
}

Dims Swapped(const Dims& batch, const Dims& inner) {
  Dims dims = batch;
  dims.insert(dims.end(), inner.begin(), inner.end());
  return dims;
}

// x1 - x2 for all pairs: [.., p, r, m].
Value PairDifference(Builder& b, Value x, Value y) {
  const Dims batch =
      BroadcastShapes({Dims(x.dims().begin(), x.dims().end() - 2), Dims(y.dims().begin(), y.dims().end() - 2)});
  const Dims wide = Swapped(batch, {x.dim(-2), y.dim(-2), x.dim(-1)});
  return b.Subtract(b.BroadcastTo(Unsqueeze(b, x, x.rank() - 1), wide),
                    b.BroadcastTo(Unsqueeze(b, y, y.rank() - 2), wide));
}

// x1, x2, p, compute_mode
Values CdistForward(Builder& b, const Args& a) {
  return {Norm(b, PairDifference(b, a.tensor(0), a.tensor(1)), Order(a, 2))};
}

// grad, x1, x2, p, cdist -> the gradient of x1
Values CdistBackward(Builder& b, const Args& a) {
  Value difference = PairDifference(b, a.tensor(1), a.tensor(2));
  const Dims& wide = difference.dims();
  auto spread = [&](Value v) { return b.BroadcastTo(Unsqueeze(b, v, v.rank()), wide); };
  Value each = NormGradient(b, difference, spread(a.tensor(4)), spread(a.tensor(0)), Order(a, 3));
  return {Sum(b, each, {each.rank() - 2})};
}

struct Pairs {
  Value first, second;  // int64
};

Pairs UpperPairs(Builder& b, int64_t n) {
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  }
  return {b.ConstantInts(DType::kInt64, first), b.ConstantInts(DType::kInt64, second)};
}

Value RowDifference(Builder& b, Value x, const Pairs& pairs) {
  return b.Subtract(TakeDim(b, x, pairs.first, 0, IndexTrust::kTrusted),
                    TakeDim(b, x, pairs.second, 0, IndexTrust::kTrusted));
}

// self, p
Values PdistForward(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  if (x.dim(0) < 2) return {b.Zero(x.dtype(), {0})};
  return {Norm(b, RowDifference(b, x, UpperPairs(b, x.dim(0))), Order(a, 1))};
}

// grad, self, p, pdist
Values PdistBackward(Builder& b, const Args& a) {
  Value x = a.tensor(1);
  if (x.dim(0) < 2 || x.numel() == 0) return {b.Zero(x.dtype(), x.dims())};
  const Pairs pairs = UpperPairs(b, x.dim(0));
  Value difference = RowDifference(b, x, pairs);
  auto spread = [&](Value v) { return b.BroadcastInDim(v, difference.dims(), {0}); };
  Value each = NormGradient(b, difference, spread(a.tensor(3)), spread(a.tensor(0)), Order(a, 2));
  Value sum = PutDim(b, b.Zero(x.dtype(), x.dims()), pairs.first, each, 0, CombineAdd);
  return {PutDim(b, sum, pairs.second, b.Negate(each), 0, CombineAdd)};
}

// self, p, dim, maxnorm
Values Renorm(Builder& b, const Args& a) {
  Value given = a.tensor(0);
  if (given.numel() == 0) return {given};
  const int64_t dim = WrapDim(a.integer(2), given.rank());
  Value x = ToCompute(b, given);
  Dims order = {dim};
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != dim) order.push_back(i);
  }
  Value rows = b.Reshape(b.Transpose(x, order), {x.dim(dim), x.numel() / x.dim(dim)});
  Value norm = Norm(b, rows, Order(a, 1));
  Value most = b.Constant(norm.dtype(), Order(a, 3), norm.dims());
  Value factor = b.Select(b.Compare(norm, most, Direction::kGt), b.Divide(most, AddC(b, norm, 1e-7)), Full(b, norm, 1));
  if (IsComplex(x.dtype())) factor = b.Complex(factor, Full(b, factor, 0));
  return {Cast(b, b.Multiply(x, b.BroadcastInDim(factor, x.dims(), {dim})), given.dtype())};
}

constexpr OpRow kRows[] = {
    {"_cdist_forward", CdistForward, kKeyScalars},
    {"_cdist_backward", CdistBackward, kKeyScalars},
    {"_pdist_forward", PdistForward, kKeyScalars},
    {"_pdist_backward", PdistBackward, kKeyScalars},
    {"renorm", Renorm, kKeyScalars},
};

}  // namespace

std::span<const OpRow> DistanceRows() { return kRows; }

}  // namespace torch_tpu
