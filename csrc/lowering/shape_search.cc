// Searching in sorted sequences: searchsorted, bucketize.
#include "base/error.h"
#include "lowering/indexing.h"
#include "lowering/math.h"
#include "lowering/shape.h"

namespace torch_tpu {

namespace {

// A float searched among integers makes both float.
Value Number(Builder& b, const Args& a, size_t i, const Value& sorted) {
  const bool widen = a.category(i) == DType::kFloat64 && !IsFloat(sorted.dtype());
  return a.scalar(b, i, widen ? DefaultFloat() : sorted.dtype());
}

Value Search(Builder& b, Value sorted, Value values, Value order, bool out_int32, bool right) {
  const DType dtype = PromoteTypes(sorted.dtype(), values.dtype());
  if (order) sorted = TakeAlong(b, sorted, order, sorted.rank() - 1);
  Value found = SearchSorted(b, Cast(b, sorted, dtype), Cast(b, values, dtype), right);
  return b.Convert(found, out_int32 ? DType::kInt32 : DType::kInt64);
}

// sorted_sequence, self, out_int32, right, side, sorter
Values SearchSortedTensor(Builder& b, const Args& a) {
  return {Search(b, a.tensor(0), a.tensor(1), a.tensor_or_absent(5), a.flag(2), a.flag(3) || a.text(4) == "right")};
}

Values SearchSortedScalar(Builder& b, const Args& a) {
  Value sorted = a.tensor(0);
  return {
      Search(b, sorted, Number(b, a, 1, sorted), a.tensor_or_absent(5), a.flag(2), a.flag(3) || a.text(4) == "right")};
}

// self, boundaries, out_int32, right
Values BucketizeTensor(Builder& b, const Args& a) {
  Check(a.tensor(1).rank() == 1, "boundaries tensor must be 1 dimension, but got dim(", a.tensor(1).rank(), ")");
  return {Search(b, a.tensor(1), a.tensor(0), Value(), a.flag(2), a.flag(3))};
}

Values BucketizeScalar(Builder& b, const Args& a) {
  return {Search(b, a.tensor(1), Number(b, a, 0, a.tensor(1)), Value(), a.flag(2), a.flag(3))};
}

}  // namespace

std::vector<OpRow> SearchRows() {
  return {
      {"searchsorted.Tensor", SearchSortedTensor},
      {"searchsorted.Scalar", SearchSortedScalar},
      {"bucketize.Tensor", BucketizeTensor},
      {"bucketize.Scalar", BucketizeScalar},
  };
}

}  // namespace torch_tpu
