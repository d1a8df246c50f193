// What stands behind a `tpu` storage: one immutable device value and a range of opaque addresses.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "base/error.h"
#include "runtime/runtime.h"

namespace torch_tpu {

// The context of a storage's DataPtr. The value has the dtype and dims it was created with, row-major, and starts at
// the storage's first byte; it may be smaller or larger than the storage (after a resize), or absent (never written:
// reads see zeros). Guarded by its device's queue lock (device/queue.h).
struct Pending;  // dispatch/pending.h

struct StorageContext {
  BufferPtr value;
  std::shared_ptr<Pending> pending;  // fused mode: the value is recorded, not computed; then `value` is null
  c10::DeviceIndex device = 0;
  size_t nbytes = 0;
  uintptr_t address = 0;
  StorageContext* next_live = nullptr;  // of the allocator's list
  StorageContext* previous_live = nullptr;
};

// A DataPtr of `nbytes` on tpu:`device` with no value yet: costs no device memory until written, and touches no client.
// Counted by the allocator. Throws c10::Error in a forked child.
c10::DataPtr AllocateStorage(size_t nbytes, c10::DeviceIndex device);
// nullptr when the DataPtr is not ours. A DataPtr that only borrows the address of a live storage's first byte
// (from_blob, by which torch.save and pickle read a device's storage) gives that storage's context; finding it is slow.
StorageContext* ContextOf(const c10::DataPtr& data);
inline StorageContext* ContextOf(const c10::StorageImpl& storage) { return ContextOf(storage.data_ptr()); }
// Throws c10::Error when the tensor's storage is not a tpu storage.
StorageContext& ContextOf(const c10::TensorImpl& tensor);
// Grows or shrinks a storage; keeps its value's leading bytes (lazily: the value stays, nbytes changes). 0 frees the
// value. Growing gives it a new range of addresses. Throws c10::Error for a storage that is not ours.
void ResizeStorage(c10::StorageImpl& storage, size_t nbytes);

// Allocates on the current device. Counts requested bytes: nothing is cached, so reserved equals allocated.
c10::DeviceAllocator* GetAllocator();
// {free, total} bytes of a device as its plugin tells, of the host for a CPU plugin. Starts the client.
std::pair<size_t, size_t> DeviceMemoryInfo(c10::DeviceIndex device);
// The plugin's error with the device's figures, and one more in num_ooms.
Error OutOfMemory(const Error& error, c10::DeviceIndex device);

}  // namespace torch_tpu
