// LU with partial pivoting, and what is made of it: solve, inverse, determinants.
#include "base/error.h"
#include "lowering/host_call.h"
#include "lowering/indexing.h"
#include "lowering/linalg.h"
#include "lowering/math.h"

namespace torch_tpu {
namespace {

// LAPACK's izamax compares |re| + |im|.
Value PivotSize(Builder& b, Value x) {
  return IsComplex(x.dtype()) ? b.Add(b.Abs(b.Real(x)), b.Abs(b.Imag(x))) : b.Abs(x);
}

// v[batch, n] at [batch] or 0-d position k.
Value Pick(Builder& b, Value v, Value at) {
  Value hit =
      b.Compare(b.Iota(DType::kInt64, v.dims(), 1),
                at.rank() == 0 ? b.BroadcastTo(at, v.dims()) : b.BroadcastInDim(at, v.dims(), {0}), Direction::kEq);
  return b.Reduce(Masked(b, hit, v), Builder::Reducer::kAdd, {1});
}

// Rows of x taken in the order `rows` [batch, m].
Value TakeRows(Builder& b, Value x, Value rows) {
  return TakeAlong(b, x, b.BroadcastInDim(rows, x.dims(), {0, 1}), 1, IndexTrust::kTrusted);
}

}  // namespace

Lu LuFactor(Builder& b, Value x, bool pivot) {
  const int64_t batch = x.dim(0), m = x.dim(1), n = x.dim(2), steps = std::min(m, n);
  if (b.host_kernels()) {
    const Values made =
        CallHost(b, "lu_factor", {x}, {x.type(), {DType::kInt32, {batch, steps}}, {DType::kInt32, {batch}}}, {pivot});
    return {made[0], made[1], made[2]};
  }
  Value rows = b.Iota(DType::kInt64, {batch, m}, 1), columns = b.Iota(DType::kInt64, {batch, n}, 1);
  Value pivots = b.Iota(DType::kInt64, {batch, steps}, 1);
  Value info = b.ConstantInt(DType::kInt64, 0, {batch});
  Values s = ForEach(b, steps, {x, pivots, info}, [&](Value k, const Values& state) -> Values {
    Value a = state[0], found = state[1], bad = state[2];
    Value ks = b.BroadcastTo(k, {batch}), at_row = b.BroadcastTo(k, {batch, m});
    Value place = b.BroadcastTo(k, {batch, steps});
    if (pivot) {
      Value size = PivotSize(b, Column(b, a, k));
      Value open = b.Compare(rows, at_row, Direction::kGe);
      Value best = ArgReduce(b, b.Select(open, size, Full(b, size, -1)), 1, true).second;
      found = b.Select(b.Compare(b.Iota(DType::kInt64, {batch, steps}, 1), place, Direction::kEq),
                       b.BroadcastInDim(best, {batch, steps}, {0}), found);
      Value other = b.BroadcastInDim(best, {batch, m}, {0});
      Value order = b.Select(b.Compare(rows, at_row, Direction::kEq), other,
                             b.Select(b.Compare(rows, other, Direction::kEq), at_row, rows));
      a = TakeRows(b, a, order);
    }
    Value column = Column(b, a, k), row = RowOf(b, a, k);
    Value value = Pick(b, column, k);
    Value zero = b.Compare(value, b.Zero(value.dtype(), value.dims()), Direction::kEq);
    bad = b.Select(b.And(zero, b.Compare(bad, b.ConstantInt(DType::kInt64, 0, {batch}), Direction::kEq)),
                   b.Add(ks, b.ConstantInt(DType::kInt64, 1, {batch})), bad);
    Value divisor = b.Select(zero, b.One(value.dtype(), value.dims()), value);
    Value below = b.Compare(rows, at_row, Direction::kGt);
    Value factor = Masked(b, below, b.Divide(column, b.BroadcastInDim(divisor, {batch, m}, {0})));
    Value right = Masked(b, b.Compare(columns, b.BroadcastTo(k, {batch, n}), Direction::kGt), row);
    a = b.Subtract(a, b.Multiply(DownRows(b, factor, n), AcrossColumns(b, right, m)));
    a = WithColumn(b, a, k, b.Select(below, factor, column));
    return {a, found, bad};
  });
  Value from_one = b.Add(s[1], b.ConstantInt(DType::kInt64, 1, s[1].dims()));
  return {s[0], b.Convert(from_one, DType::kInt32), b.Convert(s[2], DType::kInt32)};
}

Value PivotsToRows(Builder& b, Value pivots, int64_t m) {
  const int64_t batch = pivots.dim(0), steps = pivots.dim(1);
  Value places = b.Iota(DType::kInt64, {batch, m}, 1);
  Value others = b.Subtract(b.Convert(pivots, DType::kInt64), b.ConstantInt(DType::kInt64, 1, pivots.dims()));
  Values s = ForEach(b, steps, {places}, [&](Value k, const Values& state) -> Values {
    Value rows = state[0];
    Value here = b.BroadcastTo(k, {batch, m}), there = b.BroadcastInDim(Pick(b, others, k), {batch, m}, {0});
    Value at_here = b.BroadcastInDim(Pick(b, rows, k), {batch, m}, {0});
    Value at_there = b.BroadcastInDim(Pick(b, rows, Pick(b, others, k)), {batch, m}, {0});
    rows = b.Select(b.Compare(places, here, Direction::kEq), at_there,
                    b.Select(b.Compare(places, there, Direction::kEq), at_here, rows));
    return {rows};
  });
  return s[0];
}

Value LuSolve(Builder& b, Value packed, Value pivots, Value rhs, bool adjoint) {
  if (b.host_kernels()) return CallHost(b, "lu_solve", {packed, pivots, rhs}, {rhs.type()}, {adjoint})[0];
  Value rows = PivotsToRows(b, pivots, packed.dim(1));
  if (!adjoint) {
    Value y = b.TriangularSolve(packed, TakeRows(b, rhs, rows), true, true, true, false);
    return b.TriangularSolve(packed, y, true, false, false, false);
  }
  // A^H = U^H L^H P: solve from the outside, then undo the permutation.
  Value y = b.TriangularSolve(packed, rhs, true, false, false, true, true);
  y = b.TriangularSolve(packed, y, true, true, true, true, true);
  Value places = b.Iota(DType::kInt64, rows.dims(), 1);
  Values sorted = b.Sort({rows, places}, 1, true,
                         [&](const Values& v) -> Values { return {b.Compare(v[0], v[1], Direction::kLt)}; });
  return TakeRows(b, y, sorted[1]);
}

namespace {

Value InBatch(Builder& b, Value x, const Dims& batch, int64_t inner) {
  return b.Reshape(x, Joined(batch, Dims(x.dims().end() - inner, x.dims().end())));
}

struct Factored {
  Value packed, pivots, info;
};

Factored FactorAny(Builder& b, Value x, bool pivot) {
  const Dims batch = BatchOf(x);
  const int64_t m = x.dim(-2), n = x.dim(-1), steps = std::min(m, n);
  if (x.numel() == 0) {
    return {x, b.ConstantInt(DType::kInt32, 0, Joined(batch, {steps})), b.ConstantInt(DType::kInt32, 0, batch)};
  }
  Lu lu = LuFactor(b, Flat(b, x), pivot);
  return {InBatch(b, lu.packed, batch, 2), InBatch(b, lu.pivots, batch, 1), b.Reshape(lu.info, batch)};
}

// A, pivot, check_errors
Values LuFactorEx(Builder& b, const Args& a) {
  Factored f = FactorAny(b, a.tensor(0), a.flag(1));
  return {f.packed, f.pivots, f.info};
}

struct Parts {
  Value p, l, u;
};

Parts Unpack(Builder& b, Value packed, Value pivots, bool with_p) {
  const Dims batch = BatchOf(packed);
  const int64_t m = packed.dim(-2), n = packed.dim(-1), k = std::min(m, n);
  const DType dtype = packed.dtype();
  Parts parts;
  if (packed.numel() == 0) {
    parts.l = b.Zero(dtype, Joined(batch, {m, k}));
    parts.u = b.Zero(dtype, Joined(batch, {k, n}));
    parts.p = Identity(b, dtype, Joined(batch, {m, m}));
    return parts;
  }
  Value x = Flat(b, packed);
  const int64_t count = x.dim(0);
  Value left = Triangle(b, b.Slice(x, {0, 0, 0}, {count, m, k}), true, false);
  parts.l = InBatch(b, b.Add(left, Identity(b, dtype, left.dims())), batch, 2);
  parts.u = InBatch(b, Triangle(b, b.Slice(x, {0, 0, 0}, {count, k, n}), false, true), batch, 2);
  if (with_p) {
    Value rows = PivotsToRows(b, FlatVectors(b, pivots), m);
    Value p = b.Compare(b.BroadcastInDim(rows, {count, m, m}, {0, 2}), b.Iota(DType::kInt64, {count, m, m}, 1),
                        Direction::kEq);
    parts.p = InBatch(b, b.Convert(p, dtype), batch, 2);
  }
  return parts;
}

// A, pivot
Values LuOf(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const bool pivot = a.flag(1);
  Factored f = FactorAny(b, x, pivot);
  Parts parts = Unpack(b, f.packed, f.pivots, pivot);
  return {pivot ? parts.p : b.Zero(x.dtype(), {0}), parts.l, parts.u};
}

// LU_data, LU_pivots, unpack_data, unpack_pivots
Values LuUnpack(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  Parts parts = Unpack(b, x, a.tensor(1), a.flag(3));
  Value none = b.Zero(x.dtype(), {0});
  return {a.flag(3) ? parts.p : none, a.flag(2) ? parts.l : none, a.flag(2) ? parts.u : none};
}

Value Spread(Builder& b, Value x, const Dims& batch, int64_t inner) {
  return b.BroadcastTo(x, Joined(batch, Dims(x.dims().end() - inner, x.dims().end())));
}

// LU, pivots, B, left, adjoint
Values LuSolveRow(Builder& b, const Args& a) {
  Value lu = a.tensor(0), pivots = a.tensor(1), rhs = a.tensor(2);
  const bool left = a.flag(3), adjoint = a.flag(4);
  const Dims batch = BroadcastShapes({BatchOf(lu), BatchOf(rhs)});
  rhs = Spread(b, rhs, batch, 2);
  if (rhs.numel() == 0) return {rhs};
  Value x = Flat(b, Spread(b, lu, batch, 2)), p = FlatVectors(b, Spread(b, pivots, batch, 1)), y = Flat(b, rhs);
  Value result = left ? LuSolve(b, x, p, y, adjoint) : Adjoint(b, LuSolve(b, x, p, Adjoint(b, y), !adjoint));
  return {b.Reshape(result, rhs.dims())};
}

// A, B, left, check_errors
Values SolveEx(Builder& b, const Args& a) {
  Value x = a.tensor(0), rhs = a.tensor(1);
  const bool left = a.flag(2);
  const bool vector = rhs.rank() == 1 || (rhs.rank() == x.rank() - 1 && rhs.dims() == BatchOf(x, 1));
  Factored f = FactorAny(b, x, true);
  if (vector) rhs = Unsqueeze(b, rhs, left ? rhs.rank() : rhs.rank() - 1);
  const Dims batch = BroadcastShapes({BatchOf(x), BatchOf(rhs)});
  rhs = Spread(b, rhs, batch, 2);
  Value result = rhs;
  if (rhs.numel() > 0) {
    Value lu = Flat(b, Spread(b, f.packed, batch, 2)), p = FlatVectors(b, Spread(b, f.pivots, batch, 1));
    Value y = Flat(b, rhs);
    result = left ? LuSolve(b, lu, p, y, false) : Adjoint(b, LuSolve(b, lu, p, Adjoint(b, y), true));
    result = b.Reshape(result, rhs.dims());
  }
  if (vector) result = Squeeze(b, result, left ? result.rank() - 1 : result.rank() - 2);
  return {result, f.packed, f.pivots, f.info};
}

// A, check_errors
Values InverseEx(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  Factored f = FactorAny(b, x, true);
  if (x.numel() == 0) return {x, f.info};
  Value flat = Flat(b, f.packed);
  Value result = LuSolve(b, flat, FlatVectors(b, f.pivots), Identity(b, x.dtype(), flat.dims()), false);
  return {b.Reshape(result, x.dims()), f.info};
}

// -1 to the number of rows that moved.
Value PermutationSign(Builder& b, Value pivots, DType dtype) {
  Value own = b.Add(b.Iota(pivots.dtype(), pivots.dims(), pivots.rank() - 1), b.One(pivots.dtype(), pivots.dims()));
  Value moved = b.Convert(b.Compare(pivots, own, Direction::kNe), DType::kInt32);
  Value count = b.Reduce(moved, Builder::Reducer::kAdd, {pivots.rank() - 1});
  Value odd =
      b.Compare(b.And(count, b.One(DType::kInt32, count.dims())), b.One(DType::kInt32, count.dims()), Direction::kEq);
  return b.Select(odd, b.Constant(dtype, -1, count.dims()), b.Constant(dtype, 1, count.dims()));
}

Value DiagonalAny(Builder& b, Value x) {
  const Dims batch = BatchOf(x);
  if (x.numel() == 0) return b.Zero(x.dtype(), Joined(batch, {x.dim(-1)}));
  return b.Reshape(Diagonal(b, Flat(b, x)), Joined(batch, {x.dim(-1)}));
}

// LU, pivots
Values LuDet(Builder& b, const Args& a) {
  Value d = DiagonalAny(b, a.tensor(0));
  Value product = b.Reduce(d, Builder::Reducer::kMul, {d.rank() - 1});
  return {b.Multiply(product, PermutationSign(b, a.tensor(1), d.dtype()))};
}

Values LuSlogdet(Builder& b, const Args& a) {
  Value d = DiagonalAny(b, a.tensor(0));
  Value size = b.Abs(d), zero = b.Compare(d, b.Zero(d.dtype(), d.dims()), Direction::kEq);
  Value unit;
  if (IsComplex(d.dtype())) {
    Value safe = b.Select(zero, b.One(size.dtype(), size.dims()), size);
    unit = b.Complex(b.Divide(b.Real(d), safe), b.Divide(b.Imag(d), safe));
  } else {
    unit = b.Sign(d);
  }
  Value sign =
      b.Multiply(b.Reduce(unit, Builder::Reducer::kMul, {d.rank() - 1}), PermutationSign(b, a.tensor(1), d.dtype()));
  return {sign, b.Reduce(b.Log(size), Builder::Reducer::kAdd, {d.rank() - 1})};
}

}  // namespace

std::vector<OpRow> LuRows() {
  return {
      {"linalg_lu_factor_ex", LuFactorEx, kColumnMajorOut},
      {"linalg_lu", LuOf},
      {"lu_unpack", LuUnpack},
      {"linalg_lu_solve", LuSolveRow, kLayoutOfCpu},
      {"_linalg_solve_ex", SolveEx},
      {"linalg_inv_ex", InverseEx},
      {"tpu::lu_det", LuDet, kInternal},
      {"tpu::lu_slogdet", LuSlogdet, kInternal},
  };
}

}  // namespace torch_tpu
