#include "device/storage.h"

#include <c10/core/Allocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "device/address.h"
#include "device/allocation_stats.h"
#include "device/context.h"
#include "device/current.h"
#include "device/host_memory.h"
#include "device/queue.h"
#include "device/torch_error.h"
#include "plugin/abandon.h"

namespace torch_tpu {
namespace {

c10::Device TpuDevice(c10::DeviceIndex index) { return c10::Device(c10::DeviceType::PrivateUse1, index); }

void Count(const StorageContext& context, int64_t bytes) {
  AllocationStats& stats = AllocationStats::Of(context.device);
  if (bytes >= 0) {
    stats.Allocated(context.nbytes);
  } else {
    stats.Freed(context.nbytes);
  }
  if (c10::memoryProfilingEnabled()) [[unlikely]] {
    const size_t current = stats.current_bytes();
    c10::reportMemoryUsageToProfiler(reinterpret_cast<void*>(context.address), bytes, current, current,
                                     TpuDevice(context.device));
  }
}

// All contexts, so that one can be found by its address. A list costs next to nothing where it is kept up: at each
// allocation.
class LiveStorages {
 public:
  static LiveStorages& Get() {
    static auto* live = new LiveStorages;
    return *live;
  }

  void Add(StorageContext* context) {
    std::lock_guard lock(mutex_);
    context->next_live = first_;
    if (first_ != nullptr) first_->previous_live = context;
    first_ = context;
  }

  void Remove(StorageContext* context) {
    std::lock_guard lock(mutex_);
    (context->previous_live != nullptr ? context->previous_live->next_live : first_) = context->next_live;
    if (context->next_live != nullptr) context->next_live->previous_live = context->previous_live;
  }

  void Move(StorageContext* context, uintptr_t address) {
    std::lock_guard lock(mutex_);
    context->address = address;
  }

  StorageContext* Find(uintptr_t address) {
    std::lock_guard lock(mutex_);
    StorageContext* context = first_;
    while (context != nullptr && context->address != address) context = context->next_live;
    return context;
  }

 private:
  std::mutex mutex_;
  StorageContext* first_ = nullptr;
};

// Gives up a value.
void Release(BufferPtr& value, c10::DeviceIndex device) {
  if (value == nullptr) return;
  if (value.use_count() == 1 && !PluginsAbandoned()) Queue::Of(device).Dropped(value);
  value.reset();
}

void DeleteStorage(void* pointer) {
  auto* context = static_cast<StorageContext*>(pointer);
  LiveStorages::Get().Remove(context);
  Count(*context, -static_cast<int64_t>(context->nbytes));
  try {
    Release(context->value, context->device);
  } catch (const std::exception&) {
    // Freeing cannot fail for the caller; an error of the value itself reaches whoever waits for the device.
  }
  delete context;
}

class TpuAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t nbytes) override { return AllocateStorage(nbytes, CurrentDevice()); }

  void copy_data(void* dest, const void* src, std::size_t count) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "copy_data: a tpu storage has no host address; copy tensors with copy_()");
  }

  bool initialized() override { return true; }

  // Values are owned by their storages alone: there is nothing cached to give back.
  void emptyCache(c10::MempoolId_t pool) override {}

  // Buffers are counted by the programs that use them.
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {}

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    WithTorchErrors([&] { DeviceContext::CheckDevice(device); });
    return AllocationStats::Of(device).Report();
  }

  void resetAccumulatedStats(c10::DeviceIndex device) override {
    WithTorchErrors([&] { DeviceContext::CheckDevice(device); });
    AllocationStats::Of(device).ResetAccumulated();
  }

  void resetPeakStats(c10::DeviceIndex device) override {
    WithTorchErrors([&] { DeviceContext::CheckDevice(device); });
    AllocationStats::Of(device).ResetPeak();
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    return WithTorchErrors([&] { return DeviceMemoryInfo(device); });
  }
};

TpuAllocator* TheAllocator() {
  static auto* allocator = new TpuAllocator;
  return allocator;
}

const c10::AllocatorRegisterer<c10::DeviceType::PrivateUse1> g_registered(TheAllocator());

}  // namespace

