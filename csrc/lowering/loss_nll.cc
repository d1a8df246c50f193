// Negative log likelihood: class scores [N, C, ...] or [C], class indices [N, ...] or [].
#include "base/error.h"
#include "lowering/elementwise.h"
#include "lowering/loss.h"

namespace torch_tpu {
namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

struct Classes {
  int64_t dim = 0, count = 0;
  Value index;   // the target, with ignored ones replaced by 0; dims of the target
  Value weight;  // of each target in the computing type; 0 where ignored
};

// One coordinate per dim of `x` but the class dim's, which is `index`.
Value PickClass(Builder& b, Value x, Value index, int64_t dim) {
  if (x.rank() == 1) return b.Reshape(b.DynamicSlice(x, {index}, {1}), {});
  Dims batch = index.dims();
  Dims with_one = batch;
  with_one.push_back(1);
  GatherDims dims;
  dims.collapsed_slice_dims = {dim};
  dims.start_index_map = {dim};
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != dim) dims.operand_batching_dims.push_back(i);
  }
  for (int64_t i = 0; i < index.rank(); ++i) dims.start_indices_batching_dims.push_back(i);
  dims.index_vector_dim = index.rank();
  return b.Gather(x, b.Reshape(index, with_one), dims, Dims(x.rank(), 1));
}

Classes ReadClasses(Builder& b, const Args& a, size_t self_at, size_t target_at, size_t weight_at, size_t ignore_at) {
  Value self = a.tensor(self_at), target = a.tensor(target_at);
  Classes c;
  Check(self.rank() >= 1, "nll_loss: expected scores with a class dim, got a 0-d tensor");
  c.dim = self.rank() == 1 ? 0 : 1;
  c.count = self.dim(c.dim);
  if (self.rank() == 1) target = b.Reshape(target, {});
  Dims expected = self.dims();
  expected.erase(expected.begin() + c.dim);
  Check(target.dims() == expected, "nll_loss: expected a target of dims ", ToString(expected), ", got ",
        ToString(target.dims()));
  Value classes = target.dtype() == DType::kUInt8 ? b.Convert(target, DType::kInt64) : target;
  Value ignored = b.Compare(classes, Full(b, classes, static_cast<double>(a.integer(ignore_at))), Direction::kEq);
  c.index = b.Select(ignored, Full(b, classes, 0), classes);
  const DType compute = ComputeType(self.dtype());
  Value zero = b.Zero(compute, target.dims());
  Value weight;
  if (Value table = a.tensor_or_absent(weight_at); table) {
    table = Cast(b, Cast(b, table, self.dtype()), compute);
    Dims with_one = target.dims();
    with_one.push_back(1);
    GatherDims dims;
    dims.collapsed_slice_dims = {0};
    dims.start_index_map = {0};
    dims.index_vector_dim = target.rank();
    weight = b.Gather(table, b.Reshape(c.index, with_one), dims, {1});
  } else {
    weight = b.One(compute, target.dims());
  }
  c.weight = b.Select(ignored, zero, weight);
  return c;
}

// (self, target, weight?, reduction, ignore_index) -> (output, total_weight)
Values NllForward(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  const DType dtype = self.dtype();
  const int64_t reduction = a.integer(3);
  Classes c = ReadClasses(b, a, 0, 1, 2, 4);
  Value picked = ToCompute(b, PickClass(b, self, c.index, c.dim));
  Value zero = Full(b, picked, 0);
  // An ignored target counts nothing, whatever stands at class 0.
  Value weighted = b.Multiply(c.weight, b.Negate(picked));
  Value loss = b.Select(b.Compare(c.weight, zero, Direction::kEq), zero, weighted);
  if (reduction == kNone) {
    Value shaped = b.Reshape(loss, a.tensor(1).dims());
    return {Cast(b, shaped, dtype), b.Zero(dtype)};
  }
  const Dims all = WrapDims({}, loss.rank());
  Value total = Sum(b, c.weight, all), sum = Sum(b, loss, all);
  return {Cast(b, reduction == kMean ? b.Divide(sum, total) : sum, dtype), Cast(b, total, dtype)};
}

// (grad_output, self, target, weight?, reduction, ignore_index, total_weight)
Values NllBackward(Builder& b, const Args& a) {
  Value self = a.tensor(1);
  const DType dtype = self.dtype(), compute = ComputeType(dtype);
  const int64_t reduction = a.integer(4);
  Classes c = ReadClasses(b, a, 1, 2, 3, 5);
  Value grad = ToCompute(b, a.tensor(0));
  if (reduction == kNone) {
    grad = b.Reshape(grad, c.weight.dims());
  } else {
    grad = b.Reshape(grad, {});
    if (reduction == kMean) grad = b.Divide(grad, Cast(b, b.Reshape(a.tensor(6), {}), compute));
    grad = b.BroadcastTo(grad, c.weight.dims());
  }
  Value zero = Full(b, grad, 0);
  Value ignored = b.Compare(c.weight, zero, Direction::kEq);
  Value at_target = b.Select(ignored, zero, b.Negate(b.Multiply(c.weight, grad)));
  Dims spread;
  for (int64_t i = 0; i < self.rank(); ++i) {
    if (i != c.dim) spread.push_back(i);
  }
  Value classes = b.Iota(c.index.dtype(), self.dims(), c.dim);
  Value hit = b.Compare(classes, b.BroadcastInDim(c.index, self.dims(), spread), Direction::kEq);
  Value values = b.BroadcastInDim(Cast(b, at_target, dtype), self.dims(), spread);
  return {b.Select(hit, values, b.Zero(dtype, self.dims()))};
}

constexpr OpRow kRows[] = {
    {"nll_loss_forward", NllForward},
    {"nll_loss_backward", NllBackward},
    {"nll_loss2d_forward", NllForward},
    {"nll_loss2d_backward", NllBackward},
};

}  // namespace

std::span<const OpRow> NllLossRows() { return kRows; }

}  // namespace torch_tpu
