#include "dispatch/rrelu.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/leaky_relu.h>

#include "dispatch/bound_op.h"

namespace torch_tpu {

at::Tensor RReluWithNoise(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                          bool training, std::optional<at::Generator> generator) {
  TORCH_CHECK(self.sym_sizes() == noise.sym_sizes(),
              "noise tensor shape must match self tensor shape. Got self.shape = ", self.sym_sizes(),
              " noise.shape = ", noise.sym_sizes());
  if (!training) return at::leaky_relu(self, (lower.to<double>() + upper.to<double>()) / 2);
  static InternalOp& rrelu =
      *new InternalOp("tpu::rrelu(Tensor x, Scalar lower, Scalar upper, Generator? generator) -> (Tensor, Tensor)");
  c10::IValue source;
  if (generator) source = *generator;
  const std::vector<at::Tensor> results = rrelu.Run({self, lower, upper, source}, self.device().index());
  noise.copy_(results[1]);
  return results[0];
}

at::Tensor& RReluWithNoiseInplace(at::Tensor& self, at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                                  bool training, std::optional<at::Generator> generator) {
  return self.copy_(RReluWithNoise(self, noise, lower, upper, training, std::move(generator)));
}

at::Tensor& RReluWithNoiseOut(const at::Tensor& self, at::Tensor& noise, const at::Scalar& lower,
                              const at::Scalar& upper, bool training, std::optional<at::Generator> generator,
                              at::Tensor& out) {
  at::native::resize_output(out, self.sizes());
  return out.copy_(RReluWithNoise(self, noise, lower, upper, training, std::move(generator)));
}

}  // namespace torch_tpu
