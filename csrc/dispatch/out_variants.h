// out= overloads that no row covers: the functional op, then a copy.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace torch_tpu {

using ThreeOutputs = std::tuple<at::Tensor&, at::Tensor&, at::Tensor&>;

at::Tensor& SquareEyeOut(int64_t n, at::Tensor& out);
at::Tensor& NonzeroOut(const at::Tensor& self, at::Tensor& out);
at::Tensor& MaskedSelectOut(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out);
at::Tensor NarrowCopy(const at::Tensor& self, int64_t dim, c10::SymInt start, c10::SymInt length);
at::Tensor& NarrowCopyOut(const at::Tensor& self, int64_t dim, int64_t start, int64_t length, at::Tensor& out);
at::Tensor& MvLGammaOut(const at::Tensor& self, int64_t p, at::Tensor& out);
ThreeOutputs NativeBatchNormOut(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& running_mean,
                                const std::optional<at::Tensor>& running_var, bool training, double momentum,
                                double eps, at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd);
ThreeOutputs NativeBatchNormLegitOut(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                     const std::optional<at::Tensor>& bias, at::Tensor& running_mean,
                                     at::Tensor& running_var, bool training, double momentum, double eps,
                                     at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd);
ThreeOutputs NativeBatchNormNoStatsOut(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                       const std::optional<at::Tensor>& bias, bool training, double momentum,
                                       double eps, at::Tensor& out, at::Tensor& save_mean, at::Tensor& save_invstd);

}  // namespace torch_tpu
