// Storage and view ops: they change sizes, strides, offsets and storages, never values.
#include "dispatch/views.h"

#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorShape.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

#include "device/context.h"
#include "device/current.h"
#include "device/storage.h"
#include "device/torch_error.h"
#include "dispatch/capture.h"
#include "dispatch/dtype_map.h"
#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

c10::DeviceIndex IndexOf(std::optional<c10::Device> device) {
  const c10::Device wanted = device.value_or(c10::Device(c10::DeviceType::PrivateUse1));
  TORCH_CHECK(wanted.is_privateuseone(), "empty: expected a tpu device, got ", wanted);
  if (wanted.has_index()) {
    WithTorchErrors([&] { DeviceContext::CheckDevice(wanted.index()); });
    return wanted.index();
  }
  return CurrentDevice();
}

void CheckStrided(std::optional<c10::Layout> layout) {
  TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == c10::kStrided, "empty: expected layout torch.strided, got ",
                              *layout);
}

at::Tensor Pinned(at::Tensor tensor, std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
  return tensor;
}

// Where what is asked for cannot be there at once: loaders ask for a model's size before they read the first weight.
// Memory is taken when a tensor is written, so that small ones need no check. A capture's tensors take none.
void CheckFits(const at::Tensor& tensor) {
  constexpr size_t kLarge = size_t{1} << 30;
  const size_t nbytes = tensor.storage().nbytes();
  if (nbytes < kLarge || Capture::Current() != nullptr) [[likely]]
    return;
  WithTorchErrors([&] {
    const auto [free, total] = DeviceMemoryInfo(tensor.device().index());
    if (nbytes > free) {
      Fail(Code::kResourceExhausted, "empty: expected at most what is free, got a request for ",
           c10::CachingAllocator::format_size(nbytes));
    }
  });
}

at::Tensor Fitting(at::Tensor tensor) {
  CheckFits(tensor);
  return tensor;
}

}  // namespace

at::Tensor Empty(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory,
                 std::optional<c10::MemoryFormat> memory_format) {
  CheckStrided(layout);
  const c10::ScalarType type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  CheckedDType(type, "empty");
  at::detail::check_size_nonnegative(sizes);
  at::Tensor tensor = Pinned(Fitting(MakeTensor(type, sizes, IndexOf(device))), pin_memory);
  const c10::MemoryFormat format = memory_format.value_or(c10::MemoryFormat::Contiguous);
  if (format != c10::MemoryFormat::Contiguous) tensor.unsafeGetTensorImpl()->empty_tensor_restride(format);
  return tensor;
}

at::Tensor EmptyStrided(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<c10::ScalarType> dtype,
                        std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                        std::optional<bool> pin_memory) {
  CheckStrided(layout);
  const c10::ScalarType type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  CheckedDType(type, "empty_strided");
  TORCH_CHECK(sizes.size() == strides.size(), "mismatch in length of strides and shape");
  at::detail::check_size_nonnegative(sizes);
  return Pinned(Fitting(MakeTensor(type, sizes, strides, IndexOf(device))), pin_memory);
}

const at::Tensor& Resize(const at::Tensor& self, c10::IntArrayRef sizes,
                         std::optional<c10::MemoryFormat> memory_format) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  at::detail::check_size_nonnegative(sizes);
  const size_t nbytes = at::detail::computeStorageNbytesContiguous(sizes, impl->itemsize(), impl->storage_offset());
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  if (nbytes > storage->nbytes()) {
    TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
    ResizeStorage(*storage, nbytes);
  }
  if (self.sizes() != sizes) impl->set_sizes_contiguous(sizes);
  if (memory_format && *memory_format != c10::MemoryFormat::Contiguous) impl->empty_tensor_restride(*memory_format);
  return self;
}

at::Tensor& SetStorage(at::Tensor& self, c10::Storage source, int64_t offset, c10::IntArrayRef sizes,
                       c10::IntArrayRef strides) {
  at::native::checkSetStorage(self, source, offset, sizes, strides);
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  c10::DimVector made;
  if (strides.data() == nullptr || strides.size() != sizes.size()) {
    made = c10::contiguous_strides(sizes);
    strides = made;
  }
  const size_t nbytes = at::detail::computeStorageNbytes(sizes, strides, impl->itemsize(), offset);
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  if (nbytes > storage->nbytes() && at::detail::computeStorageNbytesContiguous(sizes, 1) > 0) {
    TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
    ResizeStorage(*storage, nbytes);
  }
  impl->set_sizes_and_strides(sizes, strides);
  return self;
}

at::Tensor& SetFromStorage(at::Tensor& self, c10::Storage source) {
  const int64_t numel = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return SetStorage(self, std::move(source), 0, {numel}, {});
}

at::Tensor& SetFromTensor(at::Tensor& self, const at::Tensor& source) {
  if (self.is_same(source)) return self;
  return SetStorage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& SetEmpty(at::Tensor& self) {
  c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), 0, AllocateStorage(0, self.device().index()), GetAllocator(), true));
  return SetStorage(self, std::move(storage), 0, {0}, {});
}

at::Tensor ReshapeAlias(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, self.storage_offset());
}

bool IsSetTo(const at::Tensor& self, const at::Tensor& source) {
  return self.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() ==
             source.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl() &&
         self.storage_offset() == source.storage_offset() && self.sizes() == source.sizes() &&
         self.strides() == source.strides();
}

}  // namespace torch_tpu
