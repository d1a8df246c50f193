#include "program/view.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace torch_tpu {
namespace {

struct StridedDim {
  int64_t dim, size, stride;
};

// The view's dims that move through memory, largest stride first.
std::vector<StridedDim> MovingDims(const ViewSpec& view) {
  std::vector<StridedDim> dims;
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] > 1 && view.strides[i] != 0) {
      dims.push_back({static_cast<int64_t>(i), view.sizes[i], view.strides[i]});
    }
  }
  std::stable_sort(dims.begin(), dims.end(), [](const auto& a, const auto& b) { return a.stride > b.stride; });
  return dims;
}

// The base's type when its bytes are read as `dtype`: the last dim grows or shrinks, or all is flattened where it
// can't.
TensorType Reinterpreted(const TensorType& base, DType dtype) {
  if (base.dtype == dtype) return base;
  TensorType type{dtype, base.dims};
  const int64_t from = static_cast<int64_t>(ItemSize(base.dtype)), to = static_cast<int64_t>(ItemSize(dtype));
  if (from == to) return type;
  if (type.dims.empty()) type.dims = {1};
  if (type.dims.back() * from % to != 0) type.dims = {base.numel()};
  type.dims.back() = type.dims.back() * from / to;  // a tail shorter than one element is out of the view's reach
  return type;
}

DType UnsignedOfSize(size_t bytes) {
  switch (bytes) {
    case 1:
      return DType::kUInt8;
    case 2:
      return DType::kUInt16;
    case 4:
      return DType::kUInt32;
    default:
      return DType::kUInt64;
  }
}

// The value's bytes read as Reinterpreted(x.type(), dtype).
Value Reinterpret(Builder& b, Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const TensorType want = Reinterpreted(x.type(), dtype);
  if (IsComplex(x.dtype())) {
    Dims pair = x.dims();
    pair.push_back(1);
    Value parts = b.Concatenate({b.Reshape(b.Real(x), pair), b.Reshape(b.Imag(x), pair)}, x.rank());
    return b.Reshape(Reinterpret(b, b.Reshape(parts, {parts.numel()}), dtype), want.dims);
  }
  if (IsComplex(dtype)) {
    Value reals = Reinterpret(b, b.Reshape(x, {x.numel()}), RealOf(dtype));
    const int64_t n = want.numel();
    reals = b.Reshape(b.SliceDim(reals, 0, 0, 2 * n), {n, 2});
    Value real = b.Reshape(b.SliceDim(reals, 1, 0, 1), {n}), imag = b.Reshape(b.SliceDim(reals, 1, 1, 2), {n});
    return b.Reshape(b.Complex(real, imag), want.dims);
  }
  // i1 has no bit pattern in StableHLO; a bool in memory is the byte 0 or 1.
  if (IsBool(x.dtype())) return Reinterpret(b, b.Convert(x, DType::kUInt8), dtype);
  if (IsBool(dtype)) {
    Value bytes = Reinterpret(b, x, DType::kUInt8);
    return b.Compare(bytes, b.Zero(DType::kUInt8, bytes.dims()), Direction::kNe);
  }
  const size_t from = ItemSize(x.dtype()), to = ItemSize(dtype);
  if (from == to) return b.BitcastConvert(x, dtype);
  // Through unsigned integers: StableHLO's minor dim is the low part first, as memory is.
  Value bits = b.Reshape(b.BitcastConvert(x, UnsignedOfSize(from)), {x.numel()});
  if (from > to) {
    bits = b.BitcastConvert(bits, UnsignedOfSize(to));
  } else {
    const int64_t ratio = static_cast<int64_t>(to / from), n = want.numel();
    bits = b.BitcastConvert(b.Reshape(b.SliceDim(bits, 0, 0, n * ratio), {n, ratio}), UnsignedOfSize(to));
  }
  return b.BitcastConvert(b.Reshape(bits, want.dims), dtype);
}

// Where box dim `d` starts for a flat offset: mixed-radix digits.
Dims Digits(int64_t offset, const Dims& dims) {
  Dims digits(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    digits[i] = offset % dims[i];
    offset /= dims[i];
  }
  return digits;
}

