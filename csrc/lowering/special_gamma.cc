// Zeta, polygamma, incomplete gamma functions, and the normal distribution's.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "lowering/elementwise.h"
#include "lowering/special.h"
#include "lowering/special_functions.h"

namespace torch_tpu {
namespace {

Value Any(Builder& b, Value mask) {
  Dims all;
  for (int64_t i = 0; i < mask.rank(); ++i) all.push_back(i);
  return mask.rank() == 0 ? mask : b.Reduce(mask, Builder::Reducer::kOr, all);
}

// Hurwitz's zeta(x, q) by Euler and Maclaurin; negative q that is no whole number wants a whole x, as on CPU.
Value Zeta(Builder& b, Value x, Value q) {
  const double kBernoulli[] = {1.0 / 12,           -1.0 / 720,       1.0 / 30240,
                               -1.0 / 1209600,     1.0 / 47900160.0, -691.0 / 1307674368000.0,
                               1.0 / 74724249600.0};  // B_2k / (2k)!
  Value pole = b.And(b.Compare(q, b.Floor(q), Direction::kEq), b.Compare(q, Full(b, q, 0), Direction::kLe));
  Value undefined = b.And(Less(b, q, 0), b.Compare(x, b.Floor(x), Direction::kNe));
  Value at = b.Select(b.Or(pole, undefined), Full(b, q, 10), q);
  auto term = [&](Value base, Value power) {  // base^-power; negative bases have whole powers
    Value size = b.Power(b.Abs(base), b.Negate(power));
    Value half = Mul(b, power, 0.5);
    Value odd = b.Compare(half, b.Floor(half), Direction::kNe);
    return b.Select(b.And(Less(b, base, 0), odd), b.Negate(size), size);
  };
  Values s = b.While(
      {at, Full(b, q, 0), x},
      [&](const Values& v) -> Values { return {Any(b, b.Compare(v[0], Full(b, v[0], 10), Direction::kLt))}; },
      [&](const Values& v) -> Values {
        Value open = Less(b, v[0], 10);
        return {b.Select(open, AddC(b, v[0], 1), v[0]), b.Select(open, b.Add(v[1], term(v[0], v[2])), v[1]), v[2]};
      });
  Value a = s[0];
  Value power = term(a, x);
  Value sum = b.Add(s[1], b.Add(b.Divide(b.Multiply(power, a), AddC(b, x, -1)), Mul(b, power, 0.5)));
  Value factor = b.Divide(b.Multiply(x, power), a), square = b.Multiply(a, a);
  for (size_t k = 0; k < std::size(kBernoulli); ++k) {
    sum = b.Add(sum, Mul(b, factor, kBernoulli[k]));
    const double n = 2.0 * static_cast<double>(k) + 1;
    factor = b.Divide(b.Multiply(factor, b.Multiply(AddC(b, x, n), AddC(b, x, n + 1))), square);
  }
  Value y = b.Select(undefined, Full(b, x, NAN), b.Select(pole, Full(b, x, INFINITY), sum));
  y = b.Select(Less(b, x, 1), Full(b, x, NAN), y);
  return b.Select(Eq(b, x, 1), Full(b, x, INFINITY), y);
}

// n, self
Values Polygamma(Builder& b, const Args& a) {
  const int64_t n = a.integer(0);
  Check(n >= 0, "polygamma(n, x) does not support negative n.");
  const DType dtype = FloatResult(a.tensor(1).dtype());
  Value x = ToCompute(b, Cast(b, a.tensor(1), dtype));
  if (n == 0) return {Cast(b, Digamma(b, x), dtype)};
  if (x.numel() == 0) return {Cast(b, x, dtype)};
  const double factorial = std::tgamma(static_cast<double>(n) + 1) * (n % 2 == 0 ? -1 : 1);
  return {Cast(b, Mul(b, Zeta(b, Full(b, x, static_cast<double>(n) + 1), x), factorial), dtype)};
}

Value ZetaOf(Builder& b, Value x, Value q) { return x.numel() == 0 ? x : Zeta(b, x, q); }

constexpr int kMostTerms = 2000;

// P(a, x) by its power series where x < a + 1, Q(a, x) by Lentz's continued fraction elsewhere.
Value IncompleteGamma(Builder& b, Value given_a, Value given_x, bool upper) {
  if (given_a.numel() == 0) return given_a;
  const DType dtype = given_a.dtype();
  // x^a e^-x / gamma(a) is a difference of large logarithms.
  Value a = b.Convert(given_a, DType::kFloat64), x = b.Convert(given_x, DType::kFloat64);
  Value regular = b.And(b.And(Greater(b, a, 0), Greater(b, x, 0)), b.And(Less(b, a, INFINITY), Less(b, x, INFINITY)));
  Value sa = b.Select(regular, a, Full(b, a, 1)), sx = b.Select(regular, x, Full(b, x, 1));
  Value front = b.Exp(b.Subtract(b.Subtract(b.Multiply(sa, b.Log(sx)), sx), Lgamma(b, sa)));
  Value low = b.Compare(sx, AddC(b, sa, 1), Direction::kLt);
  const double eps = 1e-16;
  auto going = [&](const Values& s) -> Values {
    return {b.And(s[0], b.Compare(s[1], b.ConstantInt(DType::kInt64, kMostTerms), Direction::kLt))};
  };
  Value start = b.ConstantInt(DType::kBool, 1), count = b.ConstantInt(DType::kInt64, 1);
  Value first = b.Divide(Full(b, sa, 1), sa);
  Value series_x = b.Select(low, sx, Full(b, sx, 0));
  Values series = b.While({start, count, first, first, sa, series_x}, going, [&](const Values& s) -> Values {
    Value n = b.BroadcastTo(b.Convert(s[1], DType::kFloat64), s[2].dims());
    Value term = b.Divide(b.Multiply(s[2], s[5]), b.Add(s[4], n));
    Value sum = b.Add(s[3], term);
    return {Any(b, b.Compare(term, Mul(b, sum, eps), Direction::kGt)),
            b.Add(s[1], b.ConstantInt(DType::kInt64, 1)),
            term,
            sum,
            s[4],
            s[5]};
  });
  Value lower = b.Multiply(front, series[3]);
  Value fraction_x = b.Select(low, AddC(b, sa, 2), sx);
  auto away = [&](Value v) { return b.Select(Less(b, b.Abs(v), 1e-300), Full(b, v, 1e-300), v); };
  Value base = AddC(b, b.Subtract(fraction_x, sa), 1);
  Value d0 = b.Divide(Full(b, base, 1), away(base));
  Values fraction =
      b.While({start, count, d0, Full(b, base, 1e300), d0, base, sa}, going, [&](const Values& s) -> Values {
        Value n = b.BroadcastTo(b.Convert(s[1], DType::kFloat64), s[2].dims());
        Value numerator = b.Multiply(n, b.Subtract(s[6], n));
        Value term = b.Add(s[5], Mul(b, n, 2));
        Value d = b.Divide(Full(b, term, 1), away(b.Add(b.Multiply(numerator, s[2]), term)));
        Value c = away(b.Add(term, b.Divide(numerator, s[3])));
        Value step = b.Multiply(c, d);
        return {Any(b, Greater(b, b.Abs(AddC(b, step, -1)), 1e-15)),
                b.Add(s[1], b.ConstantInt(DType::kInt64, 1)),
                d,
                c,
                b.Multiply(s[4], step),
                s[5],
                s[6]};
      });
  Value higher = b.Multiply(front, fraction[4]);
  Value y = upper ? b.Select(low, SubFrom(b, 1, lower), higher) : b.Select(low, lower, SubFrom(b, 1, higher));
  const double at_zero = upper ? 1 : 0, at_infinity = upper ? 0 : 1;
  y = b.Select(Eq(b, x, INFINITY), Full(b, y, at_infinity), y);
  y = b.Select(Eq(b, a, INFINITY), b.Select(Eq(b, x, INFINITY), Full(b, y, NAN), Full(b, y, at_zero)), y);
  y = b.Select(Eq(b, x, 0), Full(b, y, at_zero), y);
  y = b.Select(Eq(b, a, 0), b.Select(Greater(b, x, 0), Full(b, y, at_infinity), Full(b, y, NAN)), y);
  Value wrong = b.Or(b.Or(Less(b, x, 0), Less(b, a, 0)), b.Or(IsNan(b, x), IsNan(b, a)));
  return b.Convert(b.Select(wrong, Full(b, y, NAN), y), dtype);
}

Value Igamma(Builder& b, Value a, Value x) { return IncompleteGamma(b, a, x, false); }
Value Igammac(Builder& b, Value a, Value x) { return IncompleteGamma(b, a, x, true); }

// log of the normal distribution's lower tail.
Value LogNdtr(Builder& b, Value x) {
  Value t = Mul(b, x, std::numbers::sqrt2 / 2);
  Value tail = b.Subtract(b.Log(Mul(b, Erfcx(b, b.Negate(t)), 0.5)), b.Multiply(t, t));
  Value rest = b.Log1p(Mul(b, Erfc(b, t), -0.5));
  return b.Select(Less(b, x, -1), tail, rest);
}

// Newton on log_ndtr, which is concave, from a rational start for the smaller tail.
Value Ndtri(Builder& b, Value p) {
  Value upper = Greater(b, p, 0.5);
  Value tail = b.Select(upper, SubFrom(b, 1, p), p);
  Value inside = b.And(Greater(b, tail, 0), Less(b, tail, 1));
  Value safe = b.Select(inside, tail, Full(b, p, 0.25));
  Value log = b.Log(safe);
  Value t = b.Sqrt(Mul(b, log, -2));
  Value y = b.Negate(b.Subtract(t, b.Divide(AddC(b, Mul(b, t, 0.27061), 2.30753),
                                            AddC(b, b.Multiply(t, AddC(b, Mul(b, t, 0.04481), 0.99229)), 1))));
  const double half_log_2pi = 0.5 * std::log(2 * std::numbers::pi);
  for (int i = 0; i < (p.dtype() == DType::kFloat64 ? 4 : 2); ++i) {
    Value at = LogNdtr(b, y);
    // d/dy log_ndtr = phi(y) / Phi(y)
    Value slope = b.Exp(b.Subtract(AddC(b, Mul(b, b.Multiply(y, y), -0.5), -half_log_2pi), at));
    y = b.Subtract(y, b.Divide(b.Subtract(at, log), slope));
  }
  y = b.Select(Eq(b, tail, 0.5), Full(b, y, 0), y);
  y = b.Select(upper, b.Negate(y), y);
  y = b.Select(Eq(b, p, 0), Full(b, y, -INFINITY), b.Select(Eq(b, p, 1), Full(b, y, INFINITY), y));
  return b.Select(b.Or(b.Or(Less(b, p, 0), Greater(b, p, 1)), IsNan(b, p)), Full(b, y, NAN), y);
}

constexpr OpRow kRows[] = {
    {"special_zeta", FloatBinary<ZetaOf>}, {"polygamma", Polygamma},
    {"igamma", FloatBinary<Igamma>},       {"igammac", FloatBinary<Igammac>},
    {"special_erfcx", FloatUnary<Erfcx>},  {"special_log_ndtr", FloatUnary<LogNdtr>},
    {"special_ndtri", FloatUnary<Ndtri>},
};

}  // namespace

std::span<const OpRow> GammaRows() { return kRows; }

std::span<const OpRow> SpecialRows() {
  static const std::vector<OpRow> rows = [] {
    std::vector<OpRow> all;
    for (const auto& part : {BesselRows(), PolynomialRows(), GammaRows()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rows;
}

}  // namespace torch_tpu
