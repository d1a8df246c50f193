// Reductions over dims and windows.
#include <algorithm>

#include "program/builder_impl.h"

namespace torch_tpu {
namespace {

Values Joined(Values first, const Values& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<TensorType> Scalars(const Values& xs, int times) {
  std::vector<TensorType> types;
  for (int i = 0; i < times; ++i) {
    for (const Value& x : xs) types.push_back({x.dtype(), {}});
  }
  return types;
}

// Operands of equal dims, each with a 0-d init of its type.
void ExpectInits(std::string_view op, const Values& xs, const Values& inits) {
  Check(!xs.empty(), op, ": expected at least one operand, got none");
  ExpectCount(op, "inits", xs.size(), inits.size());
  for (size_t i = 0; i < xs.size(); ++i) {
    Check(xs[i].dims() == xs[0].dims(), op, ": expected operands of equal dims, got ", ToString(xs[0].dims()), " and ",
          ToString(xs[i].dims()));
    Check(inits[i].rank() == 0 && inits[i].dtype() == xs[i].dtype(), op, ": expected a 0-d init of ",
          Name(xs[i].dtype()), ", got ", inits[i].type().ToString());
  }
}

// The window with defaults filled in.
ReduceWindow Filled(std::string_view op, const ReduceWindow& window, size_t rank) {
  ReduceWindow full = window;
  for (Dims* dims : {&full.dims, &full.strides, &full.base_dilations, &full.window_dilations}) {
    if (dims->empty()) dims->assign(rank, 1);
    ExpectCount(op, "sizes, strides and dilations of the window", rank, dims->size());
    for (int64_t size : *dims) {
      Check(size > 0, op, ": expected sizes, strides and dilations of 1 or more, got ", ToString(*dims));
    }
  }
  for (Dims* dims : {&full.pad_low, &full.pad_high}) {
    if (dims->empty()) dims->assign(rank, 0);
    ExpectCount(op, "pads of the window", rank, dims->size());
  }
  return full;
}

Dims Windows(std::string_view op, const Dims& dims, const ReduceWindow& window) {
  Dims counts(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dilated = dims[i] == 0 ? 0 : (dims[i] - 1) * window.base_dilations[i] + 1;
    const int64_t padded = dilated + window.pad_low[i] + window.pad_high[i];
    const int64_t extent = (window.dims[i] - 1) * window.window_dilations[i] + 1;
    Check(padded >= 0, op, ": expected sizes of 0 or more after padding, got ", padded, " for dim ", i, " of ",
          ToString(dims));
    counts[i] = padded == 0 || padded < extent ? 0 : (padded - extent) / window.strides[i] + 1;
  }
  return counts;
}

std::string WindowAttributes(const ReduceWindow& window) {
  return Cat("window_dimensions = ", Array(window.dims), ", window_strides = ", Array(window.strides));
}

Value Neutral(Builder& b, Builder::Reducer reducer, DType dtype) {
  switch (reducer) {
    case Builder::Reducer::kAdd:
      return b.Zero(dtype);
    case Builder::Reducer::kMul:
      return b.One(dtype);
    case Builder::Reducer::kMax:
      return b.MinOf(dtype);
    case Builder::Reducer::kMin:
      return b.MaxOf(dtype);
    case Builder::Reducer::kAnd:
      return IsSignedInt(dtype) ? b.ConstantInt(dtype, -1) : b.MaxOf(dtype);
    case Builder::Reducer::kOr:
      return b.Zero(dtype);
  }
  return {};
}

}  // namespace

uint32_t KindsOf(Builder::Reducer reducer) {
  switch (reducer) {
    case Builder::Reducer::kAdd:
    case Builder::Reducer::kMul:
      return kAllKinds;
    case Builder::Reducer::kMax:
    case Builder::Reducer::kMin:
      return kRealKinds;
    default:
      return kLogicKinds;
  }
}

Builder::Body BodyOf(Builder& b, Builder::Reducer reducer) {
  return [&b, reducer](const Values& v) -> Values {
    switch (reducer) {
      case Builder::Reducer::kAdd:
        return {b.Add(v[0], v[1])};
      case Builder::Reducer::kMul:
        return {b.Multiply(v[0], v[1])};
      case Builder::Reducer::kMax:
        return {b.Maximum(v[0], v[1])};
      case Builder::Reducer::kMin:
        return {b.Minimum(v[0], v[1])};
      case Builder::Reducer::kAnd:
        return {b.And(v[0], v[1])};
      case Builder::Reducer::kOr:
        return {b.Or(v[0], v[1])};
    }
    return {};
  };
}

Value Builder::Reduce(Value x, Reducer reducer, const Dims& dims) {
  impl_->Use("reduce", {x});
  impl_->ExpectKind("reduce", x, KindsOf(reducer));
  ExpectDims("reduce", "dims", dims, x.rank());
  if (dims.empty()) return x;
  return ReduceMany({x}, {Neutral(*this, reducer, x.dtype())}, dims, BodyOf(*this, reducer))[0];
}

Values Builder::ReduceMany(const Values& xs, const Values& inits, const Dims& dims, const Body& body) {
  constexpr std::string_view kOp = "reduce";
  impl_->Use(kOp, xs);
  impl_->Use(kOp, inits);
  ExpectInits(kOp, xs, inits);
  ExpectDims(kOp, "dims", dims, xs[0].rank());
  Dims sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  std::vector<TensorType> results;
  for (const Value& x : xs) results.push_back({x.dtype(), Without(x.dims(), sorted)});
  const std::string region = impl_->TypedRegion(kOp, Scalars(xs, 2), true, body, Scalars(xs, 1));
  return impl_->EmitMany(kOp, Joined(xs, inits), results, Cat("dimensions = ", Array(sorted)), {region});
}

Value Builder::ReduceWindowOp(Value x, Value init, const ReduceWindow& window, const Body& body) {
  return ReduceWindowMany({x}, {init}, window, body)[0];
}

Values Builder::ReduceWindowMany(const Values& xs, const Values& inits, const ReduceWindow& window, const Body& body) {
  constexpr std::string_view kOp = "reduce_window";
  impl_->Use(kOp, xs);
  impl_->Use(kOp, inits);
  ExpectInits(kOp, xs, inits);
  const ReduceWindow full = Filled(kOp, window, xs[0].dims().size());
  const Dims counts = Windows(kOp, xs[0].dims(), full);
  std::vector<TensorType> results;
  for (const Value& x : xs) results.push_back({x.dtype(), counts});
  const std::string region = impl_->TypedRegion(kOp, Scalars(xs, 2), true, body, Scalars(xs, 1));
  const std::string attributes =
      Cat(WindowAttributes(full), ", base_dilations = ", Array(full.base_dilations),
          ", window_dilations = ", Array(full.window_dilations), ", padding = ", Pairs(full.pad_low, full.pad_high));
  return impl_->EmitMany(kOp, Joined(xs, inits), results, attributes, {region});
}

Value Builder::SelectAndScatter(Value x, Value source, Value init, const ReduceWindow& window, const Body& select,
                                const Body& scatter) {
  constexpr std::string_view kOp = "select_and_scatter";
  impl_->Use(kOp, {x, source, init});
  ExpectInits(kOp, {x}, {init});
  const ReduceWindow full = Filled(kOp, window, x.dims().size());
  for (const Dims& dilations : {full.base_dilations, full.window_dilations}) {
    for (int64_t dilation : dilations) {
      Check(dilation == 1, kOp, ": expected no dilation, got ", ToString(dilations));
    }
  }
  const TensorType expected{x.dtype(), Windows(kOp, x.dims(), full)};
  Check(source.type() == expected, kOp, ": expected a source of ", expected.ToString(), ", got ",
        source.type().ToString());
  const std::string chooses = impl_->TypedRegion(kOp, Scalars({x}, 2), true, select, {{DType::kBool, {}}});
  const std::string combines = impl_->TypedRegion(kOp, Scalars({x}, 2), true, scatter, Scalars({x}, 1));
  return impl_->EmitMany(kOp, {x, source, init}, {x.type()},
                         Cat(WindowAttributes(full), ", padding = ", Pairs(full.pad_low, full.pad_high)),
                         {chooses, combines})[0];
}

}  // namespace torch_tpu
