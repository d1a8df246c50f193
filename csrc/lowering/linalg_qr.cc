// QR by Householder reflections, with LAPACK's conventions: H = I - tau v v^H, v[k] = 1, a real diagonal of R.
#include "base/error.h"
#include "lowering/host_call.h"
#include "lowering/linalg.h"
#include "lowering/math.h"

namespace torch_tpu {
namespace {

Value ToLike(Builder& b, Value real, DType dtype) {
  return IsComplex(dtype) ? b.Complex(real, b.Zero(real.dtype(), real.dims())) : real;
}

Value AtK(Builder& b, Value v, Value k) {
  Value hit = b.Compare(b.Iota(DType::kInt64, v.dims(), 1), b.BroadcastTo(k, v.dims()), Direction::kEq);
  return b.Reduce(Masked(b, hit, v), Builder::Reducer::kAdd, {1});
}

// x - factor v (v^H x); v: [batch, m], factor: [batch].
Value Reflect(Builder& b, Value x, Value v, Value factor) {
  const int64_t batch = x.dim(0), m = x.dim(1), n = x.dim(2);
  Value row = Product(b, b.Reshape(Conj(b, v), {batch, 1, m}), x);
  Value scaled = b.Multiply(v, b.BroadcastInDim(factor, v.dims(), {0}));
  return b.Subtract(x, b.Multiply(DownRows(b, scaled, n), b.BroadcastTo(row, {batch, m, n})));
}

// Column k below the diagonal, with a one on it.
Value Reflector(Builder& b, Value packed, Value k) {
  Value column = Column(b, packed, k);
  Value rows = b.Iota(DType::kInt64, column.dims(), 1), at = b.BroadcastTo(k, column.dims());
  Value v = Masked(b, b.Compare(rows, at, Direction::kGt), column);
  return b.Select(b.Compare(rows, at, Direction::kEq), b.One(v.dtype(), v.dims()), v);
}

}  // namespace

Qr Geqrf(Builder& b, Value x) {
  const int64_t batch = x.dim(0), m = x.dim(1), n = x.dim(2), steps = std::min(m, n);
  const DType dtype = x.dtype();
  if (b.host_kernels()) {
    const Values made = CallHost(b, "geqrf", {x}, {x.type(), {dtype, {batch, steps}}}, {0});
    return {made[0], made[1]};
  }
  Values s = ForEach(b, steps, {x, b.Zero(dtype, {batch, steps})}, [&](Value k, const Values& state) -> Values {
    Value a = state[0];
    Value column = Column(b, a, k);
    Value rows = b.Iota(DType::kInt64, {batch, m}, 1), at = b.BroadcastTo(k, {batch, m});
    Value below = b.Compare(rows, at, Direction::kGt);
    Value alpha = AtK(b, column, k);
    Value real = b.Real(alpha), tail = SquaredNorms(b, Masked(b, below, column), 1);
    if (!IsComplex(dtype)) real = alpha;
    Value size = b.Multiply(real, real);
    Value off = tail;  // what makes a reflection necessary
    if (IsComplex(dtype)) {
      Value imag = b.Imag(alpha);
      off = b.Add(off, b.Multiply(imag, imag));
    }
    Value norm = b.Sqrt(b.Add(size, off));
    Value none = b.Compare(off, b.Zero(off.dtype(), off.dims()), Direction::kEq);
    Value negative = b.Compare(real, b.Zero(real.dtype(), real.dims()), Direction::kLt);
    Value beta = b.Select(negative, norm, b.Negate(norm));
    Value safe = ToLike(b, b.Select(none, b.One(beta.dtype(), beta.dims()), beta), dtype);
    Value wide_beta = ToLike(b, beta, dtype);
    Value tau = Masked(b, none, b.Zero(dtype, {batch}));
    tau = b.Select(none, tau, b.Divide(b.Subtract(wide_beta, alpha), safe));
    Value scale = b.Select(none, b.One(dtype, {batch}), b.Subtract(alpha, wide_beta));
    Value v = b.Divide(column, b.BroadcastInDim(scale, {batch, m}, {0}));
    v = Masked(b, below, v);
    Value full = b.Select(b.Compare(rows, at, Direction::kEq), b.One(dtype, {batch, m}), v);
    Value right = b.Compare(ColumnIndex(b, a.dims()), b.BroadcastTo(k, a.dims()), Direction::kGt);
    a = b.Select(right, Reflect(b, a, full, Conj(b, tau)), a);
    Value diagonal = b.Select(none, alpha, wide_beta);
    Value stored = b.Select(b.Compare(rows, at, Direction::kEq), b.BroadcastInDim(diagonal, {batch, m}, {0}),
                            b.Select(below, v, column));
    Value taus =
        b.Select(b.Compare(b.Iota(DType::kInt64, {batch, steps}, 1), b.BroadcastTo(k, {batch, steps}), Direction::kEq),
                 b.BroadcastInDim(tau, {batch, steps}, {0}), state[1]);
    return {WithColumn(b, a, k, stored), taus};
  });
  return {s[0], s[1]};
}

Value HouseholderProduct(Builder& b, Value packed, Value tau, int64_t columns) {
  if (b.host_kernels() && columns >= tau.dim(1) && tau.dim(1) > 0) {
    const TensorType type{packed.dtype(), {packed.dim(0), packed.dim(1), columns}};
    return CallHost(b, "householder_product", {packed, tau}, {type}, {columns})[0];
  }
  Value q = Identity(b, packed.dtype(), {packed.dim(0), packed.dim(1), columns});
  return ForEach(
      b, tau.dim(1), {q, packed, tau},
      [&](Value k, const Values& s) -> Values {
        return {Reflect(b, s[0], Reflector(b, s[1], k), AtK(b, s[2], k)), s[1], s[2]};
      },
      /*backwards=*/true)[0];
}

Value Completed(Builder& b, Value x, int64_t columns) {
  const int64_t batch = x.dim(0), m = x.dim(1);
  Qr qr = Geqrf(b, x);
  Value q = HouseholderProduct(b, qr.packed, qr.tau, columns);
  // Q's columns are x's up to the sign of R's diagonal.
  Value d = Diagonal(b, qr.packed);
  Value real = IsComplex(d.dtype()) ? b.Real(d) : d;
  Value sign = b.Select(b.Compare(real, b.Zero(real.dtype(), real.dims()), Direction::kLt),
                        b.Constant(real.dtype(), -1, real.dims()), b.One(real.dtype(), real.dims()));
  if (columns > sign.dim(1)) sign = b.Concatenate({sign, b.One(sign.dtype(), {batch, columns - sign.dim(1)})}, 1);
  return b.Multiply(q, AcrossColumns(b, ToLike(b, sign, x.dtype()), m));
}

namespace {

// A, mode
Values QrRow(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const std::string mode = a.text(1).empty() ? "reduced" : a.text(1);
  const Dims batch = BatchOf(x);
  const int64_t m = x.dim(-2), n = x.dim(-1), k = std::min(m, n);
  const int64_t inner = mode == "complete" ? m : k;
  const bool with_q = mode != "r";
  Value none = b.Zero(x.dtype(), {0});
  if (x.numel() == 0) {
    return {with_q ? Identity(b, x.dtype(), Joined(batch, {m, inner})) : none,
            b.Zero(x.dtype(), Joined(batch, {inner, n}))};
  }
  Value flat = Flat(b, x);
  Qr qr = Geqrf(b, flat);
  Value r = Triangle(b, b.Slice(qr.packed, {0, 0, 0}, {flat.dim(0), inner, n}), false, true);
  Value q = with_q ? b.Reshape(HouseholderProduct(b, qr.packed, qr.tau, inner), Joined(batch, {m, inner})) : none;
  return {q, b.Reshape(r, Joined(batch, {inner, n}))};
}

Values GeqrfRow(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims batch = BatchOf(x);
  const int64_t k = std::min(x.dim(-2), x.dim(-1));
  if (x.numel() == 0) return {x, b.Zero(x.dtype(), Joined(batch, {k}))};
  Qr qr = Geqrf(b, Flat(b, x));
  return {b.Reshape(qr.packed, x.dims()), b.Reshape(qr.tau, Joined(batch, {k}))};
}

// input, tau
Values HouseholderRow(Builder& b, const Args& a) {
  Value x = a.tensor(0), tau = a.tensor(1);
  if (x.numel() == 0) return {x};
  if (tau.numel() == 0) return {Identity(b, x.dtype(), x.dims())};
  return {b.Reshape(HouseholderProduct(b, Flat(b, x), FlatVectors(b, tau), x.dim(-1)), x.dims())};
}

// self, input2 (tau), input3, left, transpose
Values Ormqr(Builder& b, const Args& a) {
  Value packed = a.tensor(0), tau = a.tensor(1), x = a.tensor(2);
  const bool left = a.flag(3), transpose = a.flag(4);
  if (x.numel() == 0 || tau.numel() == 0) return {x};
  Value flat = Flat(b, x), p = Flat(b, packed), t = FlatVectors(b, tau);
  // x Q = (Q^H x^H)^H
  Value y = left ? flat : Adjoint(b, flat);
  const bool adjoint = left ? transpose : !transpose;
  if (adjoint) t = Conj(b, t);
  y = ForEach(
      b, t.dim(1), {y, p, t},
      [&](Value k, const Values& s) -> Values {
        return {Reflect(b, s[0], Reflector(b, s[1], k), AtK(b, s[2], k)), s[1], s[2]};
      },
      /*backwards=*/!adjoint)[0];
  return {b.Reshape(left ? y : Adjoint(b, y), x.dims())};
}

}  // namespace

std::vector<OpRow> QrRows() {
  return {
      {"linalg_qr", QrRow, kColumnMajorOut},
      {"geqrf", GeqrfRow, kColumnMajor},
      {"linalg_householder_product", HouseholderRow, kColumnMajorOut},
      {"ormqr", Ormqr, kColumnMajorOut},
  };
}

}  // namespace torch_tpu
