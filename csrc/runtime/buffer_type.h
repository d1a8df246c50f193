// DType <-> PJRT_Buffer_Type.
#pragma once

#include "base/dtype.h"
#include "pjrt_c_api.h"

namespace torch_tpu {

// Throws kInvalidArgument for kInvalid.
PJRT_Buffer_Type ToBufferType(DType dtype);
// kInvalid for the types PyTorch has no counterpart of (4-bit integers, tokens).
DType FromBufferType(PJRT_Buffer_Type type);

}  // namespace torch_tpu
