// Internal rows with which every mode reads and writes views, and stores results in the layout PyTorch expects.
#include <bit>

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

// tpu::literal(ScalarType dtype, int[] dims, int[] words) -> Tensor: 0-d or 1-d; words are integers, or the bits of
// float64 (two words a complex number).
Values EmitLiteral(Builder& b, const Args& a) {
  const DType dtype = a.dtype_or(0, DType::kFloat64);
  const Dims& words = a.ints(2);
  std::vector<double> reals;
  for (int64_t word : words) reals.push_back(std::bit_cast<double>(word));
  const bool many = !a.ints(1).empty();
  if (IsComplex(dtype)) return {b.ConstantComplex(dtype, {reals.at(0), reals.at(1)})};
  if (IsFloat(dtype)) return {many ? b.ConstantFloats(dtype, reals) : b.Constant(dtype, reals.at(0))};
  return {many ? b.ConstantInts(dtype, words) : b.ConstantInt(dtype, words.at(0))};
}

// tpu::random_state_at(Tensor state, int words) -> Tensor: the generator's state after `words` words more.
Values EmitRandomStateAt(Builder& b, const Args& a) {
  return {b.Add(a.tensor(0), b.ConstantInts(DType::kUInt64, {0, a.integer(1)}))};
}

// tpu::unpack(Tensor words, int start, ScalarType dtype, int[] dims) -> Tensor: a host value of a 1-d operand that
// holds many, as float64 (a complex number is two) or int64.
Values EmitUnpack(Builder& b, const Args& a) {
  const DType dtype = a.dtype_or(2, DType::kFloat64);
  const Dims& dims = a.ints(3);
  const int64_t start = a.integer(1);
  auto piece = [&](int64_t first, const Dims& sizes) {
    return b.Reshape(b.Slice(a.tensor(0), {first}, {first + Product(sizes)}), sizes);
  };
  if (IsComplex(dtype)) return {b.Convert(b.Complex(piece(start, {}), piece(start + 1, {})), dtype)};
  Value value = piece(start, dims);
  if (dtype == DType::kUInt64) return {b.BitcastConvert(value, dtype)};
  return {Cast(b, value, dtype)};
}

// tpu::barrier(Tensor x, Tensor after) -> Tensor: x, and no compiler may merge what is computed from it with what is
// computed from x, or compute it before `after`.
Values EmitBarrier(Builder& b, const Args& a) { return {b.OptimizationBarrier({a.tensor(0), a.tensor(1)})[0]}; }

constexpr OpRow kRows[] = {
    {"tpu::view_read", EmitViewRead, kInternal},
    {"tpu::view_write", EmitViewWrite, kInternal},
    {"tpu::store", EmitStore, kInternal},
    {"tpu::resize_flat", EmitResizeFlat, kInternal},
    {"tpu::uninitialized", EmitUninitialized, kInternal},
    {"tpu::identity", EmitIdentity, kInternal},
    {"tpu::literal", EmitLiteral, kInternal},
    {"tpu::barrier", EmitBarrier, kInternal},
    {"tpu::unpack", EmitUnpack, kInternal},
    {"tpu::random_state_at", EmitRandomStateAt, kInternal},
};

}  // namespace

std::span<const OpRow> ViewRows() { return kRows; }

}  // namespace torch_tpu
