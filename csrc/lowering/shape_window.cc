// Sliding windows as data: im2col, col2im, unfold_backward.
#include "base/error.h"
#include "lowering/math.h"
#include "lowering/shape.h"

namespace torch_tpu {

namespace {

struct Window2d {
  int64_t kernel[2], dilation[2], padding[2], stride[2], size[2], out[2];
};

int64_t Pick(const Dims& dims, size_t i) { return dims.size() == 1 ? dims[0] : dims[i]; }

// Arguments from `first`: kernel_size, dilation, padding, stride.
Window2d WindowOf(const Args& a, size_t first, int64_t height, int64_t width) {
  Window2d w;
  w.size[0] = height;
  w.size[1] = width;
  for (size_t i = 0; i < 2; ++i) {
    w.kernel[i] = Pick(a.ints(first), i);
    w.dilation[i] = Pick(a.ints(first + 1), i);
    w.padding[i] = Pick(a.ints(first + 2), i);
    w.stride[i] = Pick(a.ints(first + 3), i);
    w.out[i] = (w.size[i] + 2 * w.padding[i] - w.dilation[i] * (w.kernel[i] - 1) - 1) / w.stride[i] + 1;
  }
  return w;
}

// self [n, c, h, w] or [c, h, w] -> [n, c * kh * kw, l]
Values Im2Col(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const bool batched = x.rank() == 4;
  if (!batched) x = Unsqueeze(b, x, 0);
  const int64_t n = x.dim(0), c = x.dim(1);
  const Window2d w = WindowOf(a, 1, x.dim(2), x.dim(3));
  Value padded = b.Pad(x, b.Zero(x.dtype()), {0, 0, w.padding[0], w.padding[1]}, {0, 0, w.padding[0], w.padding[1]});
  Values parts;
  for (int64_t i = 0; i < w.kernel[0]; ++i) {
    Value rows =
        b.SliceDim(padded, 2, i * w.dilation[0], i * w.dilation[0] + (w.out[0] - 1) * w.stride[0] + 1, w.stride[0]);
    for (int64_t j = 0; j < w.kernel[1]; ++j) {
      Value part =
          b.SliceDim(rows, 3, j * w.dilation[1], j * w.dilation[1] + (w.out[1] - 1) * w.stride[1] + 1, w.stride[1]);
      parts.push_back(b.Reshape(part, {n, c, 1, w.out[0] * w.out[1]}));
    }
  }
  Value all = parts.size() == 1 ? parts[0] : b.Concatenate(parts, 2);
  const int64_t columns = c * w.kernel[0] * w.kernel[1], l = w.out[0] * w.out[1];
  return {b.Reshape(all, batched ? Dims{n, columns, l} : Dims{columns, l})};
}

// Puts part's entries along dim at start, start + stride, ... of a zero dim of length `size`; those outside are
// dropped.
Value Spread(Builder& b, Value part, int64_t dim, int64_t start, int64_t stride, int64_t size) {
  Dims low(part.rank(), 0), high(part.rank(), 0), interior(part.rank(), 0);
  low[dim] = start;
  interior[dim] = stride - 1;
  high[dim] = size - (start + (part.dim(dim) - 1) * stride + 1);
  return b.Pad(part, b.Zero(part.dtype()), low, high, interior);
}

// self [n, c * kh * kw, l], output_size, kernel_size, dilation, padding, stride
Values Col2Im(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const DType dtype = x.dtype();
  const bool batched = x.rank() == 3;
  if (!batched) x = Unsqueeze(b, x, 0);
  x = ToCompute(b, x);
  const Dims& size = a.ints(1);
  const Window2d w = WindowOf(a, 2, Pick(size, 0), Pick(size, 1));
  const int64_t n = x.dim(0), c = x.dim(1) / (w.kernel[0] * w.kernel[1]);
  x = b.Reshape(x, {n, c, w.kernel[0], w.kernel[1], w.out[0], w.out[1]});
  Value total;
  for (int64_t i = 0; i < w.kernel[0]; ++i) {
    Value rows;
    for (int64_t j = 0; j < w.kernel[1]; ++j) {
      Value part = b.Reshape(b.SliceDim(b.SliceDim(x, 2, i, i + 1), 3, j, j + 1), {n, c, w.out[0], w.out[1]});
      part = Spread(b, part, 3, j * w.dilation[1] - w.padding[1], w.stride[1], w.size[1]);
      rows = rows ? b.Add(rows, part) : part;
    }
    rows = Spread(b, rows, 2, i * w.dilation[0] - w.padding[0], w.stride[0], w.size[0]);
    total = total ? b.Add(total, rows) : rows;
  }
  total = b.Convert(total, dtype);
  return {batched ? total : Squeeze(b, total, 0)};
}

// grad_in [.., windows at dim, .., size], input_sizes, dim, size, step
Values UnfoldBackward(Builder& b, const Args& a) {
  Value grad = a.tensor(0);
  const Dims& sizes = a.ints(1);
  const int64_t size = a.integer(3), step = a.integer(4);
  if (sizes.empty()) return {b.Reshape(grad, {})};
  const int64_t rank = static_cast<int64_t>(sizes.size()), dim = WrapDim(a.integer(2), rank);
  Value x = ToCompute(b, grad);
  Value total;
  for (int64_t k = 0; k < size; ++k) {
    Value part = Squeeze(b, b.SliceDim(x, rank, k, k + 1), rank);
    part = Spread(b, part, dim, k, step, sizes[dim]);
    total = total ? b.Add(total, part) : part;
  }
  return {total ? b.Convert(total, grad.dtype()) : b.Zero(grad.dtype(), sizes)};
}

}  // namespace

std::vector<OpRow> WindowRows() {
  return {
      {"im2col", Im2Col},
      {"col2im", Col2Im},
      {"unfold_backward", UnfoldBackward},
  };
}

}  // namespace torch_tpu
