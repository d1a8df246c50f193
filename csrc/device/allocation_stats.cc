#include "device/allocation_stats.h"

#include <algorithm>
#include <array>

namespace torch_tpu {

AllocationStats& AllocationStats::Of(c10::DeviceIndex device) {
  static auto* stats = new std::array<AllocationStats, 128>;
  return (*stats)[static_cast<size_t>(std::max<int>(device, 0))];
}

void AllocationStats::Allocated(size_t nbytes) {
  std::lock_guard lock(mutex_);
  for (Pool* pool : {&all_, &PoolOf(nbytes)}) {
    pool->blocks.increase(1);
    pool->bytes.increase(nbytes);
  }
}

void AllocationStats::Freed(size_t nbytes) {
  std::lock_guard lock(mutex_);
  for (Pool* pool : {&all_, &PoolOf(nbytes)}) {
    pool->blocks.decrease(1);
    pool->bytes.decrease(nbytes);
  }
}

void AllocationStats::OutOfMemory() {
  std::lock_guard lock(mutex_);
  ++out_of_memory_;
}

size_t AllocationStats::current_bytes() const {
  std::lock_guard lock(mutex_);
  return static_cast<size_t>(all_.bytes.current);
}

c10::CachingDeviceAllocator::DeviceStats AllocationStats::Report() const {
  std::lock_guard lock(mutex_);
  const c10::CachingAllocator::StatArray blocks = {all_.blocks, small_.blocks, large_.blocks};
  const c10::CachingAllocator::StatArray bytes = {all_.bytes, small_.bytes, large_.bytes};
  c10::CachingDeviceAllocator::DeviceStats stats;
  stats.allocation = stats.segment = stats.active = blocks;
  stats.allocated_bytes = stats.reserved_bytes = stats.active_bytes = stats.requested_bytes = bytes;
  stats.num_ooms = out_of_memory_;
  stats.num_device_alloc = all_.blocks.allocated;
  stats.num_device_free = all_.blocks.freed;
  return stats;
}

void AllocationStats::ResetAccumulated() {
  std::lock_guard lock(mutex_);
  for (Pool* pool : {&all_, &small_, &large_}) {
    pool->blocks.reset_accumulated();
    pool->bytes.reset_accumulated();
  }
  out_of_memory_ = 0;
}

void AllocationStats::ResetPeak() {
  std::lock_guard lock(mutex_);
  for (Pool* pool : {&all_, &small_, &large_}) {
    pool->blocks.reset_peak();
    pool->bytes.reset_peak();
  }
}

}  // namespace torch_tpu
