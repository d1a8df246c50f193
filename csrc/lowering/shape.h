// Parts of ShapeRows(), one per file, and index maps shared with pooling.
#pragma once

#include <vector>

#include "lowering/table.h"

namespace torch_tpu {

std::vector<OpRow> RearrangeRows();  // shape.cc
std::vector<OpRow> FactoryRows();    // shape_factory.cc
std::vector<OpRow> PadRows();        // shape_pad.cc
std::vector<OpRow> WindowRows();     // shape_window.cc
std::vector<OpRow> SearchRows();     // shape_search.cc

// out[.., i, ..] = x[.., map[i], ..] for a map known now: slices, reversed slices and repeats joined together, no
// gather.
Value MapDim(Builder& b, Value x, int64_t dim, const Dims& map);
// Its transpose: x's i-th entries along dim added into entry map[i] of a result of length `size`.
Value MapDimBackward(Builder& b, Value x, int64_t dim, const Dims& map, int64_t size);

}  // namespace torch_tpu
