// Orthogonal polynomials p_n(x) by their recurrences, n per element.
#include <cmath>

#include "lowering/elementwise.h"
#include "lowering/special.h"

namespace torch_tpu {
namespace {

enum class Kind { kChebyshevT, kChebyshevU, kChebyshevV, kChebyshevW, kHermiteH, kHermiteHe, kLaguerre, kLegendre };

Value First(Builder& b, Kind kind, Value x) {
  switch (kind) {
    case Kind::kChebyshevT:
    case Kind::kHermiteHe:
    case Kind::kLegendre:
      return x;
    case Kind::kChebyshevU:
    case Kind::kHermiteH:
      return Mul(b, x, 2);
    case Kind::kChebyshevV:
      return AddC(b, Mul(b, x, 2), -1);
    case Kind::kChebyshevW:
      return AddC(b, Mul(b, x, 2), 1);
    case Kind::kLaguerre:
      return SubFrom(b, 1, x);
  }
  return x;
}

// p_k from q = p_(k-1) and p = p_(k-2); k is a float of x's dims.
Value Next(Builder& b, Kind kind, Value x, Value q, Value p, Value k) {
  Value before = AddC(b, k, -1);
  switch (kind) {
    case Kind::kHermiteH:
      return b.Subtract(b.Multiply(Mul(b, x, 2), q), b.Multiply(Mul(b, before, 2), p));
    case Kind::kHermiteHe:
      return b.Subtract(b.Multiply(x, q), b.Multiply(before, p));
    case Kind::kLaguerre: {
      Value factor = b.Subtract(AddC(b, Mul(b, before, 2), 1), x);
      return b.Divide(b.Subtract(b.Multiply(factor, q), b.Multiply(before, p)), k);
    }
    case Kind::kLegendre: {
      Value factor = b.Multiply(AddC(b, Mul(b, before, 2), 1), x);
      return b.Divide(b.Subtract(b.Multiply(factor, q), b.Multiply(before, p)), k);
    }
    default:
      return b.Subtract(b.Multiply(Mul(b, x, 2), q), p);
  }
}

Value Evaluate(Builder& b, Kind kind, bool shifted, Value given, Value order) {
  Value x = shifted ? AddC(b, Mul(b, given, 2), -1) : given;
  Value n = Trunc(b, order);
  const bool hermite = kind == Kind::kHermiteH || kind == Kind::kHermiteHe;
  const double limit = x.dtype() == DType::kFloat64 ? 512 : 128;  // CPU gives NaN for Hermite's above it
  Value asked = hermite ? b.Select(Greater(b, n, limit), Full(b, n, 0), n) : n;
  if (x.numel() == 0) return x;
  Dims all;
  for (int64_t i = 0; i < x.rank(); ++i) all.push_back(i);
  Value most = ReduceMax(b, b.Select(IsNan(b, asked), Full(b, asked, 0), asked), all);
  Value start = b.Select(Eq(b, n, 0), Full(b, x, 1), First(b, kind, x));
  Values state = b.While(
      {b.Constant(x.dtype(), 2), Full(b, x, 1), First(b, kind, x), start, x, n, most},
      [&](const Values& s) -> Values { return {b.Compare(s[0], s[6], Direction::kLe)}; },
      [&](const Values& s) -> Values {
        Value k = b.BroadcastTo(s[0], s[1].dims());
        Value next = Next(b, kind, s[4], s[2], s[1], k);
        Value result = b.Select(b.Compare(s[5], k, Direction::kEq), next, s[3]);
        return {b.Add(s[0], b.One(s[0].dtype())), s[2], next, result, s[4], s[5], s[6]};
      });
  Value y = b.Select(Less(b, n, 0), Full(b, x, 0), state[3]);
  if (hermite) y = b.Select(Greater(b, n, limit), Full(b, x, NAN), y);
  return y;
}

template <Kind kKind, bool kShifted>
Value Polynomial(Builder& b, Value x, Value n) {
  return Evaluate(b, kKind, kShifted, x, n);
}

constexpr OpRow kRows[] = {
    {"special_chebyshev_polynomial_t", FloatBinary<Polynomial<Kind::kChebyshevT, false>>},
    {"special_chebyshev_polynomial_u", FloatBinary<Polynomial<Kind::kChebyshevU, false>>},
    {"special_chebyshev_polynomial_v", FloatBinary<Polynomial<Kind::kChebyshevV, false>>},
    {"special_chebyshev_polynomial_w", FloatBinary<Polynomial<Kind::kChebyshevW, false>>},
    {"special_shifted_chebyshev_polynomial_t", FloatBinary<Polynomial<Kind::kChebyshevT, true>>},
    {"special_shifted_chebyshev_polynomial_u", FloatBinary<Polynomial<Kind::kChebyshevU, true>>},
    {"special_shifted_chebyshev_polynomial_v", FloatBinary<Polynomial<Kind::kChebyshevV, true>>},
    {"special_shifted_chebyshev_polynomial_w", FloatBinary<Polynomial<Kind::kChebyshevW, true>>},
    {"special_hermite_polynomial_h", FloatBinary<Polynomial<Kind::kHermiteH, false>>},
    {"special_hermite_polynomial_he", FloatBinary<Polynomial<Kind::kHermiteHe, false>>},
    {"special_laguerre_polynomial_l", FloatBinary<Polynomial<Kind::kLaguerre, false>>},
    {"special_legendre_polynomial_p", FloatBinary<Polynomial<Kind::kLegendre, false>>},
};

}  // namespace

std::span<const OpRow> PolynomialRows() { return kRows; }

}  // namespace torch_tpu
