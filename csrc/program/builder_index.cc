// Gather and scatter.
#include <algorithm>

#include "program/builder_impl.h"

namespace torch_tpu {
namespace {

// Dims of the indices without the dim that holds an index.
Dims IndexBatch(std::string_view op, const Value& indices, int64_t index_vector_dim) {
  Check(IsInteger(indices.dtype()), op, ": expected integer indices, got ", indices.type().ToString());
  Check(index_vector_dim >= 0 && index_vector_dim <= indices.rank(), op, ": expected an index vector dim in [0, ",
        indices.rank(), "], got ", index_vector_dim);
  return index_vector_dim == indices.rank() ? indices.dims() : Without(indices.dims(), {index_vector_dim});
}

void ExpectIndexMap(std::string_view op, const Value& indices, int64_t index_vector_dim, const Dims& map,
                    int64_t rank) {
  const int64_t length = index_vector_dim == indices.rank() ? 1 : indices.dims()[index_vector_dim];
  Check(static_cast<int64_t>(map.size()) == length, op, ": expected an index map of ", length, " dims, got ",
        ToString(map));
  ExpectDims(op, "dims in the index map", map, rank);
}

// The batching dims of operand and indices pair up and have equal sizes.
void ExpectBatching(std::string_view op, const Value& x, const Dims& x_dims, const Value& indices,
                    const Dims& index_dims, int64_t index_vector_dim) {
  ExpectDims(op, "batching dims", x_dims, x.rank());
  ExpectSorted(op, "batching dims", x_dims);
  ExpectDims(op, "batching dims of the indices", index_dims, indices.rank());
  ExpectCount(op, "batching dims of the indices", x_dims.size(), index_dims.size());
  for (size_t i = 0; i < x_dims.size(); ++i) {
    Check(index_dims[i] != index_vector_dim && x.dims()[x_dims[i]] == indices.dims()[index_dims[i]], op,
          ": expected batching dims of equal sizes, got ", ToString(x_dims), " of ", ToString(x.dims()), " and ",
          ToString(index_dims), " of ", ToString(indices.dims()));
  }
}

// Dims of a result whose `window_positions` take `window` in order and whose other positions take `batch`.
Dims Interleave(const Dims& batch, const Dims& window, const Dims& window_positions) {
  Dims dims;
  size_t next_batch = 0, next_window = 0;
  for (size_t i = 0; i < batch.size() + window.size(); ++i) {
    dims.push_back(Contains(window_positions, static_cast<int64_t>(i)) ? window[next_window++] : batch[next_batch++]);
  }
  return dims;
}

Dims Joined(Dims first, const Dims& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

Value Builder::Gather(Value x, Value indices, const GatherDims& dims, const Dims& slice_sizes, bool sorted) {
  constexpr std::string_view kOp = "gather";
  impl_->Use(kOp, {x, indices});
  const Dims batch = IndexBatch(kOp, indices, dims.index_vector_dim);
  ExpectIndexMap(kOp, indices, dims.index_vector_dim, dims.start_index_map, x.rank());
  ExpectBatching(kOp, x, dims.operand_batching_dims, indices, dims.start_indices_batching_dims, dims.index_vector_dim);
  ExpectSorted(kOp, "collapsed dims", dims.collapsed_slice_dims);
  ExpectSorted(kOp, "offset dims", dims.offset_dims);
  const Dims dropped = Joined(dims.collapsed_slice_dims, dims.operand_batching_dims);
  ExpectDims(kOp, "collapsed and batching dims", dropped, x.rank());
  ExpectCount(kOp, "slice sizes", x.dims().size(), slice_sizes.size());
  for (size_t i = 0; i < slice_sizes.size(); ++i) {
    Check(slice_sizes[i] >= 0 && slice_sizes[i] <= x.dims()[i], kOp, ": expected slice sizes within ",
          ToString(x.dims()), ", got ", ToString(slice_sizes));
    Check(slice_sizes[i] <= 1 || !Contains(dropped, static_cast<int64_t>(i)), kOp,
          ": expected slice size 1 in collapsed and batching dims ", ToString(dropped), ", got ",
          ToString(slice_sizes));
  }
  const Dims window = Without(slice_sizes, dropped);
  ExpectCount(kOp, "offset dims", window.size(), dims.offset_dims.size());
  ExpectDims(kOp, "offset dims", dims.offset_dims, static_cast<int64_t>(batch.size() + window.size()));
  const std::string attributes =
      Cat("dimension_numbers = #stablehlo.gather<offset_dims = ", Brackets(dims.offset_dims),
          ", collapsed_slice_dims = ", Brackets(dims.collapsed_slice_dims),
          ", operand_batching_dims = ", Brackets(dims.operand_batching_dims),
          ", start_indices_batching_dims = ", Brackets(dims.start_indices_batching_dims),
          ", start_index_map = ", Brackets(dims.start_index_map), ", index_vector_dim = ", dims.index_vector_dim,
          ">, indices_are_sorted = ", Bool(sorted), ", slice_sizes = ", Array(slice_sizes));
  return impl_->Emit(kOp, {x, indices}, {x.dtype(), Interleave(batch, window, dims.offset_dims)}, attributes);
}

Value Builder::Scatter(Value x, Value indices, Value updates, const ScatterDims& dims, const Body& body, bool sorted,
                       bool unique) {
  return ScatterMany({x}, indices, {updates}, dims, body, sorted, unique)[0];
}

Values Builder::ScatterMany(const Values& xs, Value indices, const Values& updates, const ScatterDims& dims,
                            const Body& body, bool sorted, bool unique) {
  constexpr std::string_view kOp = "scatter";
  impl_->Use(kOp, xs);
  impl_->Use(kOp, {indices});
  impl_->Use(kOp, updates);
  Check(!xs.empty(), kOp, ": expected at least one operand, got none");
  ExpectCount(kOp, "updates", xs.size(), updates.size());
  const Value& x = xs[0];
  const Dims batch = IndexBatch(kOp, indices, dims.index_vector_dim);
  ExpectIndexMap(kOp, indices, dims.index_vector_dim, dims.scatter_dims_to_operand_dims, x.rank());
  ExpectBatching(kOp, x, dims.input_batching_dims, indices, dims.scatter_indices_batching_dims, dims.index_vector_dim);
  ExpectSorted(kOp, "inserted dims", dims.inserted_window_dims);
  ExpectSorted(kOp, "update window dims", dims.update_window_dims);
  const Dims dropped = Joined(dims.inserted_window_dims, dims.input_batching_dims);
  ExpectDims(kOp, "inserted and batching dims", dropped, x.rank());
  const Dims room = Without(x.dims(), dropped);
  ExpectCount(kOp, "update window dims", room.size(), dims.update_window_dims.size());
  ExpectDims(kOp, "update window dims", dims.update_window_dims, static_cast<int64_t>(batch.size() + room.size()));
  const Dims full = Interleave(batch, room, dims.update_window_dims);
  for (size_t i = 0; i < xs.size(); ++i) {
    Check(xs[i].dims() == x.dims(), kOp, ": expected operands of equal dims, got ", ToString(x.dims()), " and ",
          ToString(xs[i].dims()));
    const Value& update = updates[i];
    bool fits =
        update.dtype() == xs[i].dtype() && update.dims().size() == full.size() && update.dims() == updates[0].dims();
    for (size_t d = 0; fits && d < full.size(); ++d) {
      fits = Contains(dims.update_window_dims, static_cast<int64_t>(d)) ? update.dims()[d] <= full[d]
                                                                        : update.dims()[d] == full[d];
    }
    Check(fits, kOp, ": expected updates of ", Name(xs[i].dtype()), " and dims ", ToString(full),
          " (or smaller windows), got ", update.type().ToString());
  }
  std::vector<TensorType> scalars;
  for (const Value& operand : xs) scalars.push_back({operand.dtype(), {}});
  std::vector<TensorType> arguments = scalars;
  arguments.insert(arguments.end(), scalars.begin(), scalars.end());
  const std::string region = impl_->TypedRegion(kOp, arguments, true, body, scalars);
  const std::string attributes =
      Cat("scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = ", Brackets(dims.update_window_dims),
          ", inserted_window_dims = ", Brackets(dims.inserted_window_dims),
          ", input_batching_dims = ", Brackets(dims.input_batching_dims),
          ", scatter_indices_batching_dims = ", Brackets(dims.scatter_indices_batching_dims),
          ", scatter_dims_to_operand_dims = ", Brackets(dims.scatter_dims_to_operand_dims),
          ", index_vector_dim = ", dims.index_vector_dim, ">, indices_are_sorted = ", Bool(sorted),
          ", unique_indices = ", Bool(unique));
  Values operands = xs;
  operands.push_back(indices);
  operands.insert(operands.end(), updates.begin(), updates.end());
  return impl_->EmitMany(kOp, operands, TypesOf(xs), attributes, {region});
}

}  // namespace torch_tpu
