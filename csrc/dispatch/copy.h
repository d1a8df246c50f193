// Copies between devices, dtypes and strides, and reads of single values.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_tpu {

// copy_: the source's value at the time of the call, even when a host source changes right after. Reads block.
at::Tensor& Copy(at::Tensor& self, const at::Tensor& src, bool non_blocking);
at::Tensor CopyFrom(const at::Tensor& self, const at::Tensor& dst, bool non_blocking);
at::Tensor CopyFromAndResize(const at::Tensor& self, const at::Tensor& dst);
at::Scalar LocalScalarDense(const at::Tensor& self);

}  // namespace torch_tpu
