// Ops that move elements without changing them.
#include <algorithm>
#include <numeric>

#include "program/builder_impl.h"

namespace torch_tpu {

Value Builder::BroadcastInDim(Value x, const Dims& dims, const Dims& broadcast_dims) {
  constexpr std::string_view kOp = "broadcast_in_dim";
  impl_->Use(kOp, {x});
  ExpectSizes(kOp, dims);
  ExpectCount(kOp, "broadcast dims", x.dims().size(), broadcast_dims.size());
  ExpectDims(kOp, "broadcast dims", broadcast_dims, static_cast<int64_t>(dims.size()));
  for (size_t i = 0; i < broadcast_dims.size(); ++i) {
    const int64_t size = x.dims()[i];
    Check(size == 1 || size == dims[broadcast_dims[i]], kOp, ": expected dim ", i, " of size 1 or ",
          dims[broadcast_dims[i]], ", got ", ToString(x.dims()), " to ", ToString(dims));
  }
  return impl_->Emit(kOp, {x}, {x.dtype(), dims}, Cat("broadcast_dimensions = ", Array(broadcast_dims)));
}

Value Builder::BroadcastTo(Value x, const Dims& dims) {
  impl_->Use("broadcast_in_dim", {x});
  if (x.dims() == dims) return x;
  const int64_t rank = static_cast<int64_t>(dims.size());
  Check(x.rank() <= rank, "broadcast_in_dim: expected at most ", rank, " dims, got ", ToString(x.dims()), " to ",
        ToString(dims));
  Dims broadcast_dims(x.dims().size());
  std::iota(broadcast_dims.begin(), broadcast_dims.end(), rank - x.rank());
  return BroadcastInDim(x, dims, broadcast_dims);
}

Value Builder::Reshape(Value x, const Dims& dims) {
  impl_->Use("reshape", {x});
  if (x.dims() == dims) return x;
  ExpectSizes("reshape", dims);
  Check(Product(dims) == x.numel(), "reshape: expected ", x.numel(), " elements from ", ToString(x.dims()), ", got ",
        ToString(dims));
  return impl_->Emit("reshape", {x}, {x.dtype(), dims});
}

Value Builder::Transpose(Value x, const Dims& permutation) {
  impl_->Use("transpose", {x});
  ExpectCount("transpose", "dims in the permutation", x.dims().size(), permutation.size());
  ExpectDims("transpose", "dims in the permutation", permutation, x.rank());
  if (std::is_sorted(permutation.begin(), permutation.end())) return x;
  Dims dims;
  for (int64_t dim : permutation) dims.push_back(x.dims()[dim]);
  return impl_->Emit("transpose", {x}, {x.dtype(), dims}, Cat("permutation = ", Array(permutation)));
}

Value Builder::Reverse(Value x, const Dims& dims) {
  impl_->Use("reverse", {x});
  ExpectDims("reverse", "dims", dims, x.rank());
  if (dims.empty()) return x;
  return impl_->Emit("reverse", {x}, x.type(), Cat("dimensions = ", Array(dims)));
}

Value Builder::Slice(Value x, const Dims& start, const Dims& limit, const Dims& strides) {
  impl_->Use("slice", {x});
  const size_t rank = x.dims().size();
  const Dims steps = strides.empty() ? Dims(rank, 1) : strides;
  ExpectCount("slice", "starts", rank, start.size());
  ExpectCount("slice", "limits", rank, limit.size());
  ExpectCount("slice", "strides", rank, steps.size());
  Dims dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    Check(0 <= start[i] && start[i] <= limit[i] && limit[i] <= x.dims()[i] && steps[i] > 0,
          "slice: expected 0 <= start <= "
          "limit <= ",
          x.dims()[i], " and a stride above 0 in dim ", i, ", got [", start[i], ":", limit[i], ":", steps[i], "]");
    dims[i] = (limit[i] - start[i] + steps[i] - 1) / steps[i];
  }
  if (dims == x.dims()) return x;
  return impl_->Emit(
      "slice", {x}, {x.dtype(), dims},
      Cat("start_indices = ", Array(start), ", limit_indices = ", Array(limit), ", strides = ", Array(steps)));
}

Value Builder::SliceDim(Value x, int64_t dim, int64_t start, int64_t limit, int64_t stride) {
  impl_->Use("slice", {x});
  ExpectDims("slice", "dims", {dim}, x.rank());
  Dims starts(x.dims().size(), 0), limits = x.dims(), strides(x.dims().size(), 1);
  starts[dim] = start;
  limits[dim] = limit;
  strides[dim] = stride;
  return Slice(x, starts, limits, strides);
}

