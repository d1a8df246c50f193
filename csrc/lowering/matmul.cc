// Matrix products. Halves accumulate in float32 and round once, after alpha, beta and the bias, as on PyTorch's CPU.
#include <optional>

#include "base/error.h"
#include "lowering/grouped_matmul.h"
#include "lowering/math.h"
#include "lowering/table.h"

namespace torch_tpu {
namespace {

// The contraction, in the accumulation type: callers round when they are done.
Value Accumulated(Builder& b, Value lhs, Value rhs, const DotDims& dims) {
  Check(lhs.dtype() == rhs.dtype(), "matmul: expected operands of one dtype, got ", Name(lhs.dtype()), " and ",
        Name(rhs.dtype()));
  if (IsBool(lhs.dtype())) {  // any of the products
    Value counts = b.DotGeneral(b.Convert(lhs, DType::kInt32), b.Convert(rhs, DType::kInt32), dims, DType::kInt32);
    return b.Convert(counts, DType::kBool);
  }
  return b.DotGeneral(lhs, rhs, dims, ComputeType(lhs.dtype()));
}

Value Product(Builder& b, Value lhs, Value rhs, const DotDims& dims) {
  return b.Convert(Accumulated(b, lhs, rhs, dims), lhs.dtype());
}

Value Conjugate(Builder& b, Value x) { return IsComplex(x.dtype()) ? b.Complex(b.Real(x), b.Negate(b.Imag(x))) : x; }

const DotDims kMatrixMatrix{{}, {}, {1}, {0}};
const DotDims kMatrixVector{{}, {}, {1}, {0}};
const DotDims kVectorVector{{}, {}, {0}, {0}};
const DotDims kBatched{{0}, {0}, {2}, {1}};
const DotDims kBatchSummed{{}, {}, {0, 2}, {0, 1}};

bool IsConstant(const Args& a, size_t i, double value) {
  if (!a.has(i)) return value == 1;  // alpha and beta default to 1
  std::optional<double> constant = a.constant(i);
  return constant && *constant == value;
}

// x * argument `i`, with no multiplication when the program knows that it is 1.
Value Scaled(Builder& b, const Args& a, Value x, size_t i) {
  if (IsConstant(a, i, 1)) return x;
  return b.Multiply(x, FullLike(b, a.scalar(b, i, x.dtype()), x));
}

// beta * self + alpha * product, in the product's type. With beta == 0 self is not read, so that its NaNs don't count.
Value Combine(Builder& b, const Args& a, Value self, Value product, size_t beta, size_t alpha) {
  Value result = Scaled(b, a, product, alpha);
  if (IsConstant(a, beta, 0)) return result;
  Value added = b.BroadcastTo(Cast(b, self, product.dtype()), product.dims());
  return b.Add(Scaled(b, a, added, beta), result);
}

// alpha and beta are the two arguments after the three tensors (and `out_dtype`, where there is one).
template <const DotDims& kDims>
Values EmitAdded(Builder& b, const Args& a) {
  Value product = Accumulated(b, a.tensor(1), a.tensor(2), kDims);
  return {b.Convert(Combine(b, a, a.tensor(0), product, 3, 4), a.tensor(1).dtype())};
}

template <const DotDims& kDims>
Values EmitAddedTo(Builder& b, const Args& a) {
  DType out = a.dtype_or(3, a.tensor(1).dtype());
  Value product = b.DotGeneral(a.tensor(1), a.tensor(2), kDims, ComputeType(out));
  return {b.Convert(Combine(b, a, a.tensor(0), product, 4, 5), out)};
}

template <const DotDims& kDims>
Values EmitProduct(Builder& b, const Args& a) {
  return {Product(b, a.tensor(0), a.tensor(1), kDims)};
}

template <const DotDims& kDims>
Values EmitProductTo(Builder& b, const Args& a) {
  DType out = a.dtype_or(2, a.tensor(0).dtype());
  return {b.Convert(b.DotGeneral(a.tensor(0), a.tensor(1), kDims, ComputeType(out)), out)};
}

Values EmitVdot(Builder& b, const Args& a) {
  return {Product(b, Conjugate(b, a.tensor(0)), a.tensor(1), kVectorVector)};
}

Values EmitAddr(Builder& b, const Args& a) {
  DType dtype = ResultType(a, {0, 1, 2});
  DType compute = ComputeType(dtype);
  Value left = Cast(b, a.tensor(1), compute), right = Cast(b, a.tensor(2), compute);
  Dims dims = {left.dim(0), right.dim(0)};
  Value product = b.Multiply(b.BroadcastInDim(left, dims, {0}), b.BroadcastInDim(right, dims, {1}));
  return {b.Convert(Combine(b, a, a.tensor(0), product, 3, 4), dtype)};
}

Values EmitIntMm(Builder& b, const Args& a) {
  return {b.DotGeneral(b.Convert(a.tensor(0), DType::kInt32), b.Convert(a.tensor(1), DType::kInt32), kMatrixMatrix,
                       DType::kInt32)};
}

// addmm, then relu or (tanh-free) gelu: the activation is the table's own row.
Values EmitAddmmActivation(Builder& b, const Args& a) {
  Value x = EmitAdded<kMatrixMatrix>(b, a)[0];
  const OpRow* row = FindRow(a.flag(5) ? "gelu" : "relu");
  Check(row != nullptr, "_addmm_activation: expected a row for its activation, got none");
  OpCall call;
  call.row = row;
  call.operands.push_back({0, false});
  Arg self;
  self.kind = Arg::Kind::kTensor;
  call.args.push_back(self);
  return row->emit(b, Args(call, {x}));
}

// self, mat2 (float8), scale_a, scale_b (one number, or one per row and per column), bias, scale_result, out_dtype,
// use_fast_accum
Values EmitScaledMm(Builder& b, const Args& a) {
  Value lhs = a.tensor(0), rhs = a.tensor(1);
  Check(lhs.rank() == 2 && rhs.rank() == 2 && lhs.dim(1) == rhs.dim(0),
        "_scaled_mm: expected matrices that fit, got sizes ", ToString(lhs.dims()), " and ", ToString(rhs.dims()));
  const Dims dims = {lhs.dim(0), rhs.dim(1)};
  auto scale = [&](size_t i, const Dims& per_line) {
    Value s = ToCompute(b, a.tensor(i));
    return b.BroadcastTo(s.numel() == 1 ? b.Reshape(s, {}) : b.Reshape(s, per_line), dims);
  };
  Value product =
      b.DotGeneral(b.Convert(lhs, DType::kFloat32), b.Convert(rhs, DType::kFloat32), kMatrixMatrix, DType::kFloat32);
  product = b.Multiply(product, b.Multiply(scale(2, {dims[0], 1}), scale(3, {1, dims[1]})));
  if (a.has(4)) product = b.Add(product, b.BroadcastTo(ToCompute(b, a.tensor(4)), dims));
  const DType dtype = a.dtype_or(6, lhs.dtype());
  if (a.has(5) && BitWidth(dtype) == 8) product = b.Multiply(product, scale(5, dims));
  return {Cast(b, product, dtype)};
}

constexpr OpRow kRows[] = {
    {"mm", EmitProduct<kMatrixMatrix>},
    {"mm.dtype", EmitProductTo<kMatrixMatrix>},
    {"bmm", EmitProduct<kBatched>},
    {"bmm.dtype", EmitProductTo<kBatched>},
    {"mv", EmitProduct<kMatrixVector>},
    {"dot", EmitProduct<kVectorVector>},
    {"vdot", EmitVdot},
    {"addmm", EmitAdded<kMatrixMatrix>},
    {"addmm.dtype", EmitAddedTo<kMatrixMatrix>},
    {"baddbmm", EmitAdded<kBatched>},
    {"baddbmm.dtype", EmitAddedTo<kBatched>},
    {"addbmm", EmitAdded<kBatchSummed>},
    {"addmv", EmitAdded<kMatrixVector>},
    {"addr", EmitAddr},
    {"_addmm_activation", EmitAddmmActivation},
    {"_int_mm", EmitIntMm},
    {"_scaled_mm", EmitScaledMm},
    {"_grouped_mm", EmitGroupedMm, kNoMeta},  // the meta kernel pads the result's rows for another device
};

}  // namespace

std::span<const OpRow> MatmulRows() { return kRows; }

}  // namespace torch_tpu
