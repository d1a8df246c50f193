#include "device/host_memory.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace torch_tpu {
namespace {

constexpr size_t kAlignment = 64;

void FreePinned(void* pointer);

class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t nbytes) override {
    if (nbytes == 0) return {nullptr, nullptr, &FreePinned, c10::DeviceType::CPU};
    const size_t size = (nbytes + kAlignment - 1) / kAlignment * kAlignment;
    void* pointer = std::aligned_alloc(kAlignment, size);
    TORCH_CHECK_WITH(OutOfMemoryError, pointer != nullptr, "pin_memory: no ", nbytes, " bytes of host memory left");
    std::unique_lock lock(mutex_);
    ranges_[reinterpret_cast<uintptr_t>(pointer)] = size;
    stats_.allocations.increase(1);
    stats_.allocated_bytes.increase(size);
    return {pointer, pointer, &FreePinned, c10::DeviceType::CPU};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &FreePinned; }

  void copy_data(void* dest, const void* src, std::size_t count) const override { std::memcpy(dest, src, count); }

  void Free(void* pointer) {
    if (pointer == nullptr) return;
    {
      std::unique_lock lock(mutex_);
      const auto found = ranges_.find(reinterpret_cast<uintptr_t>(pointer));
      if (found != ranges_.end()) {
        stats_.allocations.decrease(1);
        stats_.allocated_bytes.decrease(found->second);
        ranges_.erase(found);
      }
    }
    std::free(pointer);
  }

  bool Owns(const void* pointer) const {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    std::shared_lock lock(mutex_);
    auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return false;
    --after;
    return address < after->first + after->second;
  }

  // A transfer keeps what it still reads alive itself, so no block has to wait for a stream.
  bool record_event(void* pointer, void* context, c10::Stream stream) override { return Owns(pointer); }

  void empty_cache() override {}

  at::HostStats get_stats() override {
    std::shared_lock lock(mutex_);
    at::HostStats stats;
    stats.active_requests = stats.allocations = stats_.allocations;
    stats.active_bytes = stats.allocated_bytes = stats_.allocated_bytes;
    return stats;
  }

  void reset_accumulated_stats() override {
    std::unique_lock lock(mutex_);
    stats_.allocations.reset_accumulated();
    stats_.allocated_bytes.reset_accumulated();
  }

  void reset_peak_stats() override {
    std::unique_lock lock(mutex_);
    stats_.allocations.reset_peak();
    stats_.allocated_bytes.reset_peak();
  }

 private:
  struct Counts {
    c10::CachingAllocator::Stat allocations, allocated_bytes;
  };
  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, size_t> ranges_;
  Counts stats_;
};

PinnedAllocator* TheAllocator() {
  static auto* allocator = new PinnedAllocator;
  return allocator;
}

void FreePinned(void* pointer) { TheAllocator()->Free(pointer); }

}  // namespace

at::HostAllocator* GetHostAllocator() { return TheAllocator(); }

bool IsPinned(const void* pointer) { return TheAllocator()->Owns(pointer); }

HostMemory ReadHostMemory() {
  HostMemory memory;
  struct sysinfo info{};
  if (::sysinfo(&info) == 0) {
    memory.total = static_cast<size_t>(info.totalram) * info.mem_unit;
    memory.available = static_cast<size_t>(info.freeram) * info.mem_unit;
  }
  // The kernel's own estimate counts caches that it would give up.
  std::ifstream file("/proc/meminfo");
  std::string name;
  size_t kibibytes = 0;
  std::string unit;
  while (file >> name >> kibibytes && std::getline(file, unit)) {
    if (name == "MemAvailable:") memory.available = kibibytes << 10;
  }
  memory.available = std::min(memory.available, memory.total);
  return memory;
}

}  // namespace torch_tpu