namespace {

void ExpectStarts(std::string_view op, const Value& x, const Values& starts) {
  ExpectCount(op, "starts", x.dims().size(), starts.size());
  for (const Value& start : starts) {
    Check(start.rank() == 0 && IsInteger(start.dtype()) && start.dtype() == starts[0].dtype(), op,
          ": expected starts that are 0-d integers of one type, got ", start.type().ToString());
  }
}

Values Joined(Values first, const Values& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

Value Builder::DynamicSlice(Value x, const Values& starts, const Dims& sizes) {
  constexpr std::string_view kOp = "dynamic_slice";
  impl_->Use(kOp, {x});
  impl_->Use(kOp, starts);
  ExpectStarts(kOp, x, starts);
  ExpectCount(kOp, "sizes", x.dims().size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    Check(sizes[i] >= 0 && sizes[i] <= x.dims()[i], kOp, ": expected sizes within ", ToString(x.dims()), ", got ",
          ToString(sizes));
  }
  if (sizes == x.dims()) return x;  // every start is clamped to 0
  return impl_->Emit(kOp, Joined({x}, starts), {x.dtype(), sizes}, Cat("slice_sizes = ", Array(sizes)));
}

Value Builder::DynamicUpdateSlice(Value x, Value update, const Values& starts) {
  constexpr std::string_view kOp = "dynamic_update_slice";
  impl_->Use(kOp, {x, update});
  impl_->Use(kOp, starts);
  ExpectStarts(kOp, x, starts);
  Check(update.dtype() == x.dtype() && update.rank() == x.rank(), kOp, ": expected an update of ", Name(x.dtype()),
        " and rank ", x.rank(), ", got ", update.type().ToString());
  for (size_t i = 0; i < starts.size(); ++i) {
    Check(update.dims()[i] <= x.dims()[i], kOp, ": expected an update within ", ToString(x.dims()), ", got ",
          ToString(update.dims()));
  }
  if (update.dims() == x.dims()) return update;
  return impl_->Emit(kOp, Joined({x, update}, starts), x.type());
}

Value Builder::Pad(Value x, Value pad_value, const Dims& low, const Dims& high, const Dims& interior) {
  impl_->Use("pad", {x, pad_value});
  const size_t rank = x.dims().size();
  const Dims inside = interior.empty() ? Dims(rank, 0) : interior;
  Check(pad_value.rank() == 0 && pad_value.dtype() == x.dtype(), "pad: expected a 0-d value of ", Name(x.dtype()),
        ", got ", pad_value.type().ToString());
  ExpectCount("pad", "low pads", rank, low.size());
  ExpectCount("pad", "high pads", rank, high.size());
  ExpectCount("pad", "interior pads", rank, inside.size());
  Dims dims(rank);
  bool nothing = true;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = x.dims()[i];
    Check(inside[i] >= 0, "pad: expected interior pads of 0 or more, got ", ToString(inside));
    dims[i] = size + low[i] + high[i] + std::max<int64_t>(size - 1, 0) * inside[i];
    Check(dims[i] >= 0, "pad: expected sizes of 0 or more after padding, got ", dims[i], " for dim ", i, " of ",
          ToString(x.dims()));
    nothing &= low[i] == 0 && high[i] == 0 && inside[i] == 0;
  }
  if (nothing) return x;
  return impl_->Emit("pad", {x, pad_value}, {x.dtype(), dims},
                     Cat("edge_padding_low = ", Array(low), ", edge_padding_high = ", Array(high),
                         ", interior_padding = ", Array(inside)));
}

Value Builder::Concatenate(const Values& xs, int64_t dim) {
  impl_->Use("concatenate", xs);
  Check(!xs.empty(), "concatenate: expected at least one operand, got none");
  ExpectDims("concatenate", "dims", {dim}, xs[0].rank());
  Dims dims = xs[0].dims();
  dims[dim] = 0;
  for (const Value& x : xs) {
    Dims other = x.dims();
    const bool same_rank = x.rank() == xs[0].rank();
    const int64_t size = same_rank ? std::exchange(other[dim], dims[dim]) : 0;
    Check(same_rank && other == dims && x.dtype() == xs[0].dtype(), "concatenate: expected operands that differ from ",
          xs[0].type().ToString(), " only in dim ", dim, ", got ", x.type().ToString());
    dims[dim] += size;
  }
  if (xs.size() == 1) return xs[0];
  return impl_->Emit("concatenate", xs, {xs[0].dtype(), dims}, Cat("dimension = ", dim, " : i64"));
}

}  // namespace torch_tpu
