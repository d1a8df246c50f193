// Products of groups of rows with one matrix each: the experts of a mixture.
#pragma once

#include "lowering/table.h"

namespace torch_tpu {

// self, mat2, offs, bias, out_dtype
Values EmitGroupedMm(Builder& b, const Args& a);

}  // namespace torch_tpu
