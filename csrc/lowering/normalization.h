// What the normalization files share.
#pragma once

#include "program/builder.h"
#include "program/op_call.h"

namespace torch_tpu {

// 1 / sqrt(variance + eps); eps is 0-d. Plugins' rsqrt is approximate, PyTorch's is this.
Value InverseRoot(Builder& b, Value variance, Value eps);

// normalization_batch.cc
Values EmitBatchNorm(Builder& b, const Args& a);
Values EmitBatchNormBackward(Builder& b, const Args& a);

}  // namespace torch_tpu
