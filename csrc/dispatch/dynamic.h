// Ops whose result size depends on data.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <tuple>

namespace torch_tpu {

at::Tensor Nonzero(const at::Tensor& self);
at::Tensor MaskedSelect(const at::Tensor& self, const at::Tensor& mask);
std::tuple<at::Tensor, at::Tensor, at::Tensor> Unique2(const at::Tensor& self, bool sorted, bool return_inverse,
                                                       bool return_counts);
std::tuple<at::Tensor, at::Tensor, at::Tensor> UniqueConsecutive(const at::Tensor& self, bool return_inverse,
                                                                 bool return_counts, std::optional<int64_t> dim);
at::Tensor RepeatInterleave(const at::Tensor& repeats, std::optional<int64_t> output_size);
bool Equal(const at::Tensor& self, const at::Tensor& other);
void AssertAsync(const at::Tensor& self);
void AssertAsyncMessage(const at::Tensor& self, std::string_view message);

}  // namespace torch_tpu
