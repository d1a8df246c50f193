// Fractional max pools: windows of one size at starts that a random number per plane spreads over the input.
#include <array>

#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"
#include "lowering/pooling.h"

namespace torch_tpu {

namespace {

// int64 [planes, out]: starts of the windows of one dim.
Value Starts(Builder& b, Value sample, int64_t size, int64_t out, int64_t kernel) {
  const int64_t planes = sample.dim(0);
  const Dims dims = {planes, out};
  Value last = b.ConstantInt(DType::kInt64, size - kernel, dims);
  if (out == 1) return last;
  const DType dtype = sample.dtype();
  Value alpha =
      b.Divide(b.Constant(dtype, static_cast<double>(size - kernel)), b.Constant(dtype, static_cast<double>(out - 1)));
  Value u = b.BroadcastInDim(sample, dims, {0}), wide = b.BroadcastTo(alpha, dims);
  auto floor = [&](Value x) { return b.Convert(b.Multiply(x, wide), DType::kInt64); };
  Value start = b.Subtract(floor(b.Add(b.Iota(dtype, dims, 1), u)), floor(u));
  Value at_end = b.Compare(b.Iota(DType::kInt64, dims, 1), b.ConstantInt(DType::kInt64, out - 1, dims), Direction::kEq);
  return b.Select(at_end, last, start);
}

// self, kernel_size, output_size, random_samples [n, c, spatial] -> (values, positions)
Values Forward(Builder& b, const Args& a, int spatial) {
  Value self = a.tensor(0), x = ToCompute(b, self), samples = ToCompute(b, a.tensor(3));
  const Dims &kernel = a.ints(1), &size = a.ints(2);
  Check(self.rank() == spatial + 1 || self.rank() == spatial + 2, "fractional_max_pool", spatial, "d: expected ",
        spatial + 1, "D or ", spatial + 2, "D input, got ", ToString(self.dims()));
  Dims out(self.dims().begin(), self.dims().end() - spatial), in(self.dims().end() - spatial, self.dims().end());
  const int64_t planes = Product(out), plane = Product(in), places = Product(size);
  out.insert(out.end(), size.begin(), size.end());
  if (planes * places == 0) return {b.Zero(self.dtype(), out), b.Zero(DType::kInt64, out)};
  samples = b.Reshape(samples, {planes, spatial});
  // Position of each window's first element; PyTorch's samples go width, height in 2-d, and depth, height, width in
  // 3-d.
  Dims windows = {planes};
  windows.insert(windows.end(), size.begin(), size.end());
  const Dims strides = ContiguousStrides(in);
  Value corner = b.Zero(DType::kInt64, windows);
  for (int i = 0; i < spatial; ++i) {
    Check(size[i] + kernel[i] - 1 <= in[i], "fractional_max_pool", spatial, "d: expected pool size ", kernel[i],
          " to fit into input size ", in[i]);
    const int column = spatial == 2 ? 1 - i : i;
    Value sample = b.Reshape(b.SliceDim(samples, 1, column, column + 1), {planes});
    Value start = b.Multiply(Starts(b, sample, in[i], size[i], kernel[i]),
                             b.ConstantInt(DType::kInt64, strides[i], {planes, size[i]}));
    corner = b.Add(corner, b.BroadcastInDim(start, windows, {0, i + 1}));
  }
  corner = b.Reshape(corner, {planes, places});
  x = b.Reshape(x, {planes, plane});
  BestSoFar best;
  for (int64_t k = 0; k < Product(kernel); ++k) {
    int64_t rest = k, offset = 0;
    for (int i = spatial; i-- > 0;) {
      offset += rest % kernel[i] * strides[i];
      rest /= kernel[i];
    }
    Value at = b.Add(corner, b.ConstantInt(DType::kInt64, offset, corner.dims()));
    best.Offer(b, TakeAlong(b, x, at, 1, IndexTrust::kTrusted), at);
  }
  return {b.Reshape(b.Convert(best.value, self.dtype()), out), b.Reshape(best.position, out)};
}

// grad_output, self, kernel_size, output_size, indices
Values Backward(Builder& b, const Args& a, int spatial) {
  return {MaxPoolBackward(b, a.tensor(0), a.tensor(4), a.tensor(1), spatial, {})};
}

Values Forward2d(Builder& b, const Args& a) { return Forward(b, a, 2); }
Values Forward3d(Builder& b, const Args& a) { return Forward(b, a, 3); }
Values Backward2d(Builder& b, const Args& a) { return Backward(b, a, 2); }
Values Backward3d(Builder& b, const Args& a) { return Backward(b, a, 3); }

}  // namespace

std::vector<OpRow> FractionalPoolRows() {
  return {
      {"fractional_max_pool2d", Forward2d},
      {"fractional_max_pool3d", Forward3d},
      {"fractional_max_pool2d_backward", Backward2d},
      {"fractional_max_pool3d_backward", Backward3d},
  };
}

}  // namespace torch_tpu
