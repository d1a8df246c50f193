// Storage and view ops: they make or change metadata and launch nothing.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_tpu {

at::Tensor Empty(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory,
                 std::optional<c10::MemoryFormat> memory_format);
at::Tensor EmptyStrided(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<c10::ScalarType> dtype,
                        std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                        std::optional<bool> pin_memory);
const at::Tensor& Resize(const at::Tensor& self, c10::IntArrayRef sizes,
                         std::optional<c10::MemoryFormat> memory_format);
at::Tensor& SetStorage(at::Tensor& self, c10::Storage source, int64_t offset, c10::IntArrayRef sizes,
                       c10::IntArrayRef strides);
at::Tensor& SetFromStorage(at::Tensor& self, c10::Storage source);
at::Tensor& SetFromTensor(at::Tensor& self, const at::Tensor& source);
at::Tensor& SetEmpty(at::Tensor& self);
at::Tensor ReshapeAlias(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides);
bool IsSetTo(const at::Tensor& self, const at::Tensor& source);

}  // namespace torch_tpu
