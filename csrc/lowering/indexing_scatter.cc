// Writes by index: scatter and its reductions, index_add/copy/fill/reduce, index_put, put.
#include <string>

#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/indexing_list.h"
#include "lowering/math.h"

namespace torch_tpu {

namespace {

// Sums and products of halves go through float32: one rounding, at the end.
Value Accumulator(Builder& b, Value x, Combine combine) {
  return combine == CombineAdd || combine == CombineMul ? ToCompute(b, x) : x;
}

struct Along {
  Value self, index;
  int64_t dim;
};

Along AlongOperands(Builder& b, const Args& a) {
  Value self = AtLeast1d(b, a.tensor(0));
  return {self, AtLeast1d(b, a.tensor(2)), WrapDim(a.integer(1), self.rank())};
}

Value Source(Builder& b, Value source, const Value& index) {
  source = AtLeast1d(b, source);
  return source.dims() == index.dims() ? source : b.Slice(source, Dims(index.rank(), 0), index.dims());
}

Value PutAlongTyped(Builder& b, const Along& p, Value source, Combine combine) {
  Value x = Accumulator(b, p.self, combine);
  return Cast(b, PutAlong(b, x, p.index, Cast(b, source, x.dtype()), p.dim, combine), p.self.dtype());
}

Combine ScatterCombine(const std::string& reduce) {
  if (reduce == "add") return CombineAdd;
  if (reduce == "multiply") return CombineMul;
  Fail(Code::kInvalidArgument, "scatter: reduce argument must be either add or multiply, got ", reduce);
}

Values ScatterWith(Builder& b, const Args& a, bool value, Combine combine) {
  Along p = AlongOperands(b, a);
  if (p.index.numel() == 0) return {a.tensor(0)};
  Value source =
      value ? b.BroadcastInDim(a.scalar(b, 3, p.self.dtype()), p.index.dims(), {}) : Source(b, a.tensor(3), p.index);
  return {b.Reshape(PutAlongTyped(b, p, source, combine), a.tensor(0).dims())};
}

Values ScatterSrc(Builder& b, const Args& a) { return ScatterWith(b, a, false, CombineSet); }
Values ScatterValue(Builder& b, const Args& a) { return ScatterWith(b, a, true, CombineSet); }
Values ScatterAdd(Builder& b, const Args& a) { return ScatterWith(b, a, false, CombineAdd); }
Values ScatterReduceSrc(Builder& b, const Args& a) { return ScatterWith(b, a, false, ScatterCombine(a.text(4))); }
Values ScatterReduceValue(Builder& b, const Args& a) { return ScatterWith(b, a, true, ScatterCombine(a.text(4))); }

struct Reduction {
  Combine combine;
  bool mean;
};

Reduction ReductionNamed(const std::string& name) {
  if (name == "sum") return {CombineAdd, false};
  if (name == "prod") return {CombineMul, false};
  if (name == "mean") return {CombineAdd, true};
  if (name == "amax") return {CombineMax, false};
  if (name == "amin") return {CombineMin, false};
  Fail(Code::kInvalidArgument, "reduce argument must be either sum, prod, mean, amax or amin, got ", name);
}

Value NeutralOf(Builder& b, Combine combine, DType dtype, const Dims& dims) {
  if (combine == CombineMul) return b.One(dtype, dims);
  if (combine == CombineMax) return b.MinOf(dtype, dims);
  if (combine == CombineMin) return b.MaxOf(dtype, dims);
  return b.Zero(dtype, dims);
}

// `put(base, updates, combine)` combines updates into base at the op's places.
template <class Put>
Value ReduceInto(Builder& b, Value self, Value source, const std::string& name, bool include_self, const Put& put) {
  const Reduction r = ReductionNamed(name);
  Value x = Accumulator(b, self, r.combine);
  Value updates = Cast(b, source, x.dtype());
  Value touched;
  if (!include_self) {
    touched = put(b.Zero(DType::kBool, x.dims()), b.One(DType::kBool, updates.dims()), CombineSet);
    x = b.Select(touched, NeutralOf(b, r.combine, x.dtype(), x.dims()), x);
  }
  Value result = put(x, updates, r.combine);
  if (r.mean) {
    const DType dtype = x.dtype();
    Value start = include_self ? b.One(dtype, x.dims()) : b.Zero(dtype, x.dims());
    Value count = put(start, b.One(dtype, updates.dims()), CombineAdd);
    count = b.Maximum(count, b.One(dtype, x.dims()));
    Value quotient = b.Divide(result, count);
    if (IsInteger(dtype)) {  // floor
      Value zero = b.Zero(dtype, x.dims());
      Value rest = b.Remainder(result, count);
      Value down = b.And(b.Compare(rest, zero, Direction::kNe), b.Compare(rest, zero, Direction::kLt));
      quotient = b.Select(down, b.Subtract(quotient, b.One(dtype, x.dims())), quotient);
    }
    result = quotient;
  }
  return Cast(b, result, self.dtype());
}

// self, dim, index, src, reduce, include_self
Values ScatterReduceTwo(Builder& b, const Args& a) {
  Along p = AlongOperands(b, a);
  if (p.index.numel() == 0) return {a.tensor(0)};
  Value source = Source(b, a.tensor(3), p.index);
  const bool include_self = a.has(5) ? a.flag(5) : true;
  Value result = ReduceInto(
      b, p.self, source, a.text(4), include_self,
      [&](Value base, Value updates, Combine combine) { return PutAlong(b, base, p.index, updates, p.dim, combine); });
  return {b.Reshape(result, a.tensor(0).dims())};
}

// Source of index_add and friends: self's dims with index's length along dim.
Value RowsSource(Builder& b, Value source, const Along& p) {
  Dims dims = p.self.dims();
  dims[p.dim] = p.index.numel();
  return b.Reshape(source, dims);
}

// self, dim, index, source, alpha
Values IndexAdd(Builder& b, const Args& a) {
  Along p = AlongOperands(b, a);
  Value x = ToCompute(b, p.self);
  Value source = Cast(b, RowsSource(b, a.tensor(3), p), x.dtype());
  if (a.has(4) && a.constant(4) != 1.0) {
    Value alpha = b.BroadcastInDim(a.scalar(b, 4, x.dtype()), source.dims(), {});
    source = b.Multiply(source, alpha);
  }
  Value result = PutDim(b, x, p.index, source, p.dim, CombineAdd);
  return {b.Reshape(Cast(b, result, p.self.dtype()), a.tensor(0).dims())};
}

Values IndexCopy(Builder& b, const Args& a) {
  Along p = AlongOperands(b, a);
  Value source = Cast(b, RowsSource(b, a.tensor(3), p), p.self.dtype());
  return {b.Reshape(PutDim(b, p.self, p.index, source, p.dim, CombineSet), a.tensor(0).dims())};
}

// self, dim, index, source, reduce, include_self
Values IndexReduce(Builder& b, const Args& a) {
  Along p = AlongOperands(b, a);
  if (p.index.numel() == 0) return {a.tensor(0)};
  const bool include_self = a.has(5) ? a.flag(5) : true;
  Value source = RowsSource(b, a.tensor(3), p);
  Value result = ReduceInto(
      b, p.self, source, a.text(4), include_self,
      [&](Value base, Value updates, Combine combine) { return PutDim(b, base, p.index, updates, p.dim, combine); });
  return {b.Reshape(result, a.tensor(0).dims())};
}

Value FillAt(Builder& b, const Args& a, Value value) {
  Along p = AlongOperands(b, a);
  const int64_t size = p.self.dim(p.dim);
  if (p.index.numel() == 0 || p.self.numel() == 0) return a.tensor(0);
  Value index = WrapIndex(b, p.index, size);
  Value hit = PutDim(b, b.Zero(DType::kBool, {size}), index, b.One(DType::kBool, {index.numel()}), 0, CombineSet);
  hit = b.BroadcastInDim(hit, p.self.dims(), {p.dim});
  Value fill = b.BroadcastInDim(value, p.self.dims(), {});
  return b.Reshape(b.Select(hit, fill, p.self), a.tensor(0).dims());
}

Values IndexFillScalar(Builder& b, const Args& a) { return {FillAt(b, a, a.scalar(b, 3, a.tensor(0).dtype()))}; }
Values IndexFillTensor(Builder& b, const Args& a) {
  return {FillAt(b, a, b.Reshape(Cast(b, a.tensor(3), a.tensor(0).dtype()), {}))};
}

// self, indices, values, accumulate
Values IndexPut(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  IndexList list = ResolveIndexList(b, a.tensors(1), self.dims());
  const bool accumulate = a.flag(3);
  Value x = accumulate ? ToCompute(b, self) : self;
  Value values = Cast(b, a.tensor(2), x.dtype());
  const Dims window = list.ResultDims();
  while (values.rank() > static_cast<int64_t>(window.size())) {  // leading ones beyond the result's rank
    Check(values.dim(0) == 1, "shape mismatch: value tensor of shape ", ToString(values.dims()),
          " cannot be broadcast to indexing result of shape ", ToString(window));
    values = b.Reshape(values, Dims(values.dims().begin() + 1, values.dims().end()));
  }
  values = b.BroadcastTo(values, window);
  if (list.dims.empty()) return {Cast(b, accumulate ? b.Add(x, values) : values, self.dtype())};
  if (values.numel() == 0 || self.numel() == 0) return {self};
  ScatterDims dims;
  dims.update_window_dims = list.WindowDims();
  dims.inserted_window_dims = list.dims;
  dims.scatter_dims_to_operand_dims = list.dims;
  dims.index_vector_dim = static_cast<int64_t>(list.shape.size());
  Combine combine = accumulate ? CombineAdd : CombineSet;
  Value result =
      b.Scatter(x, list.starts, values, dims, [&](const Values& v) { return Values{combine(b, v[0], v[1])}; });
  return {Cast(b, result, self.dtype())};
}

// self, index, source, accumulate
Values Put(Builder& b, const Args& a) {
  Value self = a.tensor(0);
  const bool accumulate = a.flag(3);
  Value x = b.Reshape(accumulate ? ToCompute(b, self) : self, {self.numel()});
  Value index = b.Reshape(WrapIndex(b, a.tensor(1), self.numel()), {a.tensor(1).numel()});
  Value source = b.Reshape(Cast(b, a.tensor(2), x.dtype()), {index.numel()});
  Value result = PutDim(b, x, index, source, 0, accumulate ? CombineAdd : CombineSet);
  return {b.Reshape(Cast(b, result, self.dtype()), self.dims())};
}

}  // namespace

std::vector<OpRow> ScatterRows() {
  return {
      {"scatter.src", ScatterSrc},
      {"scatter.value", ScatterValue},
      {"scatter.reduce", ScatterReduceSrc},
      {"scatter.value_reduce", ScatterReduceValue},
      {"scatter_add", ScatterAdd},
      {"scatter_reduce.two", ScatterReduceTwo},
      {"index_add", IndexAdd, kPowIdentity},
      {"index_copy", IndexCopy},
      {"index_reduce", IndexReduce},
      {"index_fill.int_Scalar", IndexFillScalar},
      {"index_fill.int_Tensor", IndexFillTensor},
      {"index_put", IndexPut},
      {"_index_put_impl", IndexPut},
      {"_unsafe_index_put", IndexPut},
      {"put", Put},
  };
}

}  // namespace torch_tpu
