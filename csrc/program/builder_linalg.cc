// Contractions, convolution, factorizations and Fourier transforms.
#include <algorithm>

#include "program/builder_impl.h"

namespace torch_tpu {
namespace {

std::string PrecisionConfig(Precision precision) {
  const std::string_view name = precision == Precision::kDefault ? "DEFAULT"
                                : precision == Precision::kHigh  ? "HIGH"
                                                                 : "HIGHEST";
  return Cat("precision_config = [#stablehlo<precision ", name, ">, #stablehlo<precision ", name, ">]");
}

Dims Joined(Dims first, const Dims& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A contraction may accumulate in another type of the same kind.
void ExpectAccumulation(std::string_view op, const Value& lhs, const Value& rhs, DType result) {
  Check(lhs.dtype() == rhs.dtype(), op, ": expected operands of one element type, got ", lhs.type().ToString(), " and ",
        rhs.type().ToString());
  const bool integers = IsInteger(lhs.dtype()) && IsInteger(result);
  Check((KindOf(lhs.dtype()) == KindOf(result) || integers) && (KindOf(result) & kNumberKinds) != 0, op,
        ": expected a result type of the operands' kind, got ", Name(result), " for ", Name(lhs.dtype()));
}

void ExpectPaired(std::string_view op, std::string_view what, const Value& lhs, const Dims& lhs_dims, const Value& rhs,
                  const Dims& rhs_dims) {
  ExpectDims(op, what, lhs_dims, lhs.rank());
  ExpectDims(op, what, rhs_dims, rhs.rank());
  ExpectCount(op, what, lhs_dims.size(), rhs_dims.size());
  for (size_t i = 0; i < lhs_dims.size(); ++i) {
    Check(lhs.dims()[lhs_dims[i]] == rhs.dims()[rhs_dims[i]], op, ": expected ", what, " of equal sizes, got ",
          ToString(lhs_dims), " of ", ToString(lhs.dims()), " and ", ToString(rhs_dims), " of ", ToString(rhs.dims()));
  }
}

// "b, f, 0, 1": what each dim of an array is.
std::string Layout(int64_t first, char first_name, int64_t second, char second_name, const Dims& spatial) {
  std::vector<std::string> names(spatial.size() + 2);
  names[first] = first_name;
  names[second] = second_name;
  for (size_t i = 0; i < spatial.size(); ++i) names[spatial[i]] = std::to_string(i);
  std::string text = "[";
  for (size_t i = 0; i < names.size(); ++i) text += (i ? ", " : "") + names[i];
  return text + "]";
}

constexpr std::string_view kConv = "convolution";

void ExpectLayout(std::string_view what, int64_t first, int64_t second, const Dims& spatial, size_t rank) {
  ExpectCount(kConv, Cat("dims named for the ", what), rank, spatial.size() + 2);
  ExpectDims(kConv, Cat("dims of the ", what), Joined({first, second}, spatial), static_cast<int64_t>(rank));
}

ConvWindow Filled(const ConvWindow& window, size_t rank) {
  ConvWindow full = window;
  for (Dims* dims : {&full.strides, &full.lhs_dilation, &full.rhs_dilation}) {
    if (dims->empty()) dims->assign(rank, 1);
    ExpectCount(kConv, "strides and dilations", rank, dims->size());
    for (int64_t size : *dims)
      Check(size > 0, kConv, ": expected strides and dilations of 1 or more, got ", ToString(*dims));
  }
  for (Dims* dims : {&full.pad_low, &full.pad_high}) {
    if (dims->empty()) dims->assign(rank, 0);
    ExpectCount(kConv, "pads", rank, dims->size());
  }
  if (full.reversal.empty()) full.reversal.assign(rank, false);
  ExpectCount(kConv, "reversal flags", rank, full.reversal.size());
  return full;
}

}  // namespace

Value Builder::DotGeneral(Value lhs, Value rhs, const DotDims& dims, DType result) {
  constexpr std::string_view kOp = "dot_general";
  impl_->Use(kOp, {lhs, rhs});
  ExpectAccumulation(kOp, lhs, rhs, result);
  ExpectPaired(kOp, "batch dims", lhs, dims.lhs_batch, rhs, dims.rhs_batch);
  ExpectPaired(kOp, "contracting dims", lhs, dims.lhs_contract, rhs, dims.rhs_contract);
  const Dims lhs_used = Joined(dims.lhs_batch, dims.lhs_contract), rhs_used = Joined(dims.rhs_batch, dims.rhs_contract);
  ExpectDims(kOp, "batch and contracting dims", lhs_used, lhs.rank());
  ExpectDims(kOp, "batch and contracting dims", rhs_used, rhs.rank());
  Dims out;
  for (int64_t dim : dims.lhs_batch) out.push_back(lhs.dims()[dim]);
  out = Joined(Joined(out, Without(lhs.dims(), lhs_used)), Without(rhs.dims(), rhs_used));
  const std::string attributes =
      Cat("dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = ", Brackets(dims.lhs_batch),
          ", rhs_batching_dimensions = ", Brackets(dims.rhs_batch),
          ", lhs_contracting_dimensions = ", Brackets(dims.lhs_contract),
          ", rhs_contracting_dimensions = ", Brackets(dims.rhs_contract), ">, ", PrecisionConfig(precision_));
  return impl_->Emit(kOp, {lhs, rhs}, {result, out}, attributes);
}

Value Builder::Convolution(Value lhs, Value rhs, const ConvDims& dims, const ConvWindow& window, DType result) {
  impl_->Use(kConv, {lhs, rhs});
  ExpectAccumulation(kConv, lhs, rhs, result);
  const size_t rank = lhs.dims().size();
  Check(rank >= 2 && rhs.dims().size() == rank, kConv, ": expected operands of equal rank, 2 or more, got ",
        lhs.type().ToString(), " and ", rhs.type().ToString());
  ExpectLayout("input", dims.lhs_batch, dims.lhs_feature, dims.lhs_spatial, rank);
  ExpectLayout("filter", dims.rhs_out, dims.rhs_in, dims.rhs_spatial, rank);
  ExpectLayout("output", dims.out_batch, dims.out_feature, dims.out_spatial, rank);
  const ConvWindow full = Filled(window, rank - 2);
  const int64_t groups = full.feature_groups, batch_groups = full.batch_groups;
  const int64_t batch = lhs.dims()[dims.lhs_batch], features = lhs.dims()[dims.lhs_feature];
  const int64_t filter_in = rhs.dims()[dims.rhs_in], filter_out = rhs.dims()[dims.rhs_out];
  Check(groups > 0 && batch_groups > 0 && (groups == 1 || batch_groups == 1), kConv,
        ": expected one of feature and batch groups to be 1, got ", groups, " and ", batch_groups);
  Check(features == filter_in * groups, kConv, ": expected ", filter_in * groups, " input features for filter ",
        ToString(rhs.dims()), " and ", groups, " groups, got ", features, " of ", ToString(lhs.dims()));
  Check(filter_out % (groups * batch_groups) == 0 && batch % batch_groups == 0, kConv, ": expected output features of ",
        ToString(rhs.dims()), " and batch of ", ToString(lhs.dims()), " to be multiples of the groups, got ", groups,
        " feature and ", batch_groups, " batch groups");
  Dims out(rank);
  out[dims.out_batch] = batch / batch_groups;
  out[dims.out_feature] = filter_out;
  for (size_t i = 0; i + 2 < rank; ++i) {
    const int64_t size = lhs.dims()[dims.lhs_spatial[i]], taps = rhs.dims()[dims.rhs_spatial[i]];
    const int64_t dilated = size == 0 ? 0 : (size - 1) * full.lhs_dilation[i] + 1;
    const int64_t padded = dilated + full.pad_low[i] + full.pad_high[i];
    const int64_t extent = taps == 0 ? 0 : (taps - 1) * full.rhs_dilation[i] + 1;
    Check(padded >= 0, kConv, ": expected spatial sizes of 0 or more after padding, got ", padded, " of ",
          ToString(lhs.dims()));
    out[dims.out_spatial[i]] = padded == 0 || padded < extent ? 0 : (padded - extent) / full.strides[i] + 1;
  }
  const std::string attributes =
      Cat("window_strides = ", Array(full.strides), ", padding = ", Pairs(full.pad_low, full.pad_high),
          ", lhs_dilation = ", Array(full.lhs_dilation), ", rhs_dilation = ", Array(full.rhs_dilation),
          ", window_reversal = ", Array(full.reversal), ", dimension_numbers = #stablehlo.conv<",
          Layout(dims.lhs_batch, 'b', dims.lhs_feature, 'f', dims.lhs_spatial), "x",
          Layout(dims.rhs_out, 'o', dims.rhs_in, 'i', dims.rhs_spatial), "->",
          Layout(dims.out_batch, 'b', dims.out_feature, 'f', dims.out_spatial), ">, feature_group_count = ", groups,
          " : i64, batch_group_count = ", batch_groups, " : i64, ", PrecisionConfig(precision_));
  return impl_->Emit(kConv, {lhs, rhs}, {result, out}, attributes);
}

namespace {

void ExpectMatrices(std::string_view op, const Value& x) {
  Check(x.rank() >= 2 && x.dim(-1) == x.dim(-2), op, ": expected square matrices, got ", x.type().ToString());
}

}  // namespace

Value Builder::Cholesky(Value x, bool lower) {
  impl_->Use("cholesky", {x});
  impl_->ExpectKind("cholesky", x, kInexactKinds);
  ExpectMatrices("cholesky", x);
  return impl_->Emit("cholesky", {x}, x.type(), Cat("lower = ", Bool(lower)));
}

Value Builder::TriangularSolve(Value a, Value b, bool left_side, bool lower, bool unit_diagonal, bool transpose_a,
                               bool conjugate_a) {
  constexpr std::string_view kOp = "triangular_solve";
  impl_->Use(kOp, {a, b});
  impl_->ExpectKind(kOp, a, kInexactKinds);
  ExpectMatrices(kOp, a);
  bool fits = a.dtype() == b.dtype() && a.rank() == b.rank() && b.dim(left_side ? -2 : -1) == a.dim(-1);
  for (int64_t i = 0; fits && i + 2 < a.rank(); ++i) fits = a.dims()[i] == b.dims()[i];
  Check(fits, kOp, ": expected a right-hand side that fits ", a.type().ToString(),
        left_side ? " on the left" : " on the right", ", got ", b.type().ToString());
  Check(transpose_a || !conjugate_a, kOp, ": expected conjugation only with a transpose, got conjugation alone");
  const std::string_view transpose = conjugate_a ? "ADJOINT" : transpose_a ? "TRANSPOSE" : "NO_TRANSPOSE";
  return impl_->Emit(kOp, {a, b}, b.type(),
                     Cat("left_side = ", Bool(left_side), ", lower = ", Bool(lower), ", unit_diagonal = ",
                         Bool(unit_diagonal), ", transpose_a = #stablehlo<transpose ", transpose, ">"));
}

Value Builder::Fft(Value x, FftKind kind, const Dims& lengths) {
  impl_->Use("fft", {x});
  impl_->ExpectKind("fft", x, kind == FftKind::kRfft ? kFloatKind : kComplexKind);
  Check(BitWidth(x.dtype()) >= 32, "fft: expected 32 or 64 bits a component, got ", x.type().ToString());
  const size_t count = lengths.size();
  Check(count >= 1 && count <= 3 && x.dims().size() >= count, "fft: expected 1 to 3 lengths and as many dims, got ",
        ToString(lengths), " for ", x.type().ToString());
  Dims dims = x.dims();
  const size_t first = dims.size() - count;
  for (size_t i = 0; i < count; ++i) {
    const bool half = kind == FftKind::kIrfft && i + 1 == count;
    const int64_t expected = half && lengths[i] != 0 ? lengths[i] / 2 + 1 : lengths[i];
    Check(dims[first + i] == expected, "fft: expected size ", expected, " in dim ", first + i, ", got ",
          x.type().ToString());
  }
  DType dtype = x.dtype();
  std::string_view name = kind == FftKind::kFft ? "FFT" : "IFFT";
  if (kind == FftKind::kRfft) {
    name = "RFFT";
    dtype = ComplexOf(dtype);
    if (dims.back() != 0) dims.back() = lengths.back() / 2 + 1;
  } else if (kind == FftKind::kIrfft) {
    name = "IRFFT";
    dtype = RealOf(dtype);
    dims.back() = lengths.back();
  }
  return impl_->Emit("fft", {x}, {dtype, dims},
                     Cat("fft_type = #stablehlo<fft_type ", name, ">, fft_length = ", Array(lengths)));
}

}  // namespace torch_tpu
