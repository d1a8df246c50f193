// What the allocator has given out on one device.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace torch_tpu {

class AllocationStats {
 public:
  static AllocationStats& Of(c10::DeviceIndex device);

  // Thread-safe and cheap: once each per tensor.
  void Allocated(size_t nbytes);
  void Freed(size_t nbytes);
  void OutOfMemory();
  size_t current_bytes() const;
  // Blocks and bytes in every figure that PyTorch reads them from; reserved and active equal allocated.
  c10::CachingDeviceAllocator::DeviceStats Report() const;
  void ResetAccumulated();
  void ResetPeak();

 private:
  struct Pool {
    c10::CachingAllocator::Stat blocks, bytes;
  };
  Pool& PoolOf(size_t nbytes) { return nbytes < (size_t{1} << 20) ? small_ : large_; }

  mutable std::mutex mutex_;
  Pool all_, small_, large_;
  int64_t out_of_memory_ = 0;
};

}  // namespace torch_tpu