c10::DeviceAllocator* GetAllocator() { return TheAllocator(); }

c10::DataPtr AllocateStorage(size_t nbytes, c10::DeviceIndex device) {
  if (DeviceContext::IsInBadFork()) [[unlikely]]
    WithTorchErrors([] { DeviceContext::CheckFork(); });
  auto* context = new StorageContext{nullptr, nullptr, device, nbytes, ReserveAddress(nbytes, device)};
  LiveStorages::Get().Add(context);
  Count(*context, static_cast<int64_t>(nbytes));
  return c10::DataPtr(reinterpret_cast<void*>(context->address), context, &DeleteStorage, TpuDevice(device));
}

StorageContext* ContextOf(const c10::DataPtr& data) {
  if (data.get_deleter() == &DeleteStorage) [[likely]]
    return static_cast<StorageContext*>(data.get_context());
  if (data.get() == nullptr || !data.device().is_privateuseone()) return nullptr;
  return LiveStorages::Get().Find(reinterpret_cast<uintptr_t>(data.get()));
}

StorageContext& ContextOf(const c10::TensorImpl& tensor) {
  TORCH_CHECK(tensor.has_storage(), "expected a tpu tensor with a storage, got one without");
  StorageContext* context = ContextOf(tensor.unsafe_storage().data_ptr());
  TORCH_CHECK(context != nullptr, "expected a storage that was allocated on a tpu device, got one of ",
              tensor.unsafe_storage().device());
  return *context;
}

void ResizeStorage(c10::StorageImpl& storage, size_t nbytes) {
  StorageContext* context = ContextOf(storage);
  // A storage whose DataPtr was never set, or was cleared.
  if (context == nullptr && storage.data_ptr().get() == nullptr &&
      storage.device_type() == c10::DeviceType::PrivateUse1) {
    storage.set_data_ptr_noswap(AllocateStorage(nbytes, storage.device().index()));
    storage.set_nbytes(nbytes);
    return;
  }
  TORCH_CHECK(context != nullptr, "resize_: expected a storage that was allocated on a tpu device, got one of ",
              storage.device());
  std::lock_guard lock(Queue::Of(context->device).mutex());
  AllocationStats& stats = AllocationStats::Of(context->device);
  stats.Freed(context->nbytes);
  stats.Allocated(nbytes);
  const bool grows = nbytes > context->nbytes;
  context->nbytes = nbytes;
  if (nbytes == 0) {
    Release(context->value, context->device);
    context->pending.reset();
  }
  if (grows) {
    LiveStorages::Get().Move(context, ReserveAddress(nbytes, context->device));
    c10::DataPtr old = storage.set_data_ptr(c10::DataPtr());
    old.release_context();
    storage.set_data_ptr_noswap(
        c10::DataPtr(reinterpret_cast<void*>(context->address), context, &DeleteStorage, TpuDevice(context->device)));
  }
  storage.set_nbytes(nbytes);
}

std::pair<size_t, size_t> DeviceMemoryInfo(c10::DeviceIndex device) {
  const std::optional<MemoryStats> stats = DeviceContext::Get().device(device)->memory_stats();
  if (stats && stats->limit) {
    const int64_t free = std::max<int64_t>(*stats->limit - stats->in_use, 0);
    return {static_cast<size_t>(free), static_cast<size_t>(*stats->limit)};
  }
  const HostMemory host = ReadHostMemory();
  return {host.available, host.total};
}

Error OutOfMemory(const Error& error, c10::DeviceIndex device) {
  AllocationStats& stats = AllocationStats::Of(device);
  stats.OutOfMemory();
  std::string figures;
  try {
    const auto [free, total] = DeviceMemoryInfo(device);
    figures = Cat(" tpu:", static_cast<int>(device), " has ", c10::CachingAllocator::format_size(total), ", of which ",
                  c10::CachingAllocator::format_size(free), " are free.");
  } catch (const Error&) {
    // The figures are a courtesy; the error itself must get through.
  }
  return Error(Code::kResourceExhausted,
               Cat("TPU out of memory.", figures, " Tensors of this process hold ",
                   c10::CachingAllocator::format_size(stats.current_bytes()), ". ", error.what()));
}

}  // namespace torch_tpu
