// det and slogdet: PyTorch's backward wants the LU of A's transpose where A is contiguous and real, and a row cannot
// see strides.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace torch_tpu {

std::tuple<at::Tensor, at::Tensor, at::Tensor> LinalgDet(const at::Tensor& a);
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> LinalgSlogdet(const at::Tensor& a);

}  // namespace torch_tpu
