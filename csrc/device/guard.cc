// Devices, streams and events as PyTorch's generic code asks for them.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "device/autocast.h"
#include "device/context.h"
#include "device/current.h"
#include "device/queue.h"
#include "device/torch_error.h"

namespace torch_tpu {
namespace {

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One recording of an event: what was in flight then.
struct Recording {
  std::vector<EventPtr> pending;
  std::atomic<int64_t> finished_at{0};  // of timed ones, set once all of `pending` is ready

  bool Done(bool timed) const {
    if (timed) return finished_at.load(std::memory_order_acquire) != 0;
    for (const EventPtr& event : pending) {
      if (!event->IsReady()) return false;
    }
    return true;
  }
};

// Notes when timed recordings finish: asking later would tell the time of the question. Lives as long as the process.
class TimeKeeper {
 public:
  static TimeKeeper& Get() {
    static auto* keeper = new TimeKeeper;
    return *keeper;
  }

  void Add(std::shared_ptr<Recording> recording) {
    if (recording->pending.empty()) {
      recording->finished_at.store(Now(), std::memory_order_release);
      return;
    }
    {
      std::lock_guard lock(mutex_);
      if (!started_) std::thread([this] { Run(); }).detach();
      started_ = true;
      waiting_.push_back(std::move(recording));
    }
    added_.notify_one();
  }

 private:
  void Run() {
    for (;;) {
      std::shared_ptr<Recording> recording;
      {
        std::unique_lock lock(mutex_);
        added_.wait(lock, [this] { return !waiting_.empty(); });
        recording = std::move(waiting_.front());
        waiting_.pop_front();
      }
      for (const EventPtr& event : recording->pending) {
        try {
          event->Await();
        } catch (const Error&) {
          // Reaches whoever waits for the event or the device; a failed program has ended all the same.
        }
      }
      recording->finished_at.store(Now(), std::memory_order_release);
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::shared_ptr<Recording>> waiting_;
  bool started_ = false;
};

struct RecordedEvent {
  bool timed = false;
  std::shared_ptr<Recording> recording;
};

RecordedEvent* AsEvent(void* event) { return static_cast<RecordedEvent*>(event); }

void SynchronizeDevice(c10::DeviceIndex device) {
  // A device that nobody used has nothing to wait for; a forked child must hear why it cannot wait.
  DeviceContext::CheckFork();
  if (DeviceContext::IsInitialized()) Queue::Of(device).Synchronize();
}

struct TpuGuardImpl final : public c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }

  c10::Device exchangeDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == type(), "expected a tpu device, got ", device);
    const c10::Device previous(type(), CurrentDevice());
    setDevice(device);
    return previous;
  }

  c10::Device getDevice() const override { return c10::Device(type(), CurrentDevice()); }

  void setDevice(c10::Device device) const override {
    EnsureAutocastDefault();
    if (!device.has_index() || device.index() == CurrentDevice()) return;
    WithTorchErrors([&] { SetCurrentDevice(device.index()); });
  }

  void uncheckedSetDevice(c10::Device device) const noexcept override {
    try {
      if (device.has_index()) SetCurrentDevice(device.index());
    } catch (const std::exception&) {
      // A guard's destructor restores a device that was current before, so it is there.
    }
  }

  c10::Stream getStream(c10::Device device) const override { return CurrentStream(device.index()); }

  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT,
                       c10::Device(type(), device.has_index() ? device.index() : CurrentDevice()));
  }

  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return getNewStream(device, 0);
  }

  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return WithTorchErrors([&] {
      if (device.has_index()) DeviceContext::CheckDevice(device.index());
      return NewStream(device.index());
    });
  }

  c10::Stream exchangeStream(c10::Stream stream) const override {
    return WithTorchErrors([&] { return ExchangeStream(stream); });
  }

  // A stream is a name, and its id is what tells it from others.
  void* getStreamNativeHandle(const c10::Stream stream) const override { return reinterpret_cast<void*>(stream.id()); }

  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(DeviceContext::DeviceCount());
  }

  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    auto& types = capability.capability_data.supported_scalar_types;
    types.has_Bool = types.has_Char = types.has_Short = types.has_Int = types.has_Long = 1;
    types.has_Byte = types.has_UInt16 = types.has_UInt32 = types.has_UInt64 = 1;
    types.has_Half = types.has_BFloat16 = types.has_Float = types.has_Double = 1;
    types.has_ComplexFloat = types.has_ComplexDouble = 1;
    types.has_Float8_e4m3fn = types.has_Float8_e5m2 = types.has_Float8_e4m3fnuz = types.has_Float8_e5m2fnuz = 1;
    types.has_Float8_e8m0fnu = 1;
    return capability;
  }

  bool queryStream(const c10::Stream& stream) const override {
    return WithTorchErrors([&] {
      DeviceContext::CheckFork();
      Queue& queue = Queue::Of(stream.device_index());
      queue.Flush();
      return queue.Pending().empty();
    });
  }

  void synchronizeStream(const c10::Stream& stream) const override { synchronizeDevice(stream.device_index()); }

  void synchronizeDevice(const c10::DeviceIndex device) const override {
    WithTorchErrors([&] {
      const c10::DeviceIndex index = device < 0 ? CurrentDevice() : device;
      DeviceContext::CheckDevice(index);
      SynchronizeDevice(index);
    });
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex device_index,
              const c10::EventFlag flag) const override {
    TORCH_CHECK(device_index == -1 || device_index == stream.device_index(), "Event device index ",
                static_cast<int>(device_index), " does not match recording stream's device index ",
                static_cast<int>(stream.device_index()), ".");
    WithTorchErrors([&] {
      DeviceContext::CheckFork();
      if (*event == nullptr) *event = new RecordedEvent{flag == c10::EventFlag::BACKEND_DEFAULT, nullptr};
      auto recording = std::make_shared<Recording>();
      Queue& queue = Queue::Of(stream.device_index());
      queue.Flush();
      recording->pending = queue.Pending();
      AsEvent(*event)->recording = recording;
      if (AsEvent(*event)->timed) TimeKeeper::Get().Add(std::move(recording));
    });
  }

  // All later work of the device comes after the event anyway, and work of another device that reads this one's results
  // waits for their values.
  void block(void* event, const c10::Stream& stream) const override {}

  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    return AsEvent(event)->recording->Done(AsEvent(event)->timed);
  }

  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    WithTorchErrors([&] {
      DeviceContext::CheckFork();
      const bool timed = AsEvent(event)->timed;
      const std::shared_ptr<Recording> recording = AsEvent(event)->recording;
      WaitUntil([&] { return recording->Done(timed); });
      for (const EventPtr& pending : recording->pending) pending->Await();
    });
  }

  double elapsedTime(void* start, void* end, const c10::DeviceIndex device_index) const override {
    TORCH_CHECK(start != nullptr && end != nullptr, "Both events must be recorded before calculating elapsed time.");
    const int64_t from = AsEvent(start)->recording->finished_at.load(std::memory_order_acquire);
    const int64_t to = AsEvent(end)->recording->finished_at.load(std::memory_order_acquire);
    return static_cast<double>(to - from) / 1e6;
  }

  void destroyEvent(void* event, const c10::DeviceIndex device_index) const noexcept override { delete AsEvent(event); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, TpuGuardImpl)

}  // namespace
}  // namespace torch_tpu
