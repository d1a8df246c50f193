// What the order and unique files share.
#pragma once

#include <utility>
#include <vector>

#include "lowering/table.h"

namespace torch_tpu {

// x's elements along dim in order, and where each came from (int32). Stable; NaN is the largest.
std::pair<Value, Value> SortAlong(Builder& b, Value x, int64_t dim, bool descending);
// true where a sorted row's element differs from the one before it, along the last dim
Value RunStarts(Builder& b, Value sorted);

// The CPU plugins sort slowly, so from this length on topk selects first.
constexpr int64_t kSelectFrom = 128;
// topk's results along dim, without sorting all of it: first of equal ones first.
Values TopKOf(Builder& b, Value x, int64_t k, int64_t dim, bool largest);  // top_k.cc

std::vector<OpRow> UniqueRows();  // unique.cc

}  // namespace torch_tpu
