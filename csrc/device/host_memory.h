// The host's memory: what a CPU plugin's device has, and host memory that a plugin can read without a copy.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

#include <cstddef>

namespace torch_tpu {

struct HostMemory {
  size_t available = 0, total = 0;  // bytes
};
HostMemory ReadHostMemory();

// "Pinned" memory: 64-byte aligned, which is what lets the CPU plugins alias it and what TPU transfers like.
// Thread-safe.
at::HostAllocator* GetHostAllocator();
// True inside memory of that allocator that is still allocated.
bool IsPinned(const void* pointer);

}  // namespace torch_tpu