// Fills the plan from a box over `box_dims`; false when the box leaves its dims.
bool AcceptBox(ViewPlan& plan, const Dims& box_dims, const Dims& sizes, const Dims& steps, int64_t offset) {
  const Dims digits = Digits(offset, box_dims);
  for (size_t i = 0; i < box_dims.size(); ++i) {
    if (digits[i] + (sizes[i] - 1) * steps[i] >= box_dims[i]) return false;
  }
  plan.kind = ViewPlan::Kind::kBox;
  plan.box_dims = box_dims;
  plan.sizes = sizes;
  plan.steps = steps;
  plan.starts.clear();
  plan.dynamic.assign(box_dims.size(), false);
  for (size_t i = 0; i < box_dims.size(); ++i) {
    if (sizes[i] == box_dims[i]) continue;
    plan.dynamic[i] = true;
    plan.starts.push_back(digits[i]);
  }
  return true;
}

// Each moving dim walks one dim of the base.
bool SolveNatural(ViewPlan& plan, const Dims& base, const std::vector<StridedDim>& moving, int64_t offset) {
  Dims box;
  for (int64_t d : base) {
    if (d != 1) box.push_back(d);
  }
  const Dims strides = ContiguousStrides(box);
  Dims sizes(box.size(), 1), steps(box.size(), 1);
  size_t at = 0;
  for (const StridedDim& m : moving) {
    while (at < box.size() && strides[at] > m.stride) ++at;
    if (at == box.size() || sizes[at] != 1 || m.stride % strides[at] != 0) return false;
    sizes[at] = m.size;
    steps[at] = m.stride / strides[at];
  }
  return AcceptBox(plan, box, sizes, steps, offset);
}

// The moving dims fill one run of memory without a gap.
bool SolveDense(ViewPlan& plan, int64_t numel, const std::vector<StridedDim>& moving, int64_t offset) {
  int64_t run = 1;
  for (size_t i = moving.size(); i-- > 0;) {
    if (moving[i].stride != run) return false;
    run *= moving[i].size;
  }
  return AcceptBox(plan, {numel}, {run}, {1}, offset);
}

// The strides divide each other: reshape the base so that each becomes a dim.
bool SolveRadix(ViewPlan& plan, int64_t numel, const std::vector<StridedDim>& moving, int64_t offset) {
  Dims box, sizes;
  int64_t outer = numel;
  for (const StridedDim& m : moving) {
    if (outer % m.stride != 0) return false;
    box.push_back(outer / m.stride);
    sizes.push_back(m.size);
    outer = m.stride;
  }
  if (outer != 1) {
    box.push_back(outer);
    sizes.push_back(1);
  }
  return AcceptBox(plan, box, sizes, Dims(box.size(), 1), offset);
}

Dims MovingSizes(const ViewPlan& plan) {
  Dims sizes;
  for (int64_t d : plan.order) sizes.push_back(plan.view_sizes[d]);
  return sizes;
}

// Position of each of `order`'s entries when sorted: [2, 0, 1] -> [1, 2, 0].
Dims SortedPermutation(const Dims& order) {
  Dims permutation(order.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::sort(permutation.begin(), permutation.end(), [&](int64_t a, int64_t c) { return order[a] < order[c]; });
  return permutation;
}

Values BoxStarts(Builder& b, const ViewPlan& plan, Value starts) {
  Values result;
  int64_t at = 0;
  for (size_t i = 0; i < plan.box_dims.size(); ++i) {
    if (plan.dynamic[i]) {
      result.push_back(b.Reshape(b.SliceDim(starts, 0, at, at + 1), {}));
      ++at;
    } else {
      result.push_back(b.Zero(DType::kInt64));
    }
  }
  return result;
}

Dims Spans(const ViewPlan& plan) {
  Dims spans(plan.sizes.size());
  for (size_t i = 0; i < spans.size(); ++i) spans[i] = (plan.sizes[i] - 1) * plan.steps[i] + 1;
  return spans;
}

bool HasSteps(const ViewPlan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](int64_t s) { return s != 1; });
}

// Flat positions, i64[n, 1], of the moving elements in `order`.
Value FlatIndices(Builder& b, const ViewPlan& plan, Value starts) {
  const Dims sizes = MovingSizes(plan);
  Value index = b.BroadcastTo(b.Reshape(starts, {}), sizes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    Value step = b.ConstantInt(DType::kInt64, plan.view_strides[plan.order[i]], sizes);
    index = b.Add(index, b.Multiply(b.Iota(DType::kInt64, sizes, static_cast<int64_t>(i)), step));
  }
  return b.Reshape(index, {index.numel(), 1});
}

