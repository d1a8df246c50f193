// Internal rows with which every mode reads and writes views, and stores results in the layout PyTorch expects.
#include "lowering/math.h"
#include "lowering/table.h"
#include "program/view.h"

namespace torch_tpu {
namespace {

// tpu::view_read(Tensor base, Tensor? starts, int[] plan) -> Tensor
Values EmitViewRead(Builder& b, const Args& a) {
  return {ReadView(b, a.tensor(0), ViewPlan::Decode(a.ints(2)), a.tensor_or_absent(1))};
}

// tpu::view_write(Tensor base, Tensor? starts, int[] plan, Tensor update) -> Tensor (the new base)
Values EmitViewWrite(Builder& b, const Args& a) {
  Value base = a.tensor(0), update = a.tensor(3);
  const ViewPlan plan = ViewPlan::Decode(a.ints(2));
  return {WriteView(b, base, plan, a.tensor_or_absent(1), update)};
}

// tpu::store(Tensor x, ScalarType dtype, int[] sizes, int[] order) -> Tensor: cast, broadcast to sizes, then transposed
// so that memory is row-major in `order`.
Values EmitStore(Builder& b, const Args& a) {
  Value x = Cast(b, a.tensor(0), a.dtype_or(1, a.tensor(0).dtype()));
  return {b.Transpose(b.BroadcastTo(x, a.ints(2)), a.ints(3))};
}

// tpu::resize_flat(Tensor base, int numel) -> Tensor: the base's leading elements, zeros behind them.
Values EmitResizeFlat(Builder& b, const Args& a) {
  Value x = b.Reshape(a.tensor(0), {a.tensor(0).numel()});
  return {b.Pad(x, b.Zero(x.dtype()), {0}, {a.integer(1) - x.numel()})};
}

// tpu::uninitialized(ScalarType dtype, int[] sizes) -> Tensor: what an unwritten storage reads as.
Values EmitUninitialized(Builder& b, const Args& a) { return {b.Zero(a.dtype_or(0, DType::kFloat32), a.ints(1))}; }

// tpu::identity(Tensor x) -> Tensor: what a copy computes; the store casts and broadcasts.
Values EmitIdentity(Builder& b, const Args& a) { return {a.tensor(0)}; }

constexpr OpRow kRows[] = {
    {"tpu::view_read", EmitViewRead, kInternal},
    {"tpu::view_write", EmitViewWrite, kInternal},
    {"tpu::store", EmitStore, kInternal},
    {"tpu::resize_flat", EmitResizeFlat, kInternal},
    {"tpu::uninitialized", EmitUninitialized, kInternal},
    {"tpu::identity", EmitIdentity, kInternal},
};

}  // namespace

std::span<const OpRow> ViewRows() { return kRows; }

}  // namespace torch_tpu
