// PyTorch's scalar types and ours.
#pragma once

#include <c10/core/ScalarType.h>

#include "base/dtype.h"

namespace torch_tpu {

// kInvalid for a type the device does not have (complex32, quantized, sub-byte integers).
DType ToDType(c10::ScalarType type);
c10::ScalarType ToScalarType(DType dtype);
// Throws NotImplementedError "<op>: expected ..., got <dtype>" for such a type.
DType CheckedDType(c10::ScalarType type, const char* op);

}  // namespace torch_tpu
