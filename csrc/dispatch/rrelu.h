// rrelu, which also writes the slopes that it drew.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace torch_tpu {

at::Tensor RReluWithNoise(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                          bool training, std::optional<at::Generator> generator);
at::Tensor& RReluWithNoiseInplace(at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                                  bool training, std::optional<at::Generator> generator);
at::Tensor& RReluWithNoiseOut(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower,
                              const at::Scalar& upper, bool training, std::optional<at::Generator> generator,
                              at::Tensor& out);

}  // namespace torch_tpu
