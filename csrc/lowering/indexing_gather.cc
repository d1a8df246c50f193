// Reads by index: gather, index_select, index.Tensor, take, embedding.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "lowering/host_call.h"
#include "lowering/indexing.h"
#include "lowering/indexing_list.h"
#include "lowering/math.h"

namespace torch_tpu {

IndexList ResolveIndexList(Builder& b, const Values& indices, const Dims& self) {
  IndexList list;
  Values given;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) continue;
    Check(static_cast<int64_t>(i) < static_cast<int64_t>(self.size()), "too many indices for tensor of dimension ",
          self.size());
    Check(!IsBool(indices[i].dtype()), "index: expected integer indices, got a mask");
    list.dims.push_back(static_cast<int64_t>(i));
    given.push_back(WrapIndex(b, indices[i], self[i]));
  }
  if (given.empty()) {
    list.kept = self;
    return list;
  }
  given = Broadcast(b, given);
  list.shape = given[0].dims();
  // Index dims stay in place when the indexed dims are neighbours, and go first otherwise.
  const bool adjacent = list.dims.back() - list.dims.front() + 1 == static_cast<int64_t>(list.dims.size());
  list.position = adjacent ? list.dims.front() : 0;
  for (size_t i = 0; i < self.size(); ++i) {
    if (std::find(list.dims.begin(), list.dims.end(), static_cast<int64_t>(i)) == list.dims.end()) {
      list.kept.push_back(self[i]);
    }
  }
  Dims with_vector = list.shape;
  with_vector.push_back(1);
  for (size_t k = 0; k < given.size(); ++k) {
    Value ok = InRange(b, given[k], self[list.dims[k]]);
    list.in_range = k == 0 ? ok : b.And(list.in_range, ok);
    given[k] = b.Reshape(given[k], with_vector);
  }
  list.starts = given.size() == 1 ? given[0] : b.Concatenate(given, static_cast<int64_t>(list.shape.size()));
  return list;
}

Dims IndexList::ResultDims() const {
  Dims out(kept.begin(), kept.begin() + position);
  out.insert(out.end(), shape.begin(), shape.end());
  out.insert(out.end(), kept.begin() + position, kept.end());
  return out;
}

Dims IndexList::WindowDims() const {
  Dims out;
  const int64_t q = static_cast<int64_t>(shape.size());
  for (int64_t i = 0; i < static_cast<int64_t>(kept.size()); ++i) out.push_back(i < position ? i : i + q);
  return out;
}

