// histogram and histogramdd: elements counted between edges. The last bin holds its right edge.
#include <algorithm>

#include "base/error.h"
#include "lowering/counting.h"
#include "lowering/indexing.h"
#include "lowering/math.h"
#include "lowering/shape.h"

namespace torch_tpu {

namespace {

// bins + 1 edges from the range, or from the least to the largest of x (1-d).
Value Edges(Builder& b, Value x, int64_t bins, double low, double high, bool given) {
  const DType dtype = x.dtype();
  Value left = b.Constant(dtype, low), right = b.Constant(dtype, high);
  if (!given && x.numel() > 0) {
    left = ReduceMin(b, x, {0});
    right = ReduceMax(b, x, {0});
  } else if (!given) {
    left = b.Zero(dtype);
    right = b.One(dtype);
  }
  Value same = b.Compare(left, right, Direction::kEq);
  Value half = b.Constant(dtype, 0.5);
  Value first = b.Select(same, b.Subtract(left, half), left), last = b.Select(same, b.Add(right, half), right);
  // As linspace: from the nearer end.
  const int64_t count = bins + 1;
  const Dims dims = {count};
  Value step = b.BroadcastTo(b.Divide(b.Subtract(last, first), b.ConstantInt(dtype, bins)), dims);
  Value i = b.Iota(dtype, dims, 0);
  Value up = b.Add(b.BroadcastTo(first, dims), b.Multiply(step, i));
  Value down = b.Subtract(b.BroadcastTo(last, dims), b.Multiply(step, b.Subtract(b.ConstantInt(dtype, bins, dims), i)));
  return b.Select(b.Compare(i, b.ConstantInt(dtype, count / 2, dims), Direction::kLt), up, down);
}

// x [n] -> int64 [n]: its bin, or `bins` when it is in none.
Value BinOf(Builder& b, Value x, Value edges) {
  const int64_t bins = edges.numel() - 1;
  auto edge = [&](int64_t i) { return b.BroadcastInDim(b.SliceDim(edges, 0, i, i + 1), x.dims(), {0}); };
  auto index = [&](int64_t i) { return b.ConstantInt(DType::kInt64, i, x.dims()); };
  Value bin = b.Subtract(SearchSorted(b, edges, x, true), index(1));
  bin = b.Select(b.Compare(x, edge(bins), Direction::kEq), index(bins - 1), bin);
  Value inside = b.And(b.Compare(x, edge(0), Direction::kGe), b.Compare(x, edge(bins), Direction::kLe));
  return b.Select(inside, bin, index(bins));
}

// points [n, d], edges per dim, weights [n] or absent.
Value Histogram(Builder& b, Value points, const Values& edges, Value weights, bool density) {
  const int64_t n = points.dim(0), d = static_cast<int64_t>(edges.size());
  const DType dtype = points.dtype();
  Dims out;
  for (const Value& e : edges) out.push_back(e.numel() - 1);
  const int64_t total = Product(out);
  Value hist = b.Zero(dtype, {total});
  if (n > 0 && total > 0) {
    Value flat = b.Zero(DType::kInt64, {n}), inside = b.ConstantInt(DType::kBool, 1, {n});
    for (int64_t i = 0; i < d; ++i) {
      Value column = b.Reshape(b.SliceDim(points, 1, i, i + 1), {n}), bin = BinOf(b, column, edges[i]);
      inside = b.And(inside, b.Compare(bin, b.ConstantInt(DType::kInt64, out[i], {n}), Direction::kLt));
      flat = b.Add(b.Multiply(flat, b.ConstantInt(DType::kInt64, out[i], {n})), bin);
    }
    flat = b.Select(inside, flat, b.ConstantInt(DType::kInt64, total, {n}));  // past the end: dropped
    Value one = weights ? b.Reshape(Cast(b, weights, dtype), {n}) : b.One(dtype, {n});
    hist = PutDim(b, hist, flat, one, 0, CombineAdd);
  }
  hist = b.Reshape(hist, out);
  if (!density) return hist;
  Dims all;
  for (int64_t i = 0; i < d; ++i) all.push_back(i);
  hist = b.Divide(hist, b.BroadcastTo(Sum(b, hist, all), out));
  for (int64_t i = 0; i < d; ++i) {
    Value width = b.Subtract(b.SliceDim(edges[i], 0, 1, out[i] + 1), b.SliceDim(edges[i], 0, 0, out[i]));
    hist = b.Divide(hist, b.BroadcastInDim(width, out, {i}));
  }
  return hist;
}

Value Points(Builder& b, Value x, int64_t d) { return b.Reshape(x, {x.numel() / std::max<int64_t>(d, 1), d}); }

// self, bins, range, weight, density -> hist, edges
Values HistogramCount(Builder& b, const Args& a) {
  Value x = a.tensor(0), flat = b.Reshape(x, {x.numel()});
  const bool given = a.has(2);
  Value edges = Edges(b, flat, a.integer(1), given ? a.floats(2)[0] : 0, given ? a.floats(2)[1] : 0, given);
  return {Histogram(b, Points(b, x, 1), {edges}, a.tensor_or_absent(3), a.flag(4)), edges};
}

// self, bins, weight, density -> hist, edges
Values HistogramEdges(Builder& b, const Args& a) {
  Value edges = a.tensor(1);
  return {Histogram(b, Points(b, a.tensor(0), 1), {edges}, a.tensor_or_absent(2), a.flag(3)), edges};
}

// x (1-d), bins, range -> edges
Values EdgesOf(Builder& b, const Args& a) {
  const bool given = a.has(2);
  return {Edges(b, a.tensor(0), a.integer(1), given ? a.floats(2)[0] : 0, given ? a.floats(2)[1] : 0, given)};
}

// self [.., d], bins, range, weight, density
Values HistogramddCount(Builder& b, const Args& a) {
  const Dims& bins = a.ints(1);
  const int64_t d = static_cast<int64_t>(bins.size());
  Value points = Points(b, a.tensor(0), d);
  Values edges;
  for (int64_t i = 0; i < d; ++i) {
    Value column = b.Reshape(b.SliceDim(points, 1, i, i + 1), {points.dim(0)});
    const bool given = a.has(2);
    edges.push_back(
        Edges(b, column, bins[i], given ? a.floats(2)[2 * i] : 0, given ? a.floats(2)[2 * i + 1] : 0, given));
  }
  return {Histogram(b, points, edges, a.tensor_or_absent(3), a.flag(4))};
}

// x (1-d, not negative), weights, size
Values Bincount(Builder& b, const Args& a) {
  Value index = ToIndex(b, a.tensor(0)), weights = a.tensor_or_absent(1);
  const int64_t size = a.integer(2);
  if (!weights) weights = b.One(DType::kInt64, index.dims());
  return {PutDim(b, b.Zero(weights.dtype(), {size}), index, weights, 0, CombineAdd)};
}

// self [.., d], bins (edges), weight, density
Values HistogramddEdges(Builder& b, const Args& a) {
  const Values edges = a.tensors(1);
  return {Histogram(b, Points(b, a.tensor(0), static_cast<int64_t>(edges.size())), edges, a.tensor_or_absent(2),
                    a.flag(3))};
}

}  // namespace

std::vector<OpRow> HistogramRows() {
  return {
      {"histogram.bin_ct", HistogramCount},
      {"histogram.bins_tensor", HistogramEdges},
      {"_histogramdd_from_bin_cts", HistogramddCount},
      {"_histogramdd_from_bin_tensors", HistogramddEdges},
      {"tpu::histogram_edges", EdgesOf, kInternal},
      {"tpu::bincount", Bincount, kInternal},
  };
}

}  // namespace torch_tpu
