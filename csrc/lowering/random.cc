// Random numbers: distributions over the words of lowering/philox.h. A draw uses at most two 32-bit words per element.
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"
#include "lowering/philox.h"

namespace torch_tpu {

namespace {

// [0, 1) with `digits` random bits, as float32 (up to 24) or float64 (up to 53).
Value UnitDigits(Builder& b, Value state, int64_t n, int digits) {
  if (digits <= 24) {
    Value word = PhiloxWords(b, state, n);
    Value top = b.ShiftRightLogical(word, b.ConstantInt(DType::kUInt32, 32 - digits, {n}));
    return Mul(b, b.Convert(top, DType::kFloat32), std::ldexp(1.0, -digits));
  }
  auto [low, high] = PhiloxPairs(b, state, n);
  Value wide = b.Or(b.ShiftLeft(b.Convert(high, DType::kUInt64), b.ConstantInt(DType::kUInt64, 32, {n})),
                    b.Convert(low, DType::kUInt64));
  Value top = b.ShiftRightLogical(wide, b.ConstantInt(DType::kUInt64, 64 - digits, {n}));
  return Mul(b, b.Convert(top, DType::kFloat64), std::ldexp(1.0, -digits));
}

int Digits(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 53;
    case DType::kFloat32:
      return 24;
    case DType::kFloat16:
      return 11;
    case DType::kBFloat16:
      return 8;
    default:
      return 24;
  }
}

// float64 for float64 tensors, float32 otherwise
DType DrawType(DType dtype) { return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

// [0, 1), 24 or 53 bits, flat
Value Unit(Builder& b, Value state, int64_t n, DType draw) { return UnitDigits(b, state, n, Digits(draw)); }

// (0, 1): the middles of 2^32 or 2^53 equal steps, for logarithms. Float32 rounds the last few to 1.
Value OpenUnit(Builder& b, Value state, int64_t n, DType draw) {
  if (draw == DType::kFloat64) return AddC(b, UnitDigits(b, state, n, 52), std::ldexp(1.0, -53));
  Value word = b.Convert(PhiloxWords(b, state, n), DType::kFloat32);
  return Mul(b, AddC(b, word, 0.5), std::ldexp(1.0, -32));
}

Value Spread(Builder& b, Value scalar, int64_t n) { return b.BroadcastInDim(scalar, {n}, {}); }

// A flat draw as the op's result.
Value Shaped(Builder& b, Value flat, DType dtype, const Dims& dims) { return b.Reshape(Cast(b, flat, dtype), dims); }

void CheckFloat(const Value& self, const char* op) {
  if (!IsFloat(self.dtype()))
    Fail(Code::kInvalidArgument, op, ": expected a floating point dtype, got ", Name(self.dtype()));
}

// self, from, to
Values Uniform(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  const int64_t n = self.numel();
  if (IsComplex(self.dtype())) {  // both parts
    const DType real = RealOf(self.dtype());
    auto [w0, w1] = PhiloxPairs(b, a.rng_state(), n);
    Value from = a.scalar(b, 1, real), width = b.Subtract(a.scalar(b, 2, real), from);
    auto part = [&](Value word) {
      Value top = b.ShiftRightLogical(word, b.ConstantInt(DType::kUInt32, 8, {n}));
      Value u = Mul(b, b.Convert(top, real), std::ldexp(1.0, -24));
      return b.Add(b.Multiply(u, Spread(b, width, n)), Spread(b, from, n));
    };
    return {b.Reshape(b.Complex(part(w0), part(w1)), self.dims())};
  }
  CheckFloat(self, "uniform_");
  const DType draw = DrawType(self.dtype());
  Value from = a.scalar(b, 1, draw), to = a.scalar(b, 2, draw);
  Value u = UnitDigits(b, a.rng_state(), n, Digits(self.dtype()));
  Value x = b.Add(b.Multiply(u, Spread(b, b.Subtract(to, from), n)), Spread(b, from, n));
  x = Cast(b, x, self.dtype());
  // Rounding may reach the upper bound, which is not part of the range.
  Value low = Spread(b, Cast(b, from, self.dtype()), n), high = Spread(b, Cast(b, to, self.dtype()), n);
  x = b.Select(b.Compare(x, high, Direction::kGe), low, x);
  return {b.Reshape(x, self.dims())};
}

// Standard normals, flat: Box-Muller. The odd elements of float64 pairs take the sine of the even ones' angle.
Value Normals(Builder& b, Value state, int64_t n, DType draw) {
  const double turn = 2 * std::numbers::pi;
  if (draw == DType::kFloat32) {
    auto [w0, w1] = PhiloxPairs(b, state, n);
    Value u = Mul(b, AddC(b, b.Convert(w0, DType::kFloat32), 0.5), std::ldexp(1.0, -32));
    Value angle = Mul(b, b.Convert(w1, DType::kFloat32), turn * std::ldexp(1.0, -32));
    return b.Multiply(b.Sqrt(Mul(b, b.Log(u), -2.0)), b.Cosine(angle));
  }
  Value i = b.Iota(DType::kUInt64, {n}, 0);
  Value one = b.ConstantInt(DType::kUInt64, 1, {n});
  std::array<Value, 4> words = PhiloxBlock(b, state, b.ShiftRightLogical(i, one));
  auto unit = [&](Value high, Value low) {
    Value wide = b.Or(b.ShiftLeft(b.Convert(high, DType::kUInt64), b.ConstantInt(DType::kUInt64, 32, {n})),
                      b.Convert(low, DType::kUInt64));
    Value top = b.Convert(b.ShiftRightLogical(wide, b.ConstantInt(DType::kUInt64, 12, {n})), DType::kFloat64);
    return AddC(b, Mul(b, top, std::ldexp(1.0, -52)), std::ldexp(1.0, -53));
  };
  Value radius = b.Sqrt(Mul(b, b.Log(unit(words[0], words[1])), -2.0));
  Value angle = Mul(b, unit(words[2], words[3]), turn);
  Value odd = b.Compare(b.And(i, one), b.Zero(DType::kUInt64, {n}), Direction::kNe);
  return b.Multiply(radius, b.Select(odd, b.Sine(angle), b.Cosine(angle)));
}

Value ComplexNormals(Builder& b, Value state, int64_t n, DType dtype) {
  const DType real = RealOf(dtype);
  auto [w0, w1] = PhiloxPairs(b, state, n);
  Value u = Mul(b, AddC(b, b.Convert(w0, real), 0.5), std::ldexp(1.0, -32));
  Value angle = Mul(b, b.Convert(w1, real), 2 * std::numbers::pi * std::ldexp(1.0, -32));
  Value radius = b.Sqrt(b.Negate(b.Log(u)));  // each part has variance 1/2
  return b.Complex(b.Multiply(radius, b.Cosine(angle)), b.Multiply(radius, b.Sine(angle)));
}

// self, mean, std
Values Normal(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  const int64_t n = self.numel();
  if (IsComplex(self.dtype())) {
    Value z = ComplexNormals(b, a.rng_state(), n, self.dtype());
    Value x =
        b.Add(b.Multiply(z, Spread(b, a.scalar(b, 2, self.dtype()), n)), Spread(b, a.scalar(b, 1, self.dtype()), n));
    return {b.Reshape(x, self.dims())};
  }
  CheckFloat(self, "normal_");
  const DType draw = DrawType(self.dtype());
  Value z = Normals(b, a.rng_state(), n, draw);
  Value x = b.Add(b.Multiply(z, Spread(b, a.scalar(b, 2, draw), n)), Spread(b, a.scalar(b, 1, draw), n));
  return {Shaped(b, x, self.dtype(), self.dims())};
}

Values NormalOf(Builder& b, const Args& a, Value mean, Value deviation, DType dtype) {
  const DType draw = DrawType(dtype);
  const Dims dims = BroadcastShapes({mean.dims(), deviation.dims()});
  Value z = b.Reshape(Normals(b, a.rng_state(), Product(dims), draw), dims);
  Value x =
      b.Add(b.Multiply(z, b.BroadcastTo(Cast(b, deviation, draw), dims)), b.BroadcastTo(Cast(b, mean, draw), dims));
  return {Cast(b, x, dtype)};
}

Values NormalTensorFloat(Builder& b, const Args& a) {
  Value mean = a.tensor(0);
  return NormalOf(b, a, mean, a.scalar(b, 1, DrawType(mean.dtype())), mean.dtype());
}
Values NormalFloatTensor(Builder& b, const Args& a) {
  Value deviation = a.tensor(1);
  return NormalOf(b, a, a.scalar(b, 0, DrawType(deviation.dtype())), deviation, deviation.dtype());
}
Values NormalTensorTensor(Builder& b, const Args& a) {
  return NormalOf(b, a, a.tensor(0), a.tensor(1), PromoteTypes(a.tensor(0).dtype(), a.tensor(1).dtype()));
}

// base + word64 % range; range 0 stands for 2^64
Values Integers(Builder& b, const Args& a, int64_t base, uint64_t range) {
  Value self = a.tensor(0);
  const int64_t n = self.numel();
  auto [low, high] = PhiloxPairs(b, a.rng_state(), n);
  Value wide = b.Or(b.ShiftLeft(b.Convert(high, DType::kUInt64), b.ConstantInt(DType::kUInt64, 32, {n})),
                    b.Convert(low, DType::kUInt64));
  if (range != 0) wide = b.Remainder(wide, b.ConstantInt(DType::kUInt64, static_cast<int64_t>(range), {n}));
  if (self.dtype() == DType::kUInt64) {
    return {b.Reshape(b.Add(wide, b.ConstantInt(DType::kUInt64, base, {n})), self.dims())};
  }
  Value x = b.Add(b.BitcastConvert(wide, DType::kInt64), b.ConstantInt(DType::kInt64, base, {n}));
  return {Shaped(b, x, self.dtype(), self.dims())};
}

// The largest number that random_() may give: the dtype's own for integers, 2^digits for floats.
uint64_t LargestRandom(DType dtype) {
  if (IsBool(dtype)) return 1;
  if (IsFloat(dtype)) return uint64_t{1} << Digits(dtype);
  const int bits = BitWidth(dtype) - (IsSignedInt(dtype) ? 1 : 0);
  return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

Values RandomAny(Builder& b, const Args& a) { return Integers(b, a, 0, LargestRandom(a.tensor(0).dtype()) + 1); }

// self, to
Values RandomTo(Builder& b, const Args& a) {
  const int64_t to = a.integer(1);
  Check(to > 0, "random_ expects 'from' to be less than 'to', but got from=0 >= to=", to);
  return Integers(b, a, 0, static_cast<uint64_t>(to));
}

// self, from, to (none: up to the largest)
Values RandomFrom(Builder& b, const Args& a) {
  const int64_t from = a.integer(1);
  if (a.has(2)) {
    const int64_t to = a.integer(2);
    Check(from < to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", to);
    return Integers(b, a, from, static_cast<uint64_t>(to) - static_cast<uint64_t>(from));
  }
  return Integers(b, a, from, LargestRandom(a.tensor(0).dtype()) - static_cast<uint64_t>(from) + 1);
}

Value Coins(Builder& b, Value state, Value p) {  // p: any dims; true with probability p
  const DType draw = DrawType(p.dtype());
  const int64_t n = p.numel();
  return b.Compare(Unit(b, state, n, draw), b.Reshape(Cast(b, p, draw), {n}), Direction::kLt);
}

Values Bernoulli(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  CheckFloat(self, "bernoulli");
  return {Shaped(b, Coins(b, a.rng_state(), self), self.dtype(), self.dims())};
}
Values BernoulliP(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  Value p = b.BroadcastInDim(a.scalar(b, 1, DrawType(self.dtype())), self.dims(), {});
  return {Shaped(b, Coins(b, a.rng_state(), p), self.dtype(), self.dims())};
}
Values BernoulliTensor(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  return {Shaped(b, Coins(b, a.rng_state(), b.BroadcastTo(a.tensor(1), self.dims())), self.dtype(), self.dims())};
}

// self, lower, upper -> (output, slope of each element)
Values RRelu(Builder& b, const Args& a) {
  Value self = a.tensor(0), x = ToCompute(b, self);
  const int64_t n = x.numel();
  const DType draw = DrawType(self.dtype());
  Value low = a.scalar(b, 1, draw), high = a.scalar(b, 2, draw);
  Value slope =
      b.Add(b.Multiply(Unit(b, a.rng_state(), n, draw), Spread(b, b.Subtract(high, low), n)), Spread(b, low, n));
  Value negative = b.Compare(x, Full(b, x, 0), Direction::kLe);
  slope = b.Select(negative, b.Reshape(Cast(b, slope, x.dtype()), x.dims()), Full(b, x, 1));
  return {Cast(b, b.Multiply(x, slope), self.dtype()), Cast(b, slope, self.dtype())};
}

// input, p, train -> (output, mask)
Values NativeDropout(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  if (a.has(2) && !a.flag(2)) return {x, b.One(DType::kBool, x.dims())};
  const DType draw = DrawType(x.dtype());
  Value keep = b.Subtract(b.One(draw), a.scalar(b, 1, draw));
  Value mask = b.Reshape(Coins(b, a.rng_state(), b.BroadcastInDim(keep, x.dims(), {})), x.dims());
  Value none = b.Compare(keep, b.Zero(draw), Direction::kEq);
  Value scale = b.Select(none, b.Zero(draw), b.Divide(b.One(draw), keep));
  Value wide = ToCompute(b, x);
  Value factor =
      b.Select(mask, b.BroadcastInDim(Cast(b, scale, wide.dtype()), x.dims(), {}), b.Zero(wide.dtype(), x.dims()));
  return {b.Convert(b.Multiply(wide, factor), x.dtype()), mask};
}

// grad_output, mask, scale
Values NativeDropoutBackward(Builder& b, const Args& a) {
  Value grad = a.tensor(0);
  const DType dtype = FloatResult(grad.dtype());
  Value wide = ToCompute(b, Cast(b, grad, dtype));
  Value scale = b.BroadcastInDim(a.scalar(b, 2, wide.dtype()), grad.dims(), {});
  Value factor = b.Multiply(Cast(b, a.tensor(1), wide.dtype()), scale);
  return {b.Convert(b.Multiply(wide, factor), dtype)};
}

// Standard exponentials, flat, never zero.
Value Exponentials(Builder& b, Value state, int64_t n, DType draw) {
  const double least =
      (draw == DType::kFloat64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon()) / 2;
  Value x = b.Negate(b.Log(OpenUnit(b, state, n, draw)));
  return b.Maximum(x, b.Constant(draw, least, {n}));
}

// self, lambd
Values Exponential(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  CheckFloat(self, "exponential_");
  const int64_t n = self.numel();
  const DType draw = DrawType(self.dtype());
  Value x = b.Divide(Exponentials(b, a.rng_state(), n, draw), Spread(b, a.scalar(b, 1, draw), n));
  return {Shaped(b, x, self.dtype(), self.dims())};
}

// self, p
Values Geometric(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  const int64_t n = self.numel();
  const DType draw = DrawType(self.dtype());
  Value rate = b.Log1p(b.Negate(a.scalar(b, 1, draw)));
  Value x = b.Ceil(b.Divide(b.Log(OpenUnit(b, a.rng_state(), n, draw)), Spread(b, rate, n)));
  return {Shaped(b, b.Maximum(x, b.One(draw, {n})), self.dtype(), self.dims())};
}

// self, median, sigma
Values Cauchy(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  CheckFloat(self, "cauchy_");
  const int64_t n = self.numel();
  const DType draw = DrawType(self.dtype());
  const double eps =
      draw == DType::kFloat64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  Value u = b.Clamp(b.Constant(draw, eps), OpenUnit(b, a.rng_state(), n, draw), b.Constant(draw, 1 - eps));
  Value x = b.Tan(Mul(b, AddC(b, u, -0.5), std::numbers::pi));
  x = b.Add(b.Multiply(x, Spread(b, a.scalar(b, 2, draw), n)), Spread(b, a.scalar(b, 1, draw), n));
  return {Shaped(b, x, self.dtype(), self.dims())};
}

// self, mean, std
Values LogNormal(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  CheckFloat(self, "log_normal_");
  const int64_t n = self.numel();
  const DType draw = DrawType(self.dtype());
  Value z = Normals(b, a.rng_state(), n, draw);
  Value x = b.Add(b.Multiply(z, Spread(b, a.scalar(b, 2, draw), n)), Spread(b, a.scalar(b, 1, draw), n));
  return {Shaped(b, b.Exp(x), self.dtype(), self.dims())};
}

// self (weights, [categories] or [rows, categories]), num_samples, replacement -> int64
Values Multinomial(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  const int64_t samples = a.integer(1), categories = self.dim(-1);
  const int64_t rows = self.rank() == 2 ? self.dim(0) : 1;
  const DType draw = DrawType(self.dtype());
  Value weights = b.Reshape(Cast(b, self, draw), {rows, categories});
  Dims out = self.dims();
  out.back() = samples;
  if (!a.flag(2) || samples == 1) {
    // The first of independent exponential clocks with rates `weights`; a rate of zero never rings.
    Value clock = b.Reshape(Exponentials(b, a.rng_state(), rows * categories, draw), {rows, categories});
    Value race = b.Divide(weights, clock);
    Value impossible = b.Compare(weights, b.Zero(draw, weights.dims()), Direction::kLe);
    race = b.Select(impossible, b.MinOf(draw, weights.dims()), race);
    if (samples == 1) return {b.Reshape(ArgReduce(b, race, 1, true).second, out)};
    Values order = b.Sort({race, b.Iota(DType::kInt32, weights.dims(), 1)}, 1, true,
                          [&](const Values& v) { return Values{b.Compare(v[0], v[1], Direction::kGt)}; });
    return {b.Reshape(b.Convert(b.SliceDim(order[1], 1, 0, samples), DType::kInt64), out)};
  }
  // Shares of 2^38, summed exactly: a category with weight zero keeps an empty interval.
  const double whole = std::ldexp(1.0, 38);
  Value wide = b.Convert(weights, DType::kFloat64);
  Value total = KeepDims(b, Sum(b, wide, {1}), weights.dims(), {1});
  Value share = b.Divide(wide, b.BroadcastTo(total, weights.dims()));
  Value positive = b.Compare(wide, b.Zero(DType::kFloat64, weights.dims()), Direction::kGt);
  Value width = b.Convert(Mul(b, share, whole), DType::kInt64);
  width =
      b.Select(positive, b.Maximum(width, b.One(DType::kInt64, weights.dims())), b.Zero(DType::kInt64, weights.dims()));
  Value ends = RunningSum(b, width);
  Value end = b.BroadcastTo(b.SliceDim(ends, 1, categories - 1, categories), {rows, samples});
  Value u = b.Reshape(UnitDigits(b, a.rng_state(), rows * samples, 53), {rows, samples});
  Value point = b.Convert(b.Floor(b.Multiply(u, b.Convert(end, DType::kFloat64))), DType::kInt64);
  point = b.Minimum(point, b.Subtract(end, b.One(DType::kInt64, end.dims())));
  return {b.Reshape(SearchSorted(b, ends, point, true), out)};
}

// n, dtype: the order of n random 64-bit keys
Values RandPerm(Builder& b, const Args& a) {
  const int64_t n = a.integer(0);
  const DType dtype = a.dtype_or(1, DType::kInt64);
  if (n == 0) return {b.Zero(dtype, {0})};
  auto [low, high] = PhiloxPairs(b, a.rng_state(), n);
  Value keys = b.Or(b.ShiftLeft(b.Convert(high, DType::kUInt64), b.ConstantInt(DType::kUInt64, 32, {n})),
                    b.Convert(low, DType::kUInt64));
  Values sorted = b.Sort({keys, b.Iota(DType::kInt64, {n}, 0)}, 0, true,
                         [&](const Values& v) { return Values{b.Compare(v[0], v[1], Direction::kLt)}; });
  return {Cast(b, sorted[1], dtype)};
}

}  // namespace

std::span<const OpRow> RandomRows() {
  static const OpRow rows[] = {
      {"uniform", Uniform, kRandom},
      {"normal_functional", Normal, kRandom},
      {"normal.Tensor_float", NormalTensorFloat, kRandom},
      {"normal.float_Tensor", NormalFloatTensor, kRandom},
      {"normal.Tensor_Tensor", NormalTensorTensor, kRandom},
      {"random", RandomAny, kRandom},
      {"random.to", RandomTo, kRandom},
      {"random.from", RandomFrom, kRandom},
      {"bernoulli", Bernoulli, kRandom},
      {"bernoulli.p", BernoulliP, kRandom},
      {"bernoulli.Tensor", BernoulliTensor, kRandom},
      {"tpu::rrelu", RRelu, kRandom | kInternal},
      {"native_dropout", NativeDropout, kRandom},
      {"native_dropout_backward", NativeDropoutBackward},
      {"exponential", Exponential, kRandom},
      {"geometric", Geometric, kRandom},
      {"cauchy", Cauchy, kRandom},
      {"log_normal", LogNormal, kRandom},
      {"multinomial", Multinomial, kRandom},
      {"tpu::randperm", RandPerm, kRandom | kInternal},
  };
  return rows;
}

}  // namespace torch_tpu
