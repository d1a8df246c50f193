// Padding by constants, reflection and replication, and index maps along one dim.
#include <algorithm>

#include "base/error.h"
#include "lowering/math.h"
#include "lowering/shape.h"

namespace torch_tpu {

namespace {

// map[begin .. end) walks by `step` (-1, 0 or 1) from map[begin].
struct Run {
  int64_t begin, end, first, step;
};

std::vector<Run> Runs(const Dims& map) {
  std::vector<Run> runs;
  const int64_t n = static_cast<int64_t>(map.size());
  for (int64_t i = 0; i < n;) {
    int64_t j = i + 1, step = 1;
    if (j < n && std::abs(map[j] - map[i]) <= 1) {
      step = map[j] - map[i];
      while (j < n && map[j] - map[j - 1] == step) ++j;
    }
    runs.push_back({i, j, map[i], step});
    i = j;
  }
  return runs;
}

}  // namespace

Value MapDim(Builder& b, Value x, int64_t dim, const Dims& map) {
  Values parts;
  for (const Run& run : Runs(map)) {
    const int64_t count = run.end - run.begin;
    if (run.step == 0) {
      Dims dims = x.dims(), all;
      dims[dim] = count;
      for (int64_t i = 0; i < x.rank(); ++i) all.push_back(i);
      parts.push_back(b.BroadcastInDim(b.SliceDim(x, dim, run.first, run.first + 1), dims, all));
    } else if (run.step > 0) {
      parts.push_back(b.SliceDim(x, dim, run.first, run.first + count));
    } else {
      parts.push_back(b.Reverse(b.SliceDim(x, dim, run.first - count + 1, run.first + 1), {dim}));
    }
  }
  if (parts.empty()) return b.SliceDim(x, dim, 0, 0);
  return parts.size() == 1 ? parts[0] : b.Concatenate(parts, dim);
}

Value MapDimBackward(Builder& b, Value x, int64_t dim, const Dims& map, int64_t size) {
  Dims out = x.dims();
  out[dim] = size;
  Value total;
  for (const Run& run : Runs(map)) {
    const int64_t count = run.end - run.begin;
    Value part = b.SliceDim(x, dim, run.begin, run.end);
    int64_t start = run.first, length = count;
    if (run.step == 0) {
      part = KeepDims(b, Sum(b, part, {dim}), part.dims(), {dim});
      length = 1;
    } else if (run.step < 0) {
      part = b.Reverse(part, {dim});
      start = run.first - count + 1;
    }
    Dims low(x.rank(), 0), high(x.rank(), 0);
    low[dim] = start;
    high[dim] = size - start - length;
    part = b.Pad(part, b.Zero(x.dtype()), low, high);
    total = total ? b.Add(total, part) : part;
  }
  return total ? total : b.Zero(x.dtype(), out);
}

namespace {

// self, pad (last dim first), value
Values ConstantPad(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims& pad = a.ints(1);
  const int64_t rank = x.rank();
  Check(pad.size() % 2 == 0 && static_cast<int64_t>(pad.size()) <= 2 * rank,
        "constant_pad_nd: expected an even number of at most ", 2 * rank, " pads, got ", pad.size());
  Dims low(rank, 0), high(rank, 0);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    low[rank - 1 - i] = pad[2 * i];
    high[rank - 1 - i] = pad[2 * i + 1];
  }
  Value value = a.has(2) ? a.scalar(b, 2, x.dtype()) : b.Zero(x.dtype());
  return {b.Pad(x, value, low, high)};
}

Dims BorderMap(int64_t size, int64_t low, int64_t high, bool reflect) {
  // As PyTorch's kernels: positions in the padded row fold at its first and last inner element.
  const int64_t out_start = std::max<int64_t>(0, low), in_start = std::max<int64_t>(0, -low);
  Dims map;
  for (int64_t i = 0; i < size + low + high; ++i) {
    int64_t at = i;
    if (i < low) {
      at = reflect ? 2 * low - i : low;
    } else if (i >= size + low) {
      at = reflect ? 2 * (size + low - 1) - i : size + low - 1;
    }
    at += in_start - out_start;
    Check(at >= 0 && at < size, "padding: expected pads that stay inside of a dim of length ", size, ", got (", low,
          ", ", high, ")");
    map.push_back(at);
  }
  return map;
}

Values Border(Builder& b, const Args& a, bool reflect) {
  Value x = a.tensor(0);
  const Dims& pad = a.ints(1);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t dim = x.rank() - 1 - static_cast<int64_t>(i);
    if (pad[2 * i] == 0 && pad[2 * i + 1] == 0) continue;
    x = MapDim(b, x, dim, BorderMap(x.dim(dim), pad[2 * i], pad[2 * i + 1], reflect));
  }
  return {x};
}

// grad_output, self, padding
Values BorderBackward(Builder& b, const Args& a, bool reflect) {
  Value self = a.tensor(1);
  Value grad = ToCompute(b, a.tensor(0));
  const Dims& pad = a.ints(2);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t dim = self.rank() - 1 - static_cast<int64_t>(i);
    const int64_t size = self.dim(dim);
    grad = MapDimBackward(b, grad, dim, BorderMap(size, pad[2 * i], pad[2 * i + 1], reflect), size);
  }
  return {b.Convert(grad, a.tensor(0).dtype())};
}

Values ReflectionPad(Builder& b, const Args& a) { return Border(b, a, true); }
Values ReplicationPad(Builder& b, const Args& a) { return Border(b, a, false); }
Values ReflectionPadBackward(Builder& b, const Args& a) { return BorderBackward(b, a, true); }
Values ReplicationPadBackward(Builder& b, const Args& a) { return BorderBackward(b, a, false); }

}  // namespace

std::vector<OpRow> PadRows() {
  return {
      {"constant_pad_nd", ConstantPad},
      {"reflection_pad1d", ReflectionPad},
      {"reflection_pad2d", ReflectionPad},
      {"reflection_pad3d", ReflectionPad},
      {"replication_pad1d", ReplicationPad},
      {"replication_pad2d", ReplicationPad},
      {"replication_pad3d", ReplicationPad},
      {"reflection_pad1d_backward", ReflectionPadBackward},
      {"reflection_pad2d_backward", ReflectionPadBackward},
      {"reflection_pad3d_backward", ReflectionPadBackward},
      {"replication_pad1d_backward", ReplicationPadBackward},
      {"replication_pad2d_backward", ReplicationPadBackward},
      {"replication_pad3d_backward", ReplicationPadBackward},
  };
}

}  // namespace torch_tpu
