// Ops that make a tensor from numbers alone.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace torch_tpu {

at::Tensor& ArangeOut(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out);
at::Tensor& LinspaceOut(const at::Scalar& start, const at::Scalar& end, int64_t steps, at::Tensor& out);
at::Tensor& LogspaceOut(const at::Scalar& start, const at::Scalar& end, int64_t steps, double base, at::Tensor& out);
at::Tensor& EyeOut(int64_t n, int64_t m, at::Tensor& out);
at::Tensor EfficientZeroTensor(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                               std::optional<at::Layout> layout, std::optional<at::Device> device,
                               std::optional<bool> pin_memory);
at::Tensor& RandpermOut(int64_t n, std::optional<at::Generator> generator, at::Tensor& out);
at::Tensor TrilIndices(int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout> layout, std::optional<at::Device> device,
                       std::optional<bool> pin_memory);
at::Tensor TriuIndices(int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout> layout, std::optional<at::Device> device,
                       std::optional<bool> pin_memory);

}  // namespace torch_tpu
