// Batch norm, which also writes its running statistics.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace torch_tpu {

using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using FourTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using OptionalTensor = std::optional<at::Tensor>;

// These write running statistics that the functional row cannot name.
ThreeTensors NativeBatchNorm(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                             const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                             double momentum, double eps);
ThreeTensors NativeBatchNormLegit(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                  at::Tensor& running_mean, at::Tensor& running_var, bool training, double momentum,
                                  double eps);
ThreeTensors NativeBatchNormNoStats(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                    bool training, double momentum, double eps);
FourTensors BatchNormWithUpdate(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                at::Tensor& running_mean, at::Tensor& running_var, double momentum, double eps);

}  // namespace torch_tpu
