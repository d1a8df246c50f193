// Least squares. Which results there are, and their sizes, depend on the driver and on the rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <tuple>

namespace torch_tpu {

using LstsqResults = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using LstsqOutputs = std::tuple<at::Tensor&, at::Tensor&, at::Tensor&, at::Tensor&>;

// solution, residuals, rank, singular values
LstsqResults Lstsq(const at::Tensor& a, const at::Tensor& rhs, std::optional<double> rcond,
                   std::optional<std::string_view> driver);
LstsqOutputs LstsqOut(const at::Tensor& a, const at::Tensor& rhs, std::optional<double> rcond,
                      std::optional<std::string_view> driver, at::Tensor& solution, at::Tensor& residuals,
                      at::Tensor& rank, at::Tensor& singular_values);

}  // namespace torch_tpu
