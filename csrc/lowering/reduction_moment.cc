// Variance and standard deviation, in two passes: the mean first, then the squared distances from it.
#include "base/error.h"
#include "lowering/reduction.h"

namespace torch_tpu {
namespace {

// (self, dim?, correction?, keepdim)
template <bool kRoot, bool kMean>
Values Moments(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const DType dtype = x.dtype();
  Check(IsFloat(dtype) || IsComplex(dtype), "std and var only support floating point and complex dtypes, got ",
        Name(dtype));
  const Dims dims = ReducedDims(a, 1, x.rank());
  const double count = static_cast<double>(CountOf(x.dims(), dims));
  Value wide = ToCompute(b, x);
  Value sum = Sum(b, wide, dims);
  Value mean = b.Divide(sum, Full(b, sum, count));
  Value distance = b.Subtract(wide, b.BroadcastTo(KeepDims(b, mean, x.dims(), dims), x.dims()));
  if (IsComplex(dtype)) distance = b.Abs(distance);
  Value squares = Sum(b, b.Multiply(distance, distance), dims);
  Value correction = a.has(2) ? a.scalar(b, 2, squares.dtype()) : b.One(squares.dtype());
  Value freedom = b.Subtract(b.Constant(squares.dtype(), count), correction);
  freedom = b.Maximum(freedom, b.Zero(squares.dtype()));  // 0 / 0 is NaN, as on CPU
  Value variance = b.Divide(squares, FullLike(b, freedom, squares));
  if (kRoot) variance = b.Sqrt(variance);
  Values results = {Kept(b, Cast(b, variance, RealOf(dtype)), x.dims(), dims, a.flag(3))};
  if (kMean) results.push_back(Kept(b, Cast(b, mean, dtype), x.dims(), dims, a.flag(3)));
  return results;
}

constexpr OpRow kRows[] = {
    {"var.correction", Moments<false, false>},
    {"std.correction", Moments<true, false>},
    {"var_mean.correction", Moments<false, true>},
    {"std_mean.correction", Moments<true, true>},
};

}  // namespace

std::span<const OpRow> MomentRows() { return kRows; }

}  // namespace torch_tpu
