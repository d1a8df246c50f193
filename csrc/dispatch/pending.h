// A value that is recorded but not computed yet (fused mode), and how everybody else meets one.
#pragma once

#include <cstdint>
#include <exception>

#include "device/storage.h"
#include "runtime/runtime.h"

namespace torch_tpu {

// Shared by the storages that hold the value (like a Buffer, it never changes) and known to its device's tape. Guarded
// by the device's queue lock.
struct Pending {
  int device = 0;
  int32_t id = -1;                   // of the tape's value
  const TensorType* type = nullptr;  // of an entry, which stays for good, or `own`
  TensorType own;
  uint64_t capture = 0;      // of a capture: there will never be a buffer
  BufferPtr buffer;          // set by the flush that computed it
  std::exception_ptr error;  // set by the flush that could not
};

// The type of a storage's value, computed or not; nullptr when it was never written.
inline const TensorType* BaseType(const StorageContext& context) {
  if (context.value != nullptr) return &context.value->type();
  return context.pending != nullptr ? context.pending->type : nullptr;
}

// Takes the buffer of a pending value that has been computed. Caller holds the queue lock.
inline void Settle(StorageContext& context) {
  if (context.pending != nullptr && context.pending->buffer != nullptr) {
    context.value = context.pending->buffer;
    context.pending.reset();
  }
}

// The same, flushing the device's tape when it must; throws the error of the flush that failed. `reason` is for
// explain().
void Materialize(StorageContext& context, const char* reason);

inline void SetValue(StorageContext& context, BufferPtr value) {
  context.value = std::move(value);
  context.pending.reset();
}

}  // namespace torch_tpu
