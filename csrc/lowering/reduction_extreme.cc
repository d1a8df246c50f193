// Largest and smallest, with NaN winning and the first position on ties.
#include "base/error.h"
#include "lowering/reduction.h"

namespace torch_tpu {
namespace {

Value Extreme(Builder& b, Value x, bool largest, const Dims& dims) {
  for (int64_t dim : dims) {
    Check(x.dim(dim) > 0, largest ? "amax" : "amin", "(): Expected reduction dim ", dim, " to have non-zero size.");
  }
  return largest ? ReduceMax(b, x, dims) : ReduceMin(b, x, dims);
}

template <bool kLargest>
Values ExtremeDims(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims dims = ReducedDims(a, 1, x.rank());
  return {Kept(b, Extreme(b, x, kLargest, dims), x.dims(), dims, a.flag(2))};
}

template <bool kLargest>
Values ExtremeAll(Builder& b, const Args& a) {
  return {Extreme(b, a.tensor(0), kLargest, WrapDims({}, a.tensor(0).rank()))};
}

template <bool kLargest>
Values ExtremeWithIndex(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims dims = WrapDims({a.integer(1)}, x.rank());
  auto [value, index] = ArgReduce(b, x, WrapDim(a.integer(1), x.rank()), kLargest);
  return {Kept(b, value, x.dims(), dims, a.flag(2)), Kept(b, index, x.dims(), dims, a.flag(2))};
}

// Without a dim, the position in the flattened tensor.
template <bool kLargest>
Values ArgExtreme(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const bool flat = !a.has(1);
  const Dims dims = flat ? WrapDims({}, x.rank()) : WrapDims({a.integer(1)}, x.rank());
  Value searched = flat && x.rank() != 1 ? b.Reshape(x, {x.numel()}) : x;
  Value index = ArgReduce(b, searched, flat ? 0 : WrapDim(a.integer(1), x.rank()), kLargest).second;
  return {Kept(b, index, x.dims(), dims, a.flag(2))};
}

Values AminMax(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims dims = a.has(1) ? WrapDims({a.integer(1)}, x.rank()) : WrapDims({}, x.rank());
  return {Kept(b, Extreme(b, x, false, dims), x.dims(), dims, a.flag(2)),
          Kept(b, Extreme(b, x, true, dims), x.dims(), dims, a.flag(2))};
}

constexpr OpRow kRows[] = {
    {"amax", ExtremeDims<true>},  {"amin", ExtremeDims<false>},        {"max", ExtremeAll<true>},
    {"min", ExtremeAll<false>},   {"max.dim", ExtremeWithIndex<true>}, {"min.dim", ExtremeWithIndex<false>},
    {"argmax", ArgExtreme<true>}, {"argmin", ArgExtreme<false>},       {"aminmax", AminMax},
};

}  // namespace

std::span<const OpRow> ExtremeRows() { return kRows; }

}  // namespace torch_tpu
