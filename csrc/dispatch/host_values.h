// Small host values (scalars, slice starts) as device buffers, kept by content so that a value that comes again costs
// no transfer.
#pragma once

#include <c10/core/Device.h>

#include <complex>
#include <cstdint>

#include "runtime/runtime.h"

namespace torch_tpu {

// Thread-safe. The buffers are never donated: the cache holds them.
BufferPtr HostValue(int device, DType dtype, const void* data, size_t bytes, const Dims& dims);
BufferPtr ScalarValue(int device, double value);
BufferPtr ScalarValue(int device, int64_t value);
BufferPtr ScalarValue(int device, bool value);
BufferPtr ScalarValue(int device, std::complex<double> value);
BufferPtr StartsValue(int device, const Dims& starts);
void ClearHostValues();

}  // namespace torch_tpu
