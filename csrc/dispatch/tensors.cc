#include "dispatch/tensors.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>

#include "device/context.h"
#include "device/queue.h"
#include "dispatch/bound_op.h"
#include "dispatch/dtype_map.h"

namespace torch_tpu {
namespace {

at::Tensor FromStorage(c10::DataPtr data, size_t nbytes, c10::ScalarType dtype) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), nbytes, std::move(data),
                                                       GetAllocator(), /*resizable=*/true);
  return at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(dtype));
}

}  // namespace

at::Tensor MakeTensor(c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      c10::DeviceIndex device) {
  const size_t nbytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  at::Tensor tensor = FromStorage(AllocateStorage(nbytes, device), nbytes, dtype);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

at::Tensor MakeTensor(c10::ScalarType dtype, c10::IntArrayRef sizes, c10::DeviceIndex device) {
  const size_t nbytes = at::detail::computeStorageNbytesContiguous(sizes, c10::elementSize(dtype));
  at::Tensor tensor = FromStorage(AllocateStorage(nbytes, device), nbytes, dtype);
  if (sizes.size() != 1 || sizes[0] != 0) tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

at::Tensor WrapBuffer(BufferPtr value, c10::ScalarType dtype) {
  const Dims dims = value->type().dims;
  at::Tensor tensor = MakeTensor(dtype, dims, static_cast<c10::DeviceIndex>(value->device()->index()));
  ContextOf(*tensor.unsafeGetTensorImpl()).value = std::move(value);
  return tensor;
}

std::optional<Dims> DenseOrder(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  // Dims of size one keep their places, as a contiguous tensor has them; only the moving ones are sorted.
  Dims order(sizes.size());
  Dims moving;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1) moving.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(moving.begin(), moving.end(), [&](int64_t a, int64_t c) { return strides[a] > strides[c]; });
  size_t next = 0;
  for (size_t i = 0; i < sizes.size(); ++i) order[i] = sizes[i] > 1 ? moving[next++] : static_cast<int64_t>(i);
  int64_t expected = 1;
  for (size_t i = moving.size(); i-- > 0;) {
    if (strides[moving[i]] != expected) return std::nullopt;
    expected *= sizes[moving[i]];
  }
  return order;
}

bool FillsStorage(const c10::TensorImpl& tensor, const StorageContext& context) {
  if (tensor.storage_offset() != 0 || tensor.numel() * tensor.itemsize() != context.nbytes) return false;
  return tensor.is_contiguous() || tensor.is_non_overlapping_and_dense();
}

ViewSpec SpecOf(const c10::TensorImpl& tensor, DType dtype) {
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  return {dtype, Dims(sizes.begin(), sizes.end()), Dims(strides.begin(), strides.end()), tensor.storage_offset()};
}

BufferPtr DenseValue(const at::Tensor& tensor) {
  const DType dtype = CheckedDType(tensor.scalar_type(), "copy");
  DeviceContext::CheckFork();
  {
    std::lock_guard lock(Queue::Of(tensor.device().index()).mutex());
    StorageContext& context = ContextOf(*tensor.unsafeGetTensorImpl());
    if (IsWholeValue(*tensor.unsafeGetTensorImpl(), context, dtype)) {
      Materialize(context, "host read");
      return context.value;
    }
  }
  static InternalOp& identity = *new InternalOp("tpu::identity(Tensor x) -> Tensor");
  at::Tensor dense = identity.Run({tensor}, tensor.device().index())[0];
  // A program's result keeps its operand's layout only where PyTorch says so; an internal op's is always row-major.
  std::lock_guard lock(Queue::Of(tensor.device().index()).mutex());
  StorageContext& context = ContextOf(*dense.unsafeGetTensorImpl());
  Materialize(context, "host read");
  return context.value;
}

}  // namespace torch_tpu
