// Parts of CountingRows().
#pragma once

#include <vector>

#include "lowering/table.h"

namespace torch_tpu {

std::vector<OpRow> HistogramRows();  // histogram.cc

}  // namespace torch_tpu