namespace {

Values Gather(Builder& b, const Args& a) {
  Value x = AtLeast1d(b, a.tensor(0));
  Value index = a.tensor(2);
  const Dims out = index.dims();
  index = AtLeast1d(b, index);
  return {b.Reshape(TakeAlong(b, x, index, WrapDim(a.integer(1), x.rank())), out)};
}

Values IndexSelect(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  Value x = AtLeast1d(b, self);
  Value index = AtLeast1d(b, a.tensor(2));
  Value taken = TakeDim(b, x, index, WrapDim(a.integer(1), x.rank()));
  return {self.rank() == 0 ? b.Reshape(taken, {}) : taken};
}

Values Index(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  IndexList list = ResolveIndexList(b, a.tensors(1), x.dims());
  if (list.dims.empty()) return {x};
  const Dims out = list.ResultDims();
  if (Product(out) == 0) return {b.Zero(x.dtype(), out)};
  if (x.numel() == 0) return {OutOfRangeFill(b, x.dtype(), out)};
  GatherDims dims;
  dims.offset_dims = list.WindowDims();
  dims.collapsed_slice_dims = list.dims;
  dims.start_index_map = list.dims;
  dims.index_vector_dim = static_cast<int64_t>(list.shape.size());
  Dims sizes = x.dims();
  for (int64_t d : list.dims) sizes[d] = 1;
  Value taken = b.Gather(x, list.starts, dims, sizes);
  Dims at;
  for (size_t i = 0; i < list.shape.size(); ++i) at.push_back(list.position + static_cast<int64_t>(i));
  return {b.Select(b.BroadcastInDim(list.in_range, out, at), taken, OutOfRangeFill(b, x.dtype(), out))};
}

Values Take(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  Value flat = b.Reshape(x, {x.numel()});
  return {TakeDim(b, flat, WrapIndex(b, a.tensor(1), x.numel()), 0)};
}

// A row that is not there is an error of the program where the target can raise one, and NaN elsewhere.
Values Embedding(Builder& b, const Args& a) {
  Value weight = a.tensor(0), index = a.tensor(1);
  const bool checkable = index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32;
  if (!b.host_kernels() || !checkable || index.numel() == 0) return {TakeDim(b, weight, index, 0)};
  index = CallHost(b, "check_rows", {index}, {index.type()}, {weight.dim(0)})[0];
  return {TakeDim(b, weight, index, 0, IndexTrust::kTrusted)};
}

// grad_output, indices, num_weights, padding_idx, scale_grad_by_freq
Values EmbeddingDenseBackward(Builder& b, const Args& a) {
  Value grad = a.tensor(0);
  const int64_t rows = a.integer(2), padding = a.integer(3), width = grad.dim(-1);
  Value index = ToIndex(b, a.tensor(1));
  const int64_t n = index.numel();
  index = b.Reshape(index, {n});
  Value updates = b.Reshape(ToCompute(b, grad), {n, width});
  if (padding >= 0) {  // past the end: dropped
    Value skip = b.Compare(index, b.ConstantInt(DType::kInt64, padding, {n}), Direction::kEq);
    index = b.Select(skip, b.ConstantInt(DType::kInt64, rows, {n}), index);
  }
  Value sums = PutDim(b, b.Zero(updates.dtype(), {rows, width}), index, updates, 0, CombineAdd);
  if (a.flag(4)) {
    Value counts = PutDim(b, b.Zero(updates.dtype(), {rows}), index, b.One(updates.dtype(), {n}), 0, CombineAdd);
    counts = b.Maximum(counts, b.One(updates.dtype(), {rows}));
    sums = b.Divide(sums, b.BroadcastInDim(counts, {rows, width}, {0}));
  }
  return {b.Convert(sums, grad.dtype())};
}

// self, indices, max_norm, norm_type: rows that are named and too long are scaled to max_norm
Values EmbeddingRenorm(Builder& b, const Args& a) {
  Value self = a.tensor(0), x = ToCompute(b, self);
  const int64_t rows = x.dim(0);
  Value index = ToIndex(b, a.tensor(1));
  index = b.Reshape(index, {index.numel()});
  Value named = PutDim(b, b.Zero(DType::kBool, {rows}), index, b.One(DType::kBool, index.dims()), 0, CombineSet);
  const double p = a.constant(3).value();
  Value size = b.Abs(x), norm;
  if (std::isinf(p)) {
    norm = ReduceMax(b, size, {1});
  } else if (p == 2) {
    norm = b.Sqrt(Sum(b, b.Multiply(x, x), {1}));
  } else {
    norm = p == 1 ? Sum(b, size, {1})
                  : b.Power(Sum(b, b.Power(size, Full(b, size, p)), {1}), b.Constant(x.dtype(), 1 / p, {rows}));
  }
  Value most = b.BroadcastTo(b.Constant(x.dtype(), a.constant(2).value()), {rows});
  Value scale = b.Divide(most, AddC(b, norm, 1e-7));
  Value apply = b.And(named, b.Compare(norm, most, Direction::kGt));
  scale = b.BroadcastInDim(b.Select(apply, scale, Full(b, scale, 1)), x.dims(), {0});
  return {b.Convert(b.Multiply(x, scale), self.dtype())};
}

}  // namespace

std::vector<OpRow> GatherRows() {
  return {
      {"gather", Gather},
      {"index_select", IndexSelect},
      {"index.Tensor", Index},
      {"_unsafe_index.Tensor", Index},
      {"take", Take},
      {"embedding", Embedding},
      {"embedding_renorm", EmbeddingRenorm, kKeyScalars},
      {"embedding_dense_backward", EmbeddingDenseBackward},
  };
}

}  // namespace torch_tpu
