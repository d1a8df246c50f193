// Making tensors over our storages, and reading how a tensor lies in its storage.
#pragma once

#include <ATen/core/Tensor.h>

#include "base/tensor_type.h"
#include "device/storage.h"
#include "dispatch/pending.h"
#include "program/view.h"

namespace torch_tpu {

// An uninitialised tensor on tpu:`device`. Costs no device memory until it is written.
at::Tensor MakeTensor(c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::DeviceIndex device);
at::Tensor MakeTensor(c10::ScalarType dtype, c10::IntArrayRef sizes, c10::DeviceIndex device);  // contiguous
// A tensor whose storage holds `value` (row-major).
at::Tensor WrapBuffer(BufferPtr value, c10::ScalarType dtype);

inline bool IsTpu(const at::Tensor& t) { return t.device().type() == c10::DeviceType::PrivateUse1; }

// How to store a dense, non-overlapping layout: dims from the largest stride to the smallest. Empty optional when the
// strides overlap or leave gaps.
std::optional<Dims> DenseOrder(c10::IntArrayRef sizes, c10::IntArrayRef strides);
// The tensor is dense and fills its storage: writing it replaces the storage's value.
bool FillsStorage(const c10::TensorImpl& tensor, const StorageContext& context);
// The tensor reads exactly its storage's value, row-major.
inline bool IsWholeValue(const c10::TensorImpl& tensor, const StorageContext& context, DType dtype) {
  const TensorType* base = BaseType(context);
  return base != nullptr && tensor.storage_offset() == 0 && tensor.is_contiguous() && base->dtype == dtype &&
         tensor.sizes() == c10::IntArrayRef(base->dims);
}
ViewSpec SpecOf(const c10::TensorImpl& tensor, DType dtype);

// The value of a tensor as a dense row-major buffer of its own (runs a program where the tensor is a view). Takes the
// queue lock.
BufferPtr DenseValue(const at::Tensor& tensor);

}  // namespace torch_tpu
