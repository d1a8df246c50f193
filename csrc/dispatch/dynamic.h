// Ops whose result size depends on data.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

namespace torch_tpu {

at::Tensor Nonzero(const at::Tensor& self);
at::Tensor MaskedSelect(const at::Tensor& self, const at::Tensor& mask);
at::Tensor RepeatInterleave(const at::Tensor& repeats, std::optional<int64_t> output_size);
at::Tensor Bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights, c10::SymInt minlength);
bool Equal(const at::Tensor& self, const at::Tensor& other);
void AssertAsync(const at::Tensor& self);
void AssertAsyncMessage(const at::Tensor& self, std::string_view message);

}  // namespace torch_tpu
