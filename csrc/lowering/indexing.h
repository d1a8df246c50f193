// Building blocks of indexing, shared by the indexing, shape, sort, random and pooling families.
//
// Out-of-range indices: StableHLO's gather clamps, which would silently return a wrong element, so reads fill NaN
// (floats, complex) or the lowest value (integers; false for bool) instead, and writes are dropped, as StableHLO's
// scatter does. Debug mode checks indices before the launch and raises IndexError.
#pragma once

#include <vector>

#include "lowering/table.h"
#include "program/builder.h"

namespace torch_tpu {

enum class IndexTrust : uint8_t { kCheck, kTrusted };  // kTrusted: known in range, no fill

Value AtLeast1d(Builder& b, Value x);                    // 0-d tensors take a dim argument as if they were 1-d
Value ToIndex(Builder& b, Value index);                  // int64
Value WrapIndex(Builder& b, Value index, int64_t size);  // int64, negative ones + size; out-of-range ones stay so
Value InRange(Builder& b, Value index, int64_t size);    // bool
Value OutOfRangeFill(Builder& b, DType dtype, const Dims& dims);

// x with `dim` replaced by index's dims: out[.., i.., ..] = x[.., index[i..], ..].
Value TakeDim(Builder& b, Value x, Value index, int64_t dim, IndexTrust trust = IndexTrust::kCheck);
// Same rank: out[i][j][k] = x[i][index[i][j][k]][k] (dim = 1). index's other dims may be smaller than x's.
Value TakeAlong(Builder& b, Value x, Value index, int64_t dim, IndexTrust trust = IndexTrust::kCheck);

using Combine = Value (*)(Builder&, Value old_value, Value update);
Value CombineSet(Builder& b, Value old_value, Value update);
Value CombineAdd(Builder& b, Value old_value, Value update);
Value CombineMul(Builder& b, Value old_value, Value update);
Value CombineMax(Builder& b, Value old_value, Value update);  // NaN wins
Value CombineMin(Builder& b, Value old_value, Value update);
// The inverse of TakeDim for a 1-d index: x with updates[.., i, ..] combined into x[.., index[i], ..].
Value PutDim(Builder& b, Value x, Value index, Value updates, int64_t dim, Combine combine);
// The inverse of TakeAlong; updates has index's dims. Duplicates under CombineSet: the last wins where the plugin's
// scatter is sequential (the CPU plugins) or the index has at most 8 entries along dim; elsewhere any one of them does.
Value PutAlong(Builder& b, Value x, Value index, Value updates, int64_t dim, Combine combine);

// Inclusive running sum or maximum of integers along the last dim, in log2(n) steps.
Value RunningSum(Builder& b, Value x);
Value RunningMax(Builder& b, Value x);
// 1-d bool -> int64: how many are true up to and including each. Small matrix products, so linear work.
Value CountTrue(Builder& b, Value mask);
// First position in sorted [.., n] (leading dims equal, or 1-d) whose element is not less (right: greater) than the
// value; NaN counts as the largest. int64 with values' dims.
Value SearchSorted(Builder& b, Value sorted, Value values, bool right);
// mask: bool[n]. (count int64 0-d, each payload [n, ..] with the true rows moved to the front in order, zeros after
// them).
std::pair<Value, Values> Compact(Builder& b, Value mask, const Values& payloads);

// Parts of IndexingRows(), one per file.
std::vector<OpRow> GatherRows();
std::vector<OpRow> ScatterRows();
std::vector<OpRow> SelectionRows();
std::vector<OpRow> EmbeddingBagRows();

}  // namespace torch_tpu
