// Sums, products, means, norms, logic over dims.
#include "lowering/reduction.h"

#include <cmath>
#include <vector>

#include "base/error.h"

namespace torch_tpu {

Dims ReducedDims(const Args& a, size_t i, int64_t rank) { return WrapDims(a.has(i) ? a.ints(i) : Dims{}, rank); }

Value Kept(Builder& b, Value reduced, const Dims& original, const Dims& dims, bool keep) {
  return keep ? KeepDims(b, reduced, original, dims) : reduced;
}

int64_t CountOf(const Dims& original, const Dims& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= original.at(dim);
  return count;
}

Value LogSumExp(Builder& b, Value x, const Dims& dims) {
  if (CountOf(x.dims(), dims) == 0) return b.Log(Sum(b, x, dims));  // log 0
  const bool complex = IsComplex(x.dtype());
  Value most = ReduceMax(b, complex ? b.Real(x) : x, dims);
  // An infinite maximum would turn x - maximum into NaN.
  most = b.Select(Eq(b, b.Abs(most), INFINITY), Full(b, most, 0), most);
  if (complex) most = Cast(b, most, x.dtype());
  Value spread = b.BroadcastTo(KeepDims(b, most, x.dims(), dims), x.dims());
  return b.Add(b.Log(Sum(b, b.Exp(b.Subtract(x, spread)), dims)), most);
}

namespace {

// sum and prod make int64 of bool and integers unless told otherwise.
DType AccumulatedType(const Args& a, size_t dtype_at) {
  const DType own = a.tensor(0).dtype();
  return a.dtype_or(dtype_at, IsInteger(own) || IsBool(own) ? DType::kInt64 : own);
}

Value SumOver(Builder& b, Value x, DType dtype, const Dims& dims) {
  if (IsBool(dtype)) {
    return dims.empty() ? Cast(b, x, dtype) : b.Reduce(Cast(b, x, dtype), Builder::Reducer::kOr, dims);
  }
  return Cast(b, Sum(b, ToCompute(b, Cast(b, x, dtype)), dims), dtype);
}

Values SumAll(Builder& b, const Args& a) {
  return {SumOver(b, a.tensor(0), AccumulatedType(a, 1), WrapDims({}, a.tensor(0).rank()))};
}

Values SumDims(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims dims = ReducedDims(a, 1, x.rank());
  return {Kept(b, SumOver(b, x, AccumulatedType(a, 3), dims), x.dims(), dims, a.flag(2))};
}

Values NanSum(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims dims = ReducedDims(a, 1, x.rank());
  Value clean = IsFloat(x.dtype()) || IsComplex(x.dtype()) ? b.Select(IsNan(b, x), Full(b, x, 0), x) : x;
  return {Kept(b, SumOver(b, clean, AccumulatedType(a, 3), dims), x.dims(), dims, a.flag(2))};
}

Value MeanOver(Builder& b, Value x, DType dtype, const Dims& dims) {
  Check(IsFloat(dtype) || IsComplex(dtype),
        "mean(): could not infer output dtype. Input dtype must be either a floating ",
        "point or complex dtype. Got: ", Name(dtype));
  Value wide = ToCompute(b, Cast(b, x, dtype));
  Value sum = Sum(b, wide, dims);
  const double count = static_cast<double>(CountOf(x.dims(), dims));
  return Cast(b, b.Divide(sum, Full(b, sum, count)), dtype);
}

Values MeanAll(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  return {MeanOver(b, x, a.dtype_or(1, x.dtype()), WrapDims({}, x.rank()))};
}

Values MeanDims(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims dims = ReducedDims(a, 1, x.rank());
  return {Kept(b, MeanOver(b, x, a.dtype_or(3, x.dtype()), dims), x.dims(), dims, a.flag(2))};
}

Value ProdOver(Builder& b, Value x, DType dtype, const Dims& dims) {
  Value wide = ToCompute(b, Cast(b, x, dtype));
  if (dims.empty()) return Cast(b, wide, dtype);
  const auto reducer = IsBool(dtype) ? Builder::Reducer::kAnd : Builder::Reducer::kMul;
  return Cast(b, b.Reduce(wide, reducer, dims), dtype);
}

Values ProdAll(Builder& b, const Args& a) {
  return {ProdOver(b, a.tensor(0), AccumulatedType(a, 1), WrapDims({}, a.tensor(0).rank()))};
}

Values ProdDim(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims dims = WrapDims({a.integer(1)}, x.rank());
  return {Kept(b, ProdOver(b, x, AccumulatedType(a, 3), dims), x.dims(), dims, a.flag(2))};
}

// all and any answer in bool, but uint8 stays uint8.
Value Truth(Builder& b, Value x, bool all, const Dims& dims) {
  Value truth = Cast(b, x, DType::kBool);
  if (!dims.empty()) truth = b.Reduce(truth, all ? Builder::Reducer::kAnd : Builder::Reducer::kOr, dims);
  return x.dtype() == DType::kUInt8 ? b.Convert(truth, DType::kUInt8) : truth;
}

template <bool kAll>
Values TruthAll(Builder& b, const Args& a) {
  return {Truth(b, a.tensor(0), kAll, WrapDims({}, a.tensor(0).rank()))};
}

template <bool kAll>
Values TruthDim(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims dims = WrapDims({a.integer(1)}, x.rank());
  return {Kept(b, Truth(b, x, kAll, dims), x.dims(), dims, a.flag(2))};
}

// Here an empty list means no dim at all.
template <bool kAll>
Values TruthDims(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const bool none = a.has(1) && a.ints(1).empty();
  const Dims dims = none ? Dims{} : ReducedDims(a, 1, x.rank());
  return {Kept(b, Truth(b, x, kAll, dims), x.dims(), dims, a.flag(2))};
}

Value CountNonzero(Builder& b, Value x, const Dims& dims) {
  return Sum(b, b.Convert(Cast(b, x, DType::kBool), DType::kInt64), dims);
}

Values CountNonzeroDim(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  return {CountNonzero(b, x, a.has(1) ? WrapDims({a.integer(1)}, x.rank()) : WrapDims({}, x.rank()))};
}

Values CountNonzeroDims(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  return {CountNonzero(b, x, ReducedDims(a, 1, x.rank()))};
}

Values LogSumExpRow(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const DType dtype = FloatResult(x.dtype());
  const Dims dims = ReducedDims(a, 1, x.rank());
  Value result = Cast(b, LogSumExp(b, ToCompute(b, Cast(b, x, dtype)), dims), dtype);
  return {Kept(b, result, x.dims(), dims, a.flag(2))};
}

// The vector p-norm of |x|.
Value Norm(Builder& b, Value x, double p, DType dtype, const Dims& dims) {
  Check(IsFloat(dtype) || IsComplex(dtype),
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ", Name(dtype));
  Value wide = ToCompute(b, Cast(b, x, dtype));
  Value size = b.Abs(wide);
  const DType result = RealOf(dtype);
  auto power = [&](Value v, double e) { return b.Power(v, Full(b, v, e)); };
  Value y;
  if (std::isinf(p) && p > 0) {
    y = ReduceMax(b, size, dims);
    if (CountOf(x.dims(), dims) == 0) y = Full(b, y, 0);
  } else if (std::isinf(p)) {
    y = ReduceMin(b, size, dims);
  } else if (p == 0) {
    y = Sum(b, b.Convert(b.Compare(size, Full(b, size, 0), Direction::kNe), size.dtype()), dims);
  } else if (p == 1) {
    y = Sum(b, size, dims);
  } else if (p == 2) {
    y = b.Sqrt(Sum(b, b.Multiply(size, size), dims));
  } else {
    y = power(Sum(b, power(size, p), dims), 1 / p);
  }
  return Cast(b, y, result);
}

double Order(const Args& a, size_t i) {
  if (!a.has(i)) return 2.0;
  std::optional<double> p = a.constant(i);
  Check(p.has_value(), "norm: expected an order that is part of the program, got an operand");
  return *p;
}

Values NormAll(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  return {Norm(b, x, Order(a, 1), a.dtype_or(2, x.dtype()), WrapDims({}, x.rank()))};
}

// norm.ScalarOpt_dim(_dtype) and linalg_vector_norm: (self, p, dim, keepdim, dtype)
Values NormDims(Builder& b, const Args& a) {
  Value x = a.tensor(0);
  const Dims dims = ReducedDims(a, 2, x.rank());
  Value y = Norm(b, x, Order(a, 1), a.dtype_or(4, x.dtype()), dims);
  return {Kept(b, y, x.dims(), dims, a.flag(3))};
}

// self, dim, keepdim, mode: exclusive or of the elements' 64-bit patterns, floats as float64
Values HashTensor(Builder& b, const Args& a) {
  Check(a.integer_or(3, 0) == 0, "Unknown hash_tensor reduction mode: ", a.integer_or(3, 0));
  Value x = a.tensor(0);
  const Dims dims = ReducedDims(a, 1, x.rank());
  Value bits = IsFloat(x.dtype()) ? b.BitcastConvert(b.Convert(x, DType::kFloat64), DType::kUInt64)
                                  : b.Convert(x, DType::kUInt64);
  if (!dims.empty()) {
    bits = b.ReduceMany({bits}, {b.Zero(DType::kUInt64)}, dims,
                        [&](const Values& v) { return Values{b.Xor(v[0], v[1])}; })[0];
  }
  return {Kept(b, bits, x.dims(), dims, a.flag(2))};
}

constexpr OpRow kRows[] = {
    {"hash_tensor", HashTensor},
    {"sum", SumAll},
    {"sum.dim_IntList", SumDims},
    {"nansum", NanSum},
    {"mean", MeanAll},
    {"mean.dim", MeanDims},
    {"prod", ProdAll},
    {"prod.dim_int", ProdDim},
    {"all", TruthAll<true>},
    {"all.dim", TruthDim<true>},
    {"all.dims", TruthDims<true>},
    {"any", TruthAll<false>},
    {"any.dim", TruthDim<false>},
    {"any.dims", TruthDims<false>},
    {"count_nonzero", CountNonzeroDim},
    {"count_nonzero.dim_IntList", CountNonzeroDims},
    {"logsumexp", LogSumExpRow},
    {"norm.Scalar", NormAll, kKeyScalars},
    {"norm.ScalarOpt_dtype", NormAll, kKeyScalars},
    {"norm.ScalarOpt_dim", NormDims, kKeyScalars},
    {"norm.ScalarOpt_dim_dtype", NormDims, kKeyScalars},
    {"linalg_vector_norm", NormDims, kKeyScalars},
};

}  // namespace

std::span<const OpRow> SumRows() { return kRows; }

std::span<const OpRow> ReductionRows() {
  static const std::vector<OpRow>* rows = [] {
    auto* all = new std::vector<OpRow>;
    for (auto part : {SumRows(), ExtremeRows(), MomentRows(), CumulativeRows(), SegmentRows()}) {
      all->insert(all->end(), part.begin(), part.end());
    }
    return all;
  }();
  return *rows;
}

}  // namespace torch_tpu
