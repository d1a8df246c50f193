// Least squares: the shortest x that makes |A x - B| least, by singular values. One method for all of LAPACK's drivers:
// they differ in speed and in what else they return, not in x.
#include <algorithm>

#include "base/error.h"
#include "lowering/linalg.h"
#include "lowering/math.h"

namespace torch_tpu {

namespace {

// A [.., m, n], B [.., m, k], rcond (relative to the largest singular value; negative: none) ->
// [.., max(m, n), k]: x, and below it, where m > n, what is left of B outside of A's range, with the residuals' norms;
// rank int64 [..]; singular values [.., min(m, n)]
Values LeastSquares(Builder& b, const Args& a) {
  Value x = a.tensor(0), rhs = a.tensor(1);
  const Dims batch = BatchOf(x);
  const int64_t m = x.dim(-2), n = x.dim(-1), k = rhs.dim(-1), least = std::min(m, n), most = std::max(m, n);
  const DType dtype = x.dtype(), real = RealOf(dtype);
  if (x.numel() == 0 || rhs.numel() == 0) {
    return {b.Zero(dtype, Joined(batch, {most, k})), b.Zero(DType::kInt64, batch),
            b.Zero(real, Joined(batch, {least}))};
  }
  Value flat_rhs = Flat(b, rhs);
  const int64_t count = flat_rhs.dim(0);
  const Singular svd = Svd(b, Flat(b, x), /*full=*/m > n);
  Value largest = b.BroadcastTo(b.SliceDim(svd.s, 1, 0, 1), svd.s.dims());
  Value bound = b.Multiply(largest, b.BroadcastTo(a.scalar(b, 2, real), svd.s.dims()));
  Value counts = b.Compare(svd.s, bound, Direction::kGt);
  Value inverse = b.Divide(b.One(real, svd.s.dims()), b.Select(counts, svd.s, b.One(real, svd.s.dims())));
  inverse = b.Select(counts, inverse, b.Zero(real, svd.s.dims()));
  if (IsComplex(dtype)) inverse = b.Complex(inverse, b.Zero(real, inverse.dims()));
  Value along = Product(b, Adjoint(b, svd.u), flat_rhs);  // [count, min or m, k]
  Value scaled = b.Multiply(b.Slice(along, {0, 0, 0}, {count, least, k}), DownRows(b, inverse, k));
  Value solution = Product(b, svd.v, scaled);
  if (m > n) solution = b.Concatenate({solution, b.Slice(along, {0, n, 0}, {count, m, k})}, 1);
  Value rank = b.Reduce(b.Convert(counts, DType::kInt64), Builder::Reducer::kAdd, {1});
  return {b.Reshape(solution, Joined(batch, {most, k})), b.Reshape(rank, batch),
          b.Reshape(svd.s, Joined(batch, {least}))};
}

}  // namespace

std::vector<OpRow> LeastSquaresRows() { return {{"tpu::lstsq", LeastSquares, kInternal | kColumnMajor}}; }

}  // namespace torch_tpu
