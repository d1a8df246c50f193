// Fourier transforms: one-dimensional ones, dim by dim.
#include <cmath>

#include "base/error.h"
#include "lowering/math.h"
#include "lowering/table.h"

namespace torch_tpu {
namespace {

// PyTorch's fft_norm_mode.
double Scale(int64_t normalization, double count) {
  if (normalization == 1) return 1 / std::sqrt(count);
  return normalization == 2 ? 1 / count : 1;
}

// The transform of `kind` along one dim; `length` is the signal's. Inverse ones come without their 1 / length.
Value Along(Builder& b, Value x, FftKind kind, int64_t dim, int64_t length) {
  Dims order;
  for (int64_t i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order[dim], order.back());
  Value y = b.Fft(b.Transpose(x, order), kind, {length});
  if (kind == FftKind::kIfft || kind == FftKind::kIrfft) y = Mul(b, y, static_cast<double>(length));
  return b.Transpose(y, order);
}

double Count(const Value& x, const Dims& dims) {
  double count = 1;
  for (int64_t d : dims) count *= static_cast<double>(x.dim(d));
  return count;
}

Dims Wrapped(const Args& a, const Value& x) {
  Dims dims = a.ints(1);
  for (int64_t& d : dims) d = WrapDim(d, x.rank());
  return dims;
}

Value Scaled(Builder& b, Value x, double scale) { return scale == 1 ? x : Mul(b, x, scale); }

// self, dim, normalization, forward
Values ComplexToComplex(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims dims = Wrapped(a, x);
  if (x.numel() == 0) return {x};
  Value y = x;
  for (int64_t d : dims) y = Along(b, y, a.flag(3) ? FftKind::kFft : FftKind::kIfft, d, x.dim(d));
  return {Scaled(b, y, Scale(a.integer(2), Count(x, dims)))};
}

// self, dim, normalization, onesided
Values RealToComplex(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims dims = Wrapped(a, x);
  Check(!dims.empty(), "_fft_r2c: expected at least one dim");
  const bool onesided = a.flag(3);
  const DType complex = ComplexOf(x.dtype());
  if (x.numel() == 0) {
    Dims out = x.dims();
    if (onesided) out[dims.back()] = out[dims.back()] / 2 + 1;
    return {b.Zero(complex, out)};
  }
  const int64_t last = dims.back();
  Value y = onesided ? Along(b, x, FftKind::kRfft, last, x.dim(last))
                     : Along(b, b.Convert(x, complex), FftKind::kFft, last, x.dim(last));
  for (size_t i = 0; i + 1 < dims.size(); ++i) y = Along(b, y, FftKind::kFft, dims[i], x.dim(dims[i]));
  return {Scaled(b, y, Scale(a.integer(2), Count(x, dims)))};
}

// self, dim, normalization, last_dim_size
Values ComplexToReal(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims dims = Wrapped(a, x);
  Check(!dims.empty(), "_fft_c2r: expected at least one dim");
  const int64_t last = dims.back(), length = a.integer(3);
  Dims out = x.dims();
  out[last] = length;
  if (x.numel() == 0) return {b.Zero(RealOf(x.dtype()), out)};
  Value y = x;
  for (size_t i = 0; i + 1 < dims.size(); ++i) y = Along(b, y, FftKind::kIfft, dims[i], x.dim(dims[i]));
  y = Along(b, b.SliceDim(y, last, 0, length / 2 + 1), FftKind::kIrfft, last, length);
  return {Scaled(b, y, Scale(a.integer(2), Count(y, dims)))};
}

constexpr OpRow kRows[] = {
    {"_fft_c2c", ComplexToComplex, kLayoutOfCpu},
    {"_fft_r2c", RealToComplex, kLayoutOfCpu},
    {"_fft_c2r", ComplexToReal, kLayoutOfCpu},
};

}  // namespace

std::span<const OpRow> FftRows() { return kRows; }

}  // namespace torch_tpu
