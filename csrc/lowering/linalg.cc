// Cholesky and triangular solves, the matrix exponential, and the family's table.
#include "lowering/linalg.h"

#include <cmath>

#include "base/error.h"
#include "lowering/host_call.h"
#include "lowering/math.h"

namespace torch_tpu {
namespace {

struct Choleskied {
  Value factor, info;  // of x's batch
};

// The triangle that is not named is not read. On failure info is the order of the first minor that is not positive.
Choleskied Factor(Builder& b, Value x, bool upper) {
  const Dims batch = BatchOf(x);
  if (x.numel() == 0) return {x, b.ConstantInt(DType::kInt32, 0, batch)};
  if (b.host_kernels()) {
    const Values made = CallHost(b, "cholesky", {x}, {x.type(), {DType::kInt32, batch}}, {upper});
    return {made[0], made[1]};
  }
  Value flat = Flat(b, x);
  const int64_t count = flat.dim(0), n = flat.dim(1);
  Value a = upper ? Adjoint(b, flat) : flat;
  // Column by column: XLA's own gives NaN for the whole matrix where one minor fails.
  Value rows = b.Iota(DType::kInt64, {count, n}, 1);
  Values s = ForEach(
      b, n, {Triangle(b, a, true, true), b.ConstantInt(DType::kInt64, 0, {count})},
      [&](Value k, const Values& state) -> Values {
        Value l = state[0], info = state[1];
        Value at = b.BroadcastTo(k, {count, n});
        // The part of row k left of the diagonal, against all rows.
        Value row = Conj(b, Masked(b, b.Compare(rows, at, Direction::kLt), RowOf(b, l, k)));
        Value sum = b.Reshape(Product(b, l, b.Reshape(row, {count, n, 1})), {count, n});
        Value column = b.Subtract(Column(b, l, k), sum);
        Value on = b.Compare(rows, at, Direction::kEq);
        Value d = b.Reduce(Masked(b, on, column), Builder::Reducer::kAdd, {1});
        Value real = IsComplex(d.dtype()) ? b.Real(d) : d;
        Value good = b.Compare(real, b.Zero(real.dtype(), real.dims()), Direction::kGt);
        Value fresh = b.And(b.Not(good), b.Compare(info, b.ConstantInt(DType::kInt64, 0, {count}), Direction::kEq));
        info = b.Select(fresh, b.Add(b.BroadcastTo(k, {count}), b.ConstantInt(DType::kInt64, 1, {count})), info);
        Value root = b.Sqrt(b.Select(good, real, b.One(real.dtype(), real.dims())));
        if (IsComplex(d.dtype())) root = b.Complex(root, b.Zero(root.dtype(), root.dims()));
        Value scaled = b.Divide(column, b.BroadcastInDim(root, {count, n}, {0}));
        Value below = b.Compare(rows, at, Direction::kGt);
        Value stored = b.Select(on, b.BroadcastInDim(root, {count, n}, {0}), b.Select(below, scaled, Column(b, l, k)));
        return {WithColumn(b, l, k, stored), info};
      });
  Value factor = upper ? Adjoint(b, s[0]) : s[0];
  return {b.Reshape(factor, x.dims()), b.Reshape(b.Convert(s[1], DType::kInt32), batch)};
}

// self, upper, check_errors
Values CholeskyEx(Builder& b, const Args& a) {
  Choleskied c = Factor(b, a.tensor(0), a.flag(1));
  return {c.factor, c.info};
}

// NaN instead of the error that CPU raises: a program cannot raise.
Values CholeskyRow(Builder& b, const Args& a) {
  Choleskied c = Factor(b, a.tensor(0), a.flag(1));
  if (c.factor.numel() == 0) return {c.factor};
  Value failed = b.Compare(c.info, b.ConstantInt(DType::kInt32, 0, c.info.dims()), Direction::kNe);
  Dims lead;
  for (int64_t i = 0; i < failed.rank(); ++i) lead.push_back(i);
  return {b.Select(b.BroadcastInDim(failed, c.factor.dims(), lead), Full(b, c.factor, NAN), c.factor)};
}

Value Spread(Builder& b, Value x, const Dims& batch) { return b.BroadcastTo(x, Joined(batch, {x.dim(-2), x.dim(-1)})); }

Value CholeskySolveFlat(Builder& b, Value rhs, Value factor, bool upper) {
  Value y = b.TriangularSolve(factor, rhs, true, !upper, false, upper, upper);
  return b.TriangularSolve(factor, y, true, !upper, false, !upper, !upper);
}

// self (right side), A (factor), upper
Values CholeskySolve(Builder& b, const Args& a) {
  Value rhs = a.tensor(0), factor = a.tensor(1);
  if (rhs.numel() == 0) return {rhs};
  return {b.Reshape(CholeskySolveFlat(b, Flat(b, rhs), Flat(b, factor), a.flag(2)), rhs.dims())};
}

// self (factor), upper
Values CholeskyInverse(Builder& b, const Args& a) {
  Value factor = a.tensor(0);
  if (factor.numel() == 0) return {factor};
  Value flat = Flat(b, factor);
  return {b.Reshape(CholeskySolveFlat(b, Identity(b, flat.dtype(), flat.dims()), flat, a.flag(1)), factor.dims())};
}

// A, B, upper, left, unitriangular
Values SolveTriangular(Builder& b, const Args& a) {
  Value x = a.tensor(0), rhs = a.tensor(1);
  const Dims batch = BroadcastShapes({BatchOf(x), BatchOf(rhs)});
  x = Spread(b, x, batch);
  rhs = Spread(b, rhs, batch);
  if (rhs.numel() == 0) return {rhs};
  if (b.host_kernels()) {
    Value flat = Flat(b, rhs);
    const Dims numbers = {a.flag(2), a.flag(3), a.flag(4)};
    return {b.Reshape(CallHost(b, "solve_triangular", {Flat(b, x), flat}, {flat.type()}, numbers)[0], rhs.dims())};
  }
  Value y = b.TriangularSolve(Flat(b, x), Flat(b, rhs), a.flag(3), !a.flag(2), a.flag(4), false);
  return {b.Reshape(y, rhs.dims())};
}

// self (right side), A, upper, transpose, unitriangular
Values TriangularSolveOld(Builder& b, const Args& a) {
  Value rhs = a.tensor(0), x = a.tensor(1);
  const Dims batch = BroadcastShapes({BatchOf(x), BatchOf(rhs)});
  x = Spread(b, x, batch);
  rhs = Spread(b, rhs, batch);
  if (rhs.numel() == 0) return {rhs, x};
  Value y = b.TriangularSolve(Flat(b, x), Flat(b, rhs), true, !a.flag(2), a.flag(4), a.flag(3));
  return {b.Reshape(y, rhs.dims()), x};
}

// Taylor's polynomial of the matrix scaled down to a norm of at most 2 (float64: 1), squared back: each squaring
// doubles errors.
Values MatrixExp(Builder& b, const Args& a) {
  Value given = a.tensor(0);
  if (given.numel() == 0) return {given};
  const DType dtype = given.dtype();
  Value x = Flat(b, IsComplex(dtype) ? given : ToCompute(b, given));
  const int64_t count = x.dim(0);
  Value sums = b.Reduce(b.Abs(x), Builder::Reducer::kAdd, {1});
  Value norm = b.Reduce(sums, Builder::Reducer::kMax, {1});
  const DType real = norm.dtype();
  const bool wide = RealOf(x.dtype()) == DType::kFloat64;
  Value octaves = b.Ceil(b.Divide(b.Log(norm), b.Constant(real, std::log(2.0), {count})));
  Value wanted = AddC(b, octaves, wide ? 0 : -1);
  Value usable = b.And(b.Compare(wanted, b.Zero(real, {count}), Direction::kGt), b.IsFinite(wanted));
  Value squarings = b.Convert(b.Select(usable, wanted, b.Zero(real, {count})), DType::kInt64);
  Value scale = b.Exp(Mul(b, b.Convert(squarings, real), -std::log(2.0)));
  if (IsComplex(dtype)) scale = b.Complex(scale, b.Zero(real, {count}));
  Value small = b.Multiply(x, b.BroadcastInDim(scale, x.dims(), {0}));
  Value one = Identity(b, x.dtype(), x.dims());
  const int degree = wide ? 20 : 16;
  Value sum = one;
  for (int k = degree; k >= 1; --k) sum = b.Add(one, Mul(b, Product(b, small, sum), 1.0 / k));
  Value most = b.Reduce(squarings, Builder::Reducer::kMax, {0});
  Values s = b.While(
      {b.ConstantInt(DType::kInt64, 0), sum, squarings, most},
      [&](const Values& v) -> Values { return {b.Compare(v[0], v[3], Direction::kLt)}; },
      [&](const Values& v) -> Values {
        Value open = b.Compare(b.BroadcastTo(v[0], {count}), v[2], Direction::kLt);
        Value next = b.Select(b.BroadcastInDim(open, v[1].dims(), {0}), Product(b, v[1], v[1]), v[1]);
        return {b.Add(v[0], b.ConstantInt(DType::kInt64, 1)), next, v[2], v[3]};
      });
  return {b.Convert(b.Reshape(s[1], given.dims()), dtype)};
}

}  // namespace

std::vector<OpRow> TriangularRows() {
  return {
      {"linalg_cholesky_ex", CholeskyEx},
      {"cholesky", CholeskyRow},
      {"_cholesky_solve_helper", CholeskySolve},
      {"cholesky_inverse", CholeskyInverse, kColumnMajorOut},
      {"linalg_solve_triangular", SolveTriangular},
      {"triangular_solve", TriangularSolveOld, kColumnMajorOut},
      {"linalg_matrix_exp", MatrixExp},
  };
}

std::span<const OpRow> LinalgRows() {
  static const std::vector<OpRow> rows = [] {
    std::vector<OpRow> all;
    for (const auto& part : {TriangularRows(), LuRows(), QrRows(), EigenRows(), LeastSquaresRows()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return rows;
}

}  // namespace torch_tpu