// From dims in `order` to the view's dims.
Value ToViewDims(Builder& b, const ViewPlan& plan, Value x) {
  x = b.Transpose(b.Reshape(x, MovingSizes(plan)), SortedPermutation(plan.order));
  Dims dims = plan.order;
  std::sort(dims.begin(), dims.end());
  Dims with_ones(plan.view_sizes.size(), 1);
  for (int64_t d : dims) with_ones[d] = plan.view_sizes[d];
  if (with_ones == plan.view_sizes) return b.Reshape(x, plan.view_sizes);
  return b.BroadcastInDim(x, plan.view_sizes, dims);
}

// And back: an element repeated by a stride of zero is written once, from its last index.
Value FromViewDims(Builder& b, const ViewPlan& plan, Value x) {
  for (size_t i = 0; i < plan.view_sizes.size(); ++i) {
    if (plan.view_sizes[i] > 1 && plan.view_strides[i] == 0) {
      x = b.SliceDim(x, static_cast<int64_t>(i), plan.view_sizes[i] - 1, plan.view_sizes[i]);
    }
  }
  Dims sorted = plan.order;
  std::sort(sorted.begin(), sorted.end());
  Dims sizes;
  for (int64_t d : sorted) sizes.push_back(plan.view_sizes[d]);
  Dims permutation;
  for (int64_t d : plan.order)
    permutation.push_back(std::lower_bound(sorted.begin(), sorted.end(), d) - sorted.begin());
  return b.Transpose(b.Reshape(x, sizes), permutation);
}

void Append(Dims& data, const Dims& part) {
  data.push_back(static_cast<int64_t>(part.size()));
  data.insert(data.end(), part.begin(), part.end());
}

Dims Take(const Dims& data, size_t& at) {
  const size_t n = static_cast<size_t>(data.at(at++));
  Check(at + n <= data.size(), "view plan: expected ", n, " more numbers, got ", data.size() - at);
  Dims part(data.begin() + at, data.begin() + at + n);
  at += n;
  return part;
}

}  // namespace

Dims ViewPlan::Encode() const {
  Dims data{static_cast<int64_t>(kind), static_cast<int64_t>(dtype)};
  Append(data, box_dims);
  Append(data, sizes);
  Append(data, steps);
  Append(data, Dims(dynamic.begin(), dynamic.end()));
  Append(data, order);
  Append(data, view_sizes);
  Append(data, view_strides);
  return data;
}

ViewPlan ViewPlan::Decode(const Dims& data) {
  ViewPlan plan;
  plan.kind = static_cast<Kind>(data.at(0));
  plan.dtype = static_cast<DType>(data.at(1));
  size_t at = 2;
  plan.box_dims = Take(data, at);
  plan.sizes = Take(data, at);
  plan.steps = Take(data, at);
  const Dims dynamic = Take(data, at);
  plan.dynamic.assign(dynamic.begin(), dynamic.end());
  plan.order = Take(data, at);
  plan.view_sizes = Take(data, at);
  plan.view_strides = Take(data, at);
  return plan;
}

ViewPlan SolveView(const TensorType& base, const ViewSpec& view) {
  ViewPlan plan;
  plan.dtype = view.dtype;
  plan.view_sizes = view.sizes;
  plan.view_strides = view.strides;
  if (Product(view.sizes) == 0) {
    plan.kind = ViewPlan::Kind::kEmpty;
    return plan;
  }
  const TensorType type = Reinterpreted(base, view.dtype);
  const int64_t numel = type.numel();
  int64_t last = view.offset;
  for (size_t i = 0; i < view.sizes.size(); ++i) last += (view.sizes[i] - 1) * view.strides[i];
  if (view.offset < 0 || last >= numel) {
    Fail(Code::kOutOfRange, "view: expected elements within a storage of ", numel, " elements, got sizes ",
         ToString(view.sizes), ", strides ", ToString(view.strides), " and offset ", view.offset);
  }
  if (view.offset == 0 && type.dims == view.sizes && ContiguousStrides(view.sizes) == view.strides) {
    plan.kind = ViewPlan::Kind::kIdentity;
    return plan;
  }
  const std::vector<StridedDim> moving = MovingDims(view);
  for (const StridedDim& m : moving) plan.order.push_back(m.dim);
  if (SolveNatural(plan, type.dims, moving, view.offset)) return plan;
  if (SolveDense(plan, numel, moving, view.offset)) return plan;
  if (SolveRadix(plan, numel, moving, view.offset)) return plan;
  plan.kind = ViewPlan::Kind::kGather;
  plan.box_dims = {numel};
  plan.starts = {view.offset};
  return plan;
}

