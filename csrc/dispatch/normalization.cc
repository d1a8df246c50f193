#include "dispatch/normalization.h"

#include "dispatch/bound_op.h"
#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

c10::IValue OrNone(const OptionalTensor& tensor) {
  return tensor && tensor->defined() ? c10::IValue(*tensor) : c10::IValue();
}

}  // namespace

ThreeTensors NativeBatchNorm(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                             const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                             double momentum, double eps) {
  static InternalOp& op = *new InternalOp(
      "tpu::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
      "training, "
      "float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor)");
  const std::vector<at::Tensor> results =
      op.Run({input, OrNone(weight), OrNone(bias), OrNone(running_mean), OrNone(running_var), training, momentum, eps},
             input.device().index());
  if (!training) {
    // As on CPU: an evaluation saves nothing.
    const at::Tensor nothing = MakeTensor(results[1].scalar_type(), {0}, input.device().index());
    return {results[0], nothing, nothing};
  }
  if (running_mean && running_mean->defined()) running_mean->copy_(results[3]);
  if (running_var && running_var->defined()) running_var->copy_(results[4]);
  return {results[0], results[1], results[2]};
}

ThreeTensors NativeBatchNormLegit(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                  at::Tensor& running_mean, at::Tensor& running_var, bool training, double momentum,
                                  double eps) {
  return NativeBatchNorm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

ThreeTensors NativeBatchNormNoStats(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                    bool training, double momentum, double eps) {
  return NativeBatchNorm(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}

FourTensors BatchNormWithUpdate(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                at::Tensor& running_mean, at::Tensor& running_var, double momentum, double eps) {
  auto [out, mean, invstd] = NativeBatchNorm(input, weight, bias, running_mean, running_var, true, momentum, eps);
  return {out, mean, invstd, MakeTensor(c10::ScalarType::Byte, {0}, input.device().index())};
}

}  // namespace torch_tpu
