#include "lowering/special_functions.h"

#include <cmath>
#include <numbers>
#include <span>

#include "lowering/elementwise.h"

namespace torch_tpu {
namespace {

// Chebyshev interpolants written as plain polynomials, lowest power first. Relative errors are under
// a tenth of float32's rounding, or half of float64's, but for the starts of a Newton iteration.
// erf(x) / x in x^2, |x| <= 1.
constexpr double kErf32[] = {1.1283791658483509,   -0.37612626666720331,    0.11283594715160218,  -0.026854212010626412,
                             0.005189087423433974, -0.00080168642871658695, 7.8758750626854883e-5};
// The same for float64.
constexpr double kErf64[] = {1.1283791670955126,     -0.37612638903183748,   0.11283791670954879,
                             -0.026866170645076793,  0.0052239776248180145,  -0.00085483269808337899,
                             0.00012055331111642711, -1.4925595266831182e-5, 1.6461000484121368e-6,
                             -1.6350312701054695e-7, 1.4659775274047436e-8,  -1.1372848856791674e-9,
                             5.9571761477489114e-11};
// (1 + 2x) e^(x^2) erfc(x) in (x - 2) / (x + 2), 1/2 <= x <= 12.
constexpr double kErfcx32[] = {1.276978380795782,       -0.092763817378846769, -0.16603029420717603,
                               0.16405080852474357,     -0.054222234964703048, -0.008026976433094,
                               0.0087393511789291477,   0.0012268660334820387, -0.0015068538804187184,
                               -0.00032578978018153998, 0.00025635364682322968};
// The same for float64, up to 28, with 4 for 2.
constexpr double kErfcx64[] = {
    1.2329951186255525,     -0.13962111684056253,   0.015379652102619026,    0.068097054254694797,
    -0.10103906603625375,   0.093732834998287502,   -0.066330365813607131,   0.03716751553818893,
    -0.01619773403826592,   0.0050319699756138132,  -0.00075777344867628079, -0.00019925671345040716,
    0.00015062249512264785, -2.4398983809134552e-5, -1.1224732247350101e-5,  5.7086428044048147e-6,
    2.9955790685567077e-7,  -8.2255956320607202e-7, 6.7024528337289707e-8,   1.0568025135820958e-7,
    -1.2224048303152388e-8, -1.047671867466837e-8};
// log gamma(x) / ((x - 1)(x - 2)) in x - 2.25, 3/2 <= x <= 3.
constexpr double kLgamma32[] = {0.3995894876556691,     -0.085880851332572846,   0.025268356529382823,
                                -0.0084638912019778732, 0.0030410631067263667,   -0.0011423019058538128,
                                0.00044120279918544369, -0.00016849815944342256, 6.7359813484932384e-5,
                                -3.691642923686166e-5,  1.5139132965309911e-5};
// The same for float64.
constexpr double kLgamma64[] = {
    0.39958948765566908,   -0.085880847551260986,  0.025268354959295954,   -0.0084640249935784207,
    0.0030411186574735556, -0.0011409865898209123, 0.00044065674192592855, -0.00017370932188046912,
    6.9522680474628016e-5, -2.8149240685518123e-5, 1.15027163735972e-5,    -4.7348698060600071e-6,
    1.9579409029934409e-6, -8.1496954799519484e-7, 3.4807217207331334e-7,  -1.4611285163598748e-7,
    5.0394054961890244e-8, -2.1235115400925672e-8, 1.8293169142788217e-8,  -7.7785424621685732e-9};
// erfinv(x) / x in w - 3, where w = -log(1 - x^2) <= 6.
constexpr double kErfinvCentral[] = {1.6235420064648299,      0.24163041472218417,    -0.0057381449944418279,
                                     -0.00083620425761055528, 0.00019508311252938712, -1.2704025236349121e-5,
                                     -1.7616681960314948e-6,  4.4769028904537688e-7,  -2.0165097598704329e-8,
                                     -5.4366586859246041e-9,  7.0794195518100743e-10};
// The same in sqrt(w) - 3.374744871391589, sqrt(6) <= sqrt(w) <= 4.3: all of float32.
constexpr double kErfinvTail32[] = {3.2093633371235575,     1.0064413078015683,     0.0041717053947742358,
                                    -0.0027371547844497611, 0.0016230829836230238,  -0.0010819638204337615,
                                    0.00070979822862716986, -0.0003180396162779465, 8.6002917170377968e-6,
                                    4.2831265711806043e-5};
// The same in sqrt(w) - 4.424744871391589, up to 6.4: a start for Newton in float64.
constexpr double kErfinvTail64[] = {4.2687319657686442,      1.0101758217372774,     0.00041290432876510855,
                                    -0.00047565216086150716, 0.00020002996467776763, -5.0490807862104235e-5,
                                    -1.3608761037084082e-5,  -7.3669396258681221e-7, 1.0661906653137639e-5,
                                    -3.1868661247294733e-6};
// Bernoulli terms of log gamma's and digamma's asymptotic series, in 1 / x^2.
constexpr double kStirling[] = {1.0 / 12,        -1.0 / 360, 1.0 / 1260,       -1.0 / 1680,      1.0 / 1188,
                                -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400, 43867.0 / 244188, -174611.0 / 125400};
constexpr double kDigammaSeries[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};

Value Polynomial(Builder& b, Value x, std::span<const double> coefficients) {
  Value result = Full(b, x, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) result = AddC(b, b.Multiply(result, x), coefficients[i]);
  return result;
}

bool IsWide(const Value& x) { return x.dtype() == DType::kFloat64; }

Value SmallErf(Builder& b, Value x) {
  Value square = b.Multiply(x, x);
  return b.Multiply(x, IsWide(x) ? Polynomial(b, square, kErf64) : Polynomial(b, square, kErf32));
}

// erfc(x) for x >= 1/2. e^(-x^2) is taken in two factors: the square of x's leading bits is exact.
Value LargeErfc(Builder& b, Value x) {
  const double last = IsWide(x) ? 28 : 12, middle = IsWide(x) ? 4 : 2;
  const DType integer = IsWide(x) ? DType::kInt64 : DType::kInt32;
  const int64_t mask = IsWide(x) ? ~((int64_t{1} << 27) - 1) : ~int64_t{0xfff};
  Value y = b.Select(Greater(b, x, last), Full(b, x, last), x);
  Value u = b.Divide(AddC(b, y, -middle), AddC(b, y, middle));
  Value scaled = IsWide(x) ? Polynomial(b, u, kErfcx64) : Polynomial(b, u, kErfcx32);
  Value head = b.BitcastConvert(b.And(b.BitcastConvert(y, integer), b.ConstantInt(integer, mask, x.dims())), x.dtype());
  Value tail = b.Multiply(b.Subtract(y, head), b.Add(y, head));
  Value gauss = b.Multiply(b.Exp(b.Negate(b.Multiply(head, head))), b.Exp(b.Negate(tail)));
  return b.Multiply(gauss, b.Divide(scaled, AddC(b, Mul(b, y, 2), 1)));
}

// sin(pi x) for x >= 0, exactly zero at whole numbers.
Value SinPi(Builder& b, Value x) {
  Value r = b.Subtract(x, Mul(b, b.Floor(Mul(b, x, 0.5)), 2));  // in [0, 2)
  Value upper = b.Compare(r, Full(b, r, 1), Direction::kGe);
  Value s = b.Select(upper, AddC(b, r, -1), r);
  Value folded = b.Select(Greater(b, s, 0.5), SubFrom(b, 1, s), s);
  Value sine = b.Sine(Mul(b, folded, std::numbers::pi));
  return b.Select(upper, b.Negate(sine), sine);
}

// log gamma for x > 0.
Value PositiveLgamma(Builder& b, Value x) {
  // Stirling from 8 on.
  Value big = b.Select(Less(b, x, 8), Full(b, x, 8), x);
  Value inverse = b.Divide(Full(b, x, 1), big);
  Value series = b.Multiply(Polynomial(b, b.Multiply(inverse, inverse), kStirling), inverse);
  // (x - 1/2)(log x - 1) + series + (log(2 pi) - 1) / 2: no difference of two large numbers, infinite for infinity.
  Value stirling = b.Add(b.Multiply(AddC(b, big, -0.5), AddC(b, b.Log(big), -1)),
                         AddC(b, series, (std::log(2 * std::numbers::pi) - 1) / 2));
  // Below, down to [3/2, 3) by factors, which only ever add.
  Value y = b.Select(Less(b, x, 8), x, Full(b, x, 2));
  Value product = Full(b, x, 1);
  for (int i = 0; i < 5; ++i) {
    Value above = b.Compare(y, Full(b, y, 3), Direction::kGe);
    y = b.Select(above, AddC(b, y, -1), y);
    product = b.Select(above, b.Multiply(product, y), product);
  }
  Value tiny = Less(b, x, 0.5), low = Less(b, x, 1.5);
  // z is y, y + 1 or y + 2, and z - 1 and z - 2 are formed from y so that they keep their digits near the zeros.
  Value shift = b.Select(tiny, Full(b, y, 2), b.Select(low, Full(b, y, 1), Full(b, y, 0)));
  Value z = b.Add(y, shift);
  Value minus_one = b.Add(y, AddC(b, shift, -1)), minus_two = b.Add(y, AddC(b, shift, -2));
  Value t = AddC(b, z, -2.25);
  Value fitted = IsWide(x) ? Polynomial(b, t, kLgamma64) : Polynomial(b, t, kLgamma32);
  Value core = b.Multiply(b.Multiply(minus_one, minus_two), fitted);
  Value correction = b.Select(tiny, b.Add(b.Log(y), b.Log1p(y)), b.Select(low, b.Log1p(AddC(b, y, -1)), Full(b, y, 0)));
  Value small = b.Add(b.Subtract(core, correction), b.Log(product));
  return b.Select(Less(b, x, 8), small, stirling);
}

}  // namespace

Value Erf(Builder& b, Value x) {
  Value size = b.Abs(x);
  Value tail = SubFrom(b, 1, LargeErfc(b, size));
  Value large = b.Select(SignBit(b, x), b.Negate(tail), tail);
  return b.Select(Less(b, size, 1), SmallErf(b, x), large);
}

Value Erfc(Builder& b, Value x) {
  Value tail = LargeErfc(b, b.Abs(x));
  Value large = b.Select(Less(b, x, 0), SubFrom(b, 2, tail), tail);
  return b.Select(Less(b, b.Abs(x), 0.5), SubFrom(b, 1, SmallErf(b, x)), large);
}

Value Erfcx(Builder& b, Value x) {
  Value size = b.Abs(x);
  const double last = IsWide(x) ? 28 : 12, middle = IsWide(x) ? 4 : 2;
  Value y = b.Select(Greater(b, size, last), Full(b, x, last), size);
  Value u = b.Divide(AddC(b, y, -middle), AddC(b, y, middle));
  Value scaled = IsWide(x) ? Polynomial(b, u, kErfcx64) : Polynomial(b, u, kErfcx32);
  Value center = b.Divide(scaled, AddC(b, Mul(b, y, 2), 1));
  Value far = b.Select(Greater(b, size, last), size, Full(b, x, last));
  Value inverse = b.Divide(Full(b, x, 1), far);
  const double kSeries[] = {1, -1, 3, -15, 105, -945, 10395};
  Value tail = b.Multiply(Mul(b, inverse, std::numbers::inv_sqrtpi),
                          Polynomial(b, Mul(b, b.Multiply(inverse, inverse), 0.5), kSeries));
  Value gauss = b.Exp(b.Multiply(x, x));
  Value small = b.Multiply(gauss, SubFrom(b, 1, SmallErf(b, size)));
  Value positive = b.Select(Less(b, size, 0.5), small, b.Select(Greater(b, size, last), tail, center));
  return b.Select(Less(b, x, 0), b.Subtract(Mul(b, gauss, 2), positive), positive);
}

Value Erfinv(Builder& b, Value x) {
  Value size = b.Abs(x);
  Value w = b.Negate(b.Log(b.Multiply(SubFrom(b, 1, x), AddC(b, x, 1))));
  Value s = b.Sqrt(w);
  Value center = Polynomial(b, AddC(b, w, -3), kErfinvCentral);
  Value tail = IsWide(x) ? Polynomial(b, AddC(b, s, -4.424744871391589), kErfinvTail64)
                         : Polynomial(b, AddC(b, s, -3.374744871391589), kErfinvTail32);
  Value y = b.Multiply(b.Select(Less(b, w, 6), center, tail), size);
  if (IsWide(x)) {
    for (int i = 0; i < 2; ++i) {  // Newton; the residual is exact in whichever of erf and erfc is small
      Value slope = Mul(b, b.Exp(b.Negate(b.Multiply(y, y))), 2 / std::sqrt(std::numbers::pi));
      Value by_erf = b.Subtract(Erf(b, y), size);
      Value by_erfc = b.Subtract(SubFrom(b, 1, size), Erfc(b, y));
      y = b.Subtract(y, b.Divide(b.Select(Less(b, size, 0.5), by_erf, by_erfc), slope));
    }
  }
  y = b.Select(Eq(b, size, 1), Full(b, x, INFINITY), y);
  y = b.Select(Greater(b, size, 1), Full(b, x, NAN), y);
  return b.Select(SignBit(b, x), b.Negate(y), y);
}

Value Lgamma(Builder& b, Value x) {
  Value negative = Less(b, x, 0);
  Value mirrored = b.Select(negative, SubFrom(b, 1, x), x);
  Value positive = PositiveLgamma(b, mirrored);
  // By gamma(x) gamma(1 - x) = pi / sin(pi x).
  Value reflected = b.Subtract(b.Log(b.Divide(Full(b, x, std::numbers::pi), b.Abs(SinPi(b, b.Abs(x))))), positive);
  Value result = b.Select(negative, reflected, positive);
  Value pole = b.And(b.Compare(x, b.Floor(x), Direction::kEq), b.Compare(x, Full(b, x, 0), Direction::kLe));
  return b.Select(b.Or(pole, Eq(b, b.Abs(x), INFINITY)), Full(b, x, INFINITY), result);
}

Value Digamma(Builder& b, Value x) {
  Value below = Less(b, x, 0);
  Value y = b.Select(below, SubFrom(b, 1, x), x);
  Value shifted = Full(b, x, 0);
  for (int i = 0; i < 10; ++i) {
    Value small = Less(b, y, 10);
    shifted = b.Select(small, b.Subtract(shifted, b.Divide(Full(b, y, 1), y)), shifted);
    y = b.Select(small, AddC(b, y, 1), y);
  }
  Value inverse = b.Divide(Full(b, y, 1), y);
  Value square = b.Multiply(inverse, inverse);
  Value series = b.Multiply(square, Polynomial(b, square, kDigammaSeries));
  Value positive = b.Add(b.Subtract(b.Subtract(b.Log(y), Mul(b, inverse, 0.5)), series), shifted);
  Value angle = Mul(b, b.Subtract(x, Trunc(b, x)), std::numbers::pi);
  Value cotangent = b.Divide(Mul(b, b.Cosine(angle), std::numbers::pi), b.Sine(angle));
  Value result = b.Select(below, b.Subtract(positive, cotangent), positive);
  Value whole = b.And(below, b.Compare(x, b.Floor(x), Direction::kEq));
  result = b.Select(whole, Full(b, x, NAN), result);
  Value infinite = b.Select(SignBit(b, x), Full(b, x, INFINITY), Full(b, x, -INFINITY));
  return b.Select(Eq(b, x, 0), infinite, result);
}

}  // namespace torch_tpu
