// What reductions share: which dims, and the shape of the result.
#pragma once

#include <span>

#include "lowering/math.h"
#include "lowering/table.h"

namespace torch_tpu {

// The int[]? argument `i`: absent or empty means every dim.
Dims ReducedDims(const Args& a, size_t i, int64_t rank);
// Puts the reduced dims back as ones when `keep`.
Value Kept(Builder& b, Value reduced, const Dims& original, const Dims& dims, bool keep);
// Elements that fall into one result.
int64_t CountOf(const Dims& original, const Dims& dims);
Value LogSumExp(Builder& b, Value x, const Dims& dims);

// ---- sub-families of ReductionRows
std::span<const OpRow> SumRows();
std::span<const OpRow> ExtremeRows();
std::span<const OpRow> MomentRows();
std::span<const OpRow> CumulativeRows();
std::span<const OpRow> SegmentRows();

}  // namespace torch_tpu
