// Membership and counts: isin, histc, and the places of max_unpool.
#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "lowering/counting.h"
#include "lowering/elementwise.h"
#include "lowering/indexing.h"

namespace torch_tpu {
namespace {

// elements, test_elements, assume_unique, invert. Each may be a number.
Values IsIn(Builder& b, const Args& a) {
  const DType dtype = ResultType(a, {0, 1});
  auto operand = [&](size_t i) {
    return a.kind(i) == Arg::Kind::kTensor ? Cast(b, a.tensor(i), dtype) : a.scalar(b, i, dtype);
  };
  Value x = operand(0), tests = operand(1);
  const int64_t count = tests.numel();
  Dims wide = x.dims(), order;
  for (int64_t i = 0; i < x.rank(); ++i) order.push_back(i);
  wide.push_back(count);
  Value left = b.BroadcastInDim(x, wide, order), right = b.BroadcastInDim(b.Reshape(tests, {count}), wide, {x.rank()});
  Value found = b.Reduce(b.Compare(left, right, Direction::kEq), Builder::Reducer::kOr, {x.rank()});
  return {a.flag(3) ? b.Not(found) : found};
}

// self, bins, min, max. Integers, which the CPU refuses and other accelerators take, stay integers.
Values Histc(Builder& b, const Args& a) {
  const int64_t bins = a.integer(1);
  Check(bins > 0, "torch.histc(): bins must be > 0");
  Value given = a.tensor(0);
  const DType dtype = given.dtype();
  Check(IsFloat(dtype) || IsInteger(dtype), "histc: expected real numbers, got ", Name(dtype));
  if (given.numel() == 0) return {b.Zero(dtype, {bins})};
  Value x = b.Reshape(IsFloat(dtype) ? ToCompute(b, given) : b.Convert(given, DType::kInt64), {given.numel()});
  Value low = Number(b, a, 2, x.dtype()), high = Number(b, a, 3, x.dtype());
  Value automatic = b.Compare(low, high, Direction::kEq);
  low = b.Select(automatic, ReduceMin(b, x, {0}), low);
  high = b.Select(automatic, ReduceMax(b, x, {0}), high);
  Value single = b.Compare(low, high, Direction::kEq);
  low = b.Select(single, AddC(b, low, -1), low);
  high = b.Select(single, AddC(b, high, 1), high);
  Value wide_low = b.BroadcastTo(low, x.dims()), wide_high = b.BroadcastTo(high, x.dims());
  Value position =
      b.Divide(Mul(b, b.Subtract(x, wide_low), static_cast<double>(bins)), b.Subtract(wide_high, wide_low));
  Value inside = b.And(b.Compare(x, wide_low, Direction::kGe), b.Compare(x, wide_high, Direction::kLe));
  Value at = b.Select(inside, position, Full(b, position, 0));
  if (IsFloat(dtype)) at = b.Convert(b.Floor(at), DType::kInt64);
  at = b.Minimum(at, b.ConstantInt(DType::kInt64, bins - 1, at.dims()));
  at = b.Select(inside, at, b.ConstantInt(DType::kInt64, bins, at.dims()));  // past the end: dropped
  return {Cast(b, PutDim(b, b.Zero(x.dtype(), {bins}), at, Full(b, x, 1), 0, CombineAdd), dtype)};
}

// self, indices, output_size: each element goes to its flat place in the output's plane.
Values Unpool(Builder& b, const Args& a) {
  Value x = a.tensor(0), indices = a.tensor(1);
  const Dims& size = a.ints(2);
  const int64_t spatial = static_cast<int64_t>(size.size());
  Dims lead(x.dims().begin(), x.dims().end() - spatial), out = lead;
  int64_t rows = 1, plane = 1, inner = 1;
  for (int64_t d : lead) rows *= d;
  for (int64_t i = 0; i < spatial; ++i) {
    out.push_back(size[i]);
    plane *= size[i];
    inner *= x.dim(x.rank() - spatial + i);
  }
  if (x.numel() == 0) return {b.Zero(x.dtype(), out)};
  Value flat = PutAlong(b, b.Zero(x.dtype(), {rows, plane}), b.Reshape(indices, {rows, inner}),
                        b.Reshape(x, {rows, inner}), 1, CombineSet);
  return {b.Reshape(flat, out)};
}

// The power of two apart: x = mantissa 2^exponent with mantissa in [1/2, 1).
Values Frexp(Builder& b, const Args& a) {
  Value given = a.tensor(0);
  Check(IsFloat(given.dtype()), "torch.frexp() only supports floating-point dtypes");
  Value x = ToCompute(b, given);
  const bool wide = x.dtype() == DType::kFloat64;
  const DType integer = wide ? DType::kInt64 : DType::kInt32;
  const int64_t digits = wide ? 52 : 23, bias = wide ? 1022 : 126, field = wide ? 0x7ff : 0xff;
  auto whole = [&](int64_t v) { return b.ConstantInt(integer, v, x.dims()); };
  // By bits alone: plugins may take subnormal numbers for zero in arithmetic.
  Value bits = b.BitcastConvert(x, integer);
  Value raw = b.And(b.ShiftRightLogical(bits, whole(digits)), whole(field));
  Value fraction = b.And(bits, whole((int64_t{1} << digits) - 1));
  Value small = b.Compare(raw, whole(0), Direction::kEq);
  Value shift = b.Subtract(b.CountLeadingZeros(fraction), whole(wide ? 11 : 8));
  Value lifted = b.And(b.ShiftLeft(fraction, b.Maximum(shift, whole(0))), whole((int64_t{1} << digits) - 1));
  fraction = b.Select(small, lifted, fraction);
  Value exponent = b.Subtract(b.Select(small, b.Subtract(whole(1), shift), raw), whole(bias));
  const int64_t sign_bit = wide ? INT64_MIN : INT32_MIN;
  Value mantissa = b.Or(b.And(bits, whole(sign_bit)), b.Or(fraction, whole(bias << digits)));
  Value zero = b.Compare(b.And(bits, whole(~sign_bit)), whole(0), Direction::kEq);
  Value plain = b.And(b.Compare(raw, whole(field), Direction::kNe), b.Not(zero));
  Value result = b.BitcastConvert(b.Select(plain, mantissa, bits), x.dtype());
  return {Cast(b, result, given.dtype()), b.Convert(b.Select(plain, exponent, whole(0)), DType::kInt32)};
}

constexpr OpRow kRows[] = {
    {"isin.Tensor_Tensor", IsIn},
    {"isin.Tensor_Scalar", IsIn},
    {"isin.Scalar_Tensor", IsIn},
    {"histc", Histc},
    {"max_unpool2d", Unpool, kLayoutOfFirst},
    {"max_unpool3d", Unpool},
    {"frexp.Tensor", Frexp},
};

}  // namespace

std::span<const OpRow> CountingRows() {
  static const std::vector<OpRow>* rows = [] {
    auto* all = new std::vector<OpRow>(std::begin(kRows), std::end(kRows));
    const std::vector<OpRow> histograms = HistogramRows();
    all->insert(all->end(), histograms.begin(), histograms.end());
    return all;
  }();
  return *rows;
}

}  // namespace torch_tpu
