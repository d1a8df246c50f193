// Symmetric eigenvalues and singular values by Jacobi rotations, n / 2 of them at a time. Column i is paired with
// column n / 2 + i, then the columns move on as in a round-robin tournament: n - 1 rounds, a sweep, meet every pair
// once and bring the columns back to their places.
#include <cmath>

#include "base/error.h"
#include "lowering/host_call.h"
#include "lowering/indexing.h"
#include "lowering/linalg.h"
#include "lowering/math.h"

namespace torch_tpu {
namespace {

constexpr int64_t kMostSweeps = 40;

double Epsilon(DType dtype) { return RealOf(dtype) == DType::kFloat64 ? 0x1p-52 : 0x1p-23; }

Value Half(Builder& b, Value x, int64_t dim, bool second) {
  const int64_t h = x.dim(dim) / 2;
  return b.SliceDim(x, dim, second ? h : 0, second ? 2 * h : h);
}

// The first half's rows or columns of the next round: 0, h, 1 .. h-2; the second's: h+1 .. 2h-1, h-1.
Value MoveOn(Builder& b, Value x, int64_t dim) {
  const int64_t n = x.dim(dim), h = n / 2;
  if (h < 2) return x;
  Values parts = {b.SliceDim(x, dim, 0, 1), b.SliceDim(x, dim, h, h + 1)};
  if (h > 2) parts.push_back(b.SliceDim(x, dim, 1, h - 1));
  parts.push_back(b.SliceDim(x, dim, h + 1, n));
  parts.push_back(b.SliceDim(x, dim, h - 1, h));
  return b.Concatenate(parts, dim);
}

// The rotations that make [[p, g], [conj g, q]] diagonal: columns become c x - s conj(u) y and s x + c conj(u) y.
struct Rotation {
  Value c, s, u;  // [batch, h], of the matrix's dtype
};

Value Widen(Builder& b, Value real, DType dtype) {
  return IsComplex(dtype) ? b.Complex(real, b.Zero(real.dtype(), real.dims())) : real;
}

Rotation Rotate(Builder& b, Value p, Value q, Value g, Value active) {
  Value size = b.Abs(g);
  active = b.And(active, b.Compare(size, b.Zero(size.dtype(), size.dims()), Direction::kGt));
  Value one = b.One(size.dtype(), size.dims());
  Value safe = b.Select(active, size, one);
  Value tau = b.Divide(Mul(b, b.Subtract(q, p), 0.5), safe);
  // sqrt(1 + tau^2) overflows where the rotation is nothing anyway: 1 / inf.
  Value root = b.Add(b.Abs(tau), b.Sqrt(b.Add(one, b.Multiply(tau, tau))));
  Value t =
      b.Divide(b.Select(b.Compare(tau, b.Zero(tau.dtype(), tau.dims()), Direction::kLt), b.Negate(one), one), root);
  t = b.Select(active, t, b.Zero(t.dtype(), t.dims()));
  Value c = b.Divide(one, b.Sqrt(b.Add(one, b.Multiply(t, t))));
  Value s = b.Multiply(t, c);
  const DType dtype = g.dtype();
  Value u = b.Select(active, b.Divide(g, Widen(b, safe, dtype)), b.One(dtype, g.dims()));
  return {Widen(b, c, dtype), Widen(b, s, dtype), u};
}

Value RotateColumns(Builder& b, Value x, const Rotation& r) {
  const int64_t rows = x.dim(1);
  auto across = [&](Value v) { return AcrossColumns(b, v, rows); };
  Value left = Half(b, x, 2, false), right = b.Multiply(Half(b, x, 2, true), across(Conj(b, r.u)));
  Value first = b.Subtract(b.Multiply(across(r.c), left), b.Multiply(across(r.s), right));
  Value second = b.Add(b.Multiply(across(r.s), left), b.Multiply(across(r.c), right));
  return MoveOn(b, b.Concatenate({first, second}, 2), 2);
}

Value RotateRows(Builder& b, Value x, const Rotation& r) {
  const int64_t columns = x.dim(2);
  auto down = [&](Value v) { return DownRows(b, v, columns); };
  Value top = Half(b, x, 1, false), bottom = b.Multiply(Half(b, x, 1, true), down(r.u));
  Value first = b.Subtract(b.Multiply(down(r.c), top), b.Multiply(down(r.s), bottom));
  Value second = b.Add(b.Multiply(down(r.s), top), b.Multiply(down(r.c), bottom));
  return MoveOn(b, b.Concatenate({first, second}, 1), 1);
}

Value PadTo(Builder& b, Value x, int64_t rows, int64_t columns) {
  return b.Pad(x, b.Zero(x.dtype()), {0, 0, 0}, {0, rows - x.dim(1), columns - x.dim(2)});
}

Value TakeColumns(Builder& b, Value x, Value order) {
  return TakeAlong(b, x, b.BroadcastInDim(order, x.dims(), {0, 2}), 2, IndexTrust::kTrusted);
}

// Keys in order, and the positions they had.
std::pair<Value, Value> Ordered(Builder& b, Value keys, bool descending) {
  Values sorted = b.Sort({keys, b.Iota(DType::kInt64, keys.dims(), 1)}, 1, true, [&](const Values& v) -> Values {
    return {b.Compare(v[0], v[1], descending ? Direction::kGt : Direction::kLt)};
  });
  return {sorted[0], sorted[1]};
}

// sweep(state) -> state, with state[0] the real 0-d measure that has to get under `limit`.
Values Sweeps(Builder& b, Values state, double limit, const std::function<Values(const Values&)>& sweep) {
  state.insert(state.begin(), b.ConstantInt(DType::kInt64, 0));
  Values done = b.While(
      state,
      [&](const Values& s) -> Values {
        Value again = b.Compare(s[1], b.Constant(s[1].dtype(), limit), Direction::kGt);
        return {b.And(again, b.Compare(s[0], b.ConstantInt(DType::kInt64, kMostSweeps), Direction::kLt))};
      },
      [&](const Values& s) -> Values {
        Values next = sweep(Values(s.begin() + 1, s.end()));
        next.insert(next.begin(), b.Add(s[0], b.ConstantInt(DType::kInt64, 1)));
        return next;
      });
  return Values(done.begin() + 1, done.end());
}

struct Eigen {
  Value values, vectors;
};

// x is Hermitian.
Eigen Eigh(Builder& b, Value x) {
  const int64_t batch = x.dim(0), n = x.dim(1), even = n + n % 2;
  const DType dtype = x.dtype(), real = RealOf(dtype);
  if (b.host_kernels()) {
    const Values made = CallHost(b, "eigh", {x}, {{real, {batch, n}}, x.type()}, {0});
    return {made[0], made[1]};
  }
  // Scaled to a largest element of one, so that squares neither overflow nor vanish.
  Value size = b.Reduce(b.Abs(x), Builder::Reducer::kMax, {1, 2});
  Value usable = b.And(b.Compare(size, b.Zero(real, {batch}), Direction::kGt), b.IsFinite(size));
  Value scale = b.Select(usable, size, b.One(real, {batch}));
  Value a = PadTo(b, b.Divide(x, b.BroadcastInDim(Widen(b, scale, dtype), x.dims(), {0})), even, even);
  const Dims wide = a.dims();
  // The worst matrix of the batch decides.
  auto measure = [&](Value m) {
    Value mask = b.Compare(RowIndex(b, wide), ColumnIndex(b, wide), Direction::kNe);
    Value squares = SquaredNorms(b, Masked(b, mask, m), 2);
    Value off = b.Reduce(squares, Builder::Reducer::kAdd, {1});
    return b.Reduce(off, Builder::Reducer::kMax, {0});
  };
  const double eps = Epsilon(dtype);
  Values s = Sweeps(b, {measure(a), a, Identity(b, dtype, {batch, even, even})}, eps * eps * 0.01,
                    [&](const Values& state) -> Values {
                      Values inner = ForEach(b, even - 1, {state[1], state[2]}, [&](Value, const Values& v) -> Values {
                        Value m = v[0];
                        const int64_t h = even / 2;
                        Value d = Diagonal(b, m);
                        Value diagonal = IsComplex(dtype) ? b.Real(d) : d;
                        Value g = Diagonal(b, b.Slice(m, {0, 0, h}, {batch, h, even}));
                        Rotation r = Rotate(b, b.SliceDim(diagonal, 1, 0, h), b.SliceDim(diagonal, 1, h, even), g,
                                            b.ConstantInt(DType::kBool, 1, {batch, h}));
                        return {RotateRows(b, RotateColumns(b, m, r), r), RotateColumns(b, v[1], r)};
                      });
                      return {measure(inner[0]), inner[0], inner[1]};
                    });
  Value d = b.SliceDim(Diagonal(b, s[1]), 1, 0, n);
  auto [values, order] = Ordered(b, IsComplex(dtype) ? b.Real(d) : d, false);
  Value vectors = TakeColumns(b, b.Slice(s[2], {0, 0, 0}, {batch, n, n}), order);
  return {b.Multiply(values, b.BroadcastInDim(scale, values.dims(), {0})), vectors};
}

// One-sided: the columns of a square matrix are turned until they are orthogonal.
Singular SquareSvd(Builder& b, Value x) {
  const int64_t batch = x.dim(0), n = x.dim(1), even = n + n % 2, h = even / 2;
  const DType dtype = x.dtype(), real = RealOf(dtype);
  Value size = b.Reduce(b.Abs(x), Builder::Reducer::kMax, {1, 2});
  Value usable = b.And(b.Compare(size, b.Zero(real, {batch}), Direction::kGt), b.IsFinite(size));
  Value scale = b.Select(usable, size, b.One(real, {batch}));
  Value w = PadTo(b, b.Divide(x, b.BroadcastInDim(Widen(b, scale, dtype), x.dims(), {0})), n, even);
  const double tolerance = Epsilon(dtype) * 2;
  Values s = Sweeps(
      b, {b.Constant(real, 1), w, Identity(b, dtype, {batch, even, even})}, tolerance,
      [&](const Values& state) -> Values {
        return ForEach(b, even - 1, {b.Constant(real, 0), state[1], state[2]}, [&](Value, const Values& v) -> Values {
          Value left = Half(b, v[1], 2, false), right = Half(b, v[1], 2, true);
          Value p = SquaredNorms(b, left, 1), q = SquaredNorms(b, right, 1);
          Value g = b.Reduce(b.Multiply(Conj(b, left), right), Builder::Reducer::kAdd, {1});
          Value bound = b.Multiply(b.Sqrt(p), b.Sqrt(q));
          Value some = b.Compare(bound, b.Zero(real, {batch, h}), Direction::kGt);
          Value ratio = b.Select(some, b.Divide(b.Abs(g), b.Select(some, bound, b.One(real, {batch, h}))),
                                 b.Zero(real, {batch, h}));
          Rotation r =
              Rotate(b, p, q, g, b.Compare(ratio, b.Constant(real, tolerance / 4, {batch, h}), Direction::kGt));
          Value worst = b.Maximum(v[0], b.Reduce(ratio, Builder::Reducer::kMax, {0, 1}));
          return {worst, RotateColumns(b, v[1], r), RotateColumns(b, v[2], r)};
        });
      });
  Value turned = b.SliceDim(s[1], 2, 0, n);
  Value norms = b.Sqrt(SquaredNorms(b, turned, 1));
  auto [sizes, order] = Ordered(b, norms, true);
  Value columns = TakeColumns(b, turned, order);
  Value zero = b.Compare(sizes, b.Zero(real, sizes.dims()), Direction::kEq);
  Value divisor = b.Select(zero, b.One(real, sizes.dims()), sizes);
  Value u = b.Divide(columns, AcrossColumns(b, Widen(b, divisor, dtype), n));
  Value v = TakeColumns(b, b.Slice(s[2], {0, 0, 0}, {batch, n, n}), order);
  return {Completed(b, u, n), b.Multiply(sizes, b.BroadcastInDim(scale, sizes.dims(), {0})), v};
}

}  // namespace

Singular Svd(Builder& b, Value x, bool full) {
  const int64_t batch = x.dim(0), m = x.dim(1), n = x.dim(2);
  if (b.host_kernels()) {
    const int64_t k = std::min(m, n);
    const Values made = CallHost(
        b, "svd", {x},
        {{x.dtype(), {batch, m, full ? m : k}}, {RealOf(x.dtype()), {batch, k}}, {x.dtype(), {batch, n, full ? n : k}}},
        {full});
    return {made[0], made[1], made[2]};
  }
  if (m < n) {
    Singular t = Svd(b, Adjoint(b, x), full);
    return {t.v, t.s, t.u};
  }
  Qr qr = Geqrf(b, x);
  Singular inner = SquareSvd(b, Triangle(b, b.Slice(qr.packed, {0, 0, 0}, {batch, n, n}), false, true));
  Value u = Product(b, HouseholderProduct(b, qr.packed, qr.tau, n), inner.u);
  return {full && m > n ? Completed(b, u, m) : u, inner.s, inner.v};
}

namespace {

// A, UPLO, compute_v
Values EighRow(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const bool upper = a.text(1) == "U" || a.text(1) == "u", vectors = a.flag(2);
  const Dims batch = BatchOf(x);
  const int64_t n = x.dim(-1);
  if (x.numel() == 0) {
    return {b.Zero(RealOf(x.dtype()), Joined(batch, {n})), vectors ? x : b.Zero(x.dtype(), {0})};
  }
  Value flat = Flat(b, x);
  Value strict = Triangle(b, flat, !upper, false);
  Value d = Diagonal(b, flat);
  if (IsComplex(d.dtype())) d = Widen(b, b.Real(d), d.dtype());
  Value on = b.Compare(RowIndex(b, flat.dims()), ColumnIndex(b, flat.dims()), Direction::kEq);
  Value whole = b.Add(b.Add(strict, Adjoint(b, strict)), Masked(b, on, DownRows(b, d, n)));
  Eigen e = Eigh(b, whole);
  return {b.Reshape(e.values, Joined(batch, {n})), vectors ? b.Reshape(e.vectors, x.dims()) : b.Zero(x.dtype(), {0})};
}

// A, full_matrices, compute_uv, driver
Values SvdRow(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const bool full = a.flag(1), with_uv = a.flag(2);
  const Dims batch = BatchOf(x);
  const int64_t m = x.dim(-2), n = x.dim(-1), k = std::min(m, n);
  const DType dtype = x.dtype();
  Value none = b.Zero(dtype, {0});
  const Dims u_dims = Joined(batch, {m, full ? m : k}), vh_dims = Joined(batch, {full ? n : k, n});
  if (x.numel() == 0) {
    return {with_uv ? Identity(b, dtype, u_dims) : none, b.Zero(RealOf(dtype), Joined(batch, {k})),
            with_uv ? Identity(b, dtype, vh_dims) : none};
  }
  Singular s = Svd(b, Flat(b, x), full && with_uv);
  return {with_uv ? b.Reshape(s.u, u_dims) : none, b.Reshape(s.s, Joined(batch, {k})),
          with_uv ? b.Reshape(Adjoint(b, s.v), vh_dims) : none};
}

}  // namespace

std::vector<OpRow> EigenRows() {
  return {
      {"_linalg_eigh", EighRow, kColumnMajorOut},
      {"_linalg_svd", SvdRow, kColumnMajor},
  };
}

}  // namespace torch_tpu
