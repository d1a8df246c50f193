#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace torch_tpu {

at::Tensor& ArangeOut(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out);
at::Tensor& LinspaceOut(const at::Scalar& start, const at::Scalar& end, int64_t steps, at::Tensor& out);
at::Tensor& EyeOut(int64_t n, int64_t m, at::Tensor& out);
at::Tensor& RandpermOut(int64_t n, std::optional<at::Generator> generator, at::Tensor& out);

}  // namespace torch_tpu