Value ReadView(Builder& b, Value base, const ViewPlan& plan, Value starts) {
  if (plan.kind == ViewPlan::Kind::kEmpty) return b.Zero(plan.dtype, plan.view_sizes);
  Value x = Reinterpret(b, base, plan.dtype);
  if (plan.kind == ViewPlan::Kind::kIdentity) return b.Reshape(x, plan.view_sizes);
  x = b.Reshape(x, plan.box_dims);
  if (plan.kind == ViewPlan::Kind::kGather) {
    GatherDims dims;
    dims.collapsed_slice_dims = {0};
    dims.start_index_map = {0};
    dims.index_vector_dim = 1;
    return ToViewDims(b, plan, b.Gather(x, FlatIndices(b, plan, starts), dims, {1}));
  }
  if (!plan.dynamic.empty() && std::any_of(plan.dynamic.begin(), plan.dynamic.end(), [](bool d) { return d; })) {
    x = b.DynamicSlice(x, BoxStarts(b, plan, starts), Spans(plan));
  }
  if (HasSteps(plan)) x = b.Slice(x, Dims(x.rank(), 0), x.dims(), plan.steps);
  return ToViewDims(b, plan, x);
}

Value WriteView(Builder& b, Value base, const ViewPlan& plan, Value starts, Value update) {
  if (plan.kind == ViewPlan::Kind::kEmpty) return base;
  Check(update.dtype() == plan.dtype && update.dims() == plan.view_sizes, "view write: expected ",
        TensorType{plan.dtype, plan.view_sizes}.ToString(), ", got ", update.type().ToString());
  Value x = Reinterpret(b, base, plan.dtype);
  if (plan.kind == ViewPlan::Kind::kIdentity) {
    x = b.Reshape(update, x.dims());
  } else {
    const Dims dims = x.dims();
    x = b.Reshape(x, plan.box_dims);
    update = FromViewDims(b, plan, update);
    if (plan.kind == ViewPlan::Kind::kGather) {
      ScatterDims scatter;
      scatter.inserted_window_dims = {0};
      scatter.scatter_dims_to_operand_dims = {0};
      scatter.index_vector_dim = 1;
      x = b.Scatter(x, FlatIndices(b, plan, starts), b.Reshape(update, {update.numel()}), scatter,
                    [](const Values& v) { return Values{v[1]}; });
    } else {
      update = b.Reshape(update, plan.sizes);
      const Dims spans = Spans(plan);
      const Values begin = BoxStarts(b, plan, starts);
      if (HasSteps(plan)) {
        Dims interior(plan.steps.size()), zeros(plan.steps.size(), 0);
        for (size_t i = 0; i < interior.size(); ++i) interior[i] = plan.steps[i] - 1;
        Value written = b.Pad(b.One(DType::kBool, plan.sizes), b.Zero(DType::kBool), zeros, zeros, interior);
        Value spread = b.Pad(update, b.Zero(plan.dtype), zeros, zeros, interior);
        update = b.Select(written, spread, b.DynamicSlice(x, begin, spans));
      }
      x = spans == plan.box_dims ? update : b.DynamicUpdateSlice(x, update, begin);
    }
    x = b.Reshape(x, dims);
  }
  // A tail of the base that makes no whole element of the view's dtype keeps its bytes only in the base itself.
  Value back = Reinterpret(b, x, base.dtype());
  if (back.numel() == base.numel()) return b.Reshape(back, base.dims());
  Value flat = b.Reshape(back, {back.numel()}), old = b.Reshape(base, {base.numel()});
  return b.Reshape(b.Concatenate({flat, b.SliceDim(old, 0, back.numel(), base.numel())}, 0), base.dims());
}

}  // namespace torch_tpu
