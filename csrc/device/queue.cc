#include "device/queue.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"

namespace torch_tpu {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<void (*)()> g_interrupt_check{nullptr};

// c10::DeviceIndex is 8 bits wide.
constexpr int kMaxDevices = 128;

}  // namespace

Queue& Queue::Of(int device) {
  static auto* queues = new std::array<Queue, kMaxDevices>;
  Check(device >= 0 && device < kMaxDevices, "tpu:", device, ": invalid device ordinal");
  return (*queues)[static_cast<size_t>(device)];
}

bool Queue::Settled(const Event& event) {
  if (!event.IsReady()) return false;
  try {
    event.Await();
  } catch (const Error&) {
    if (!error_) error_ = std::current_exception();
  }
  return true;
}

void Queue::Launched(const BufferPtr& result) {
  in_flight_.push_back(result);
  if (in_flight_.size() < prune_at_) [[likely]]
    return;
  std::erase_if(in_flight_, [this](const std::weak_ptr<Buffer>& weak) {
    const BufferPtr buffer = weak.lock();
    return buffer == nullptr || buffer->IsDeleted() || Settled(buffer->Ready());
  });
  prune_at_ = std::max<size_t>(256, 2 * in_flight_.size());
}

void Queue::Dropped(const BufferPtr& value) {
  if (value == nullptr || value->IsDeleted()) return;
  Event ready = value->Ready();
  std::lock_guard lock(mutex_);
  if (Settled(ready)) return;
  dropped_[next_dropped_] = std::make_shared<const Event>(std::move(ready));
  next_dropped_ = (next_dropped_ + 1) % dropped_.size();
}

std::vector<EventPtr> Queue::Pending() {
  std::lock_guard lock(mutex_);
  std::vector<EventPtr> pending;
  for (EventPtr& event : dropped_) {
    if (event == nullptr) continue;
    if (Settled(*event)) {
      event.reset();
    } else {
      pending.push_back(event);
    }
  }
  std::erase_if(in_flight_, [&](const std::weak_ptr<Buffer>& weak) {
    const BufferPtr buffer = weak.lock();
    if (buffer == nullptr || buffer->IsDeleted()) return true;
    Event ready = buffer->Ready();
    if (Settled(ready)) return true;
    pending.push_back(std::make_shared<const Event>(std::move(ready)));
    return false;
  });
  return pending;
}

void Queue::Synchronize() {
  Flush();
  for (const EventPtr& event : Pending()) {
    try {
      AwaitInterruptibly(*event);
    } catch (const Error&) {
      std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }
  // Takes what has just become ready off the list, with its errors: they are thrown once.
  Pending();
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    error = std::exchange(error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

void Queue::SetFlush(std::function<void()> flush) {
  std::lock_guard lock(mutex_);
  flush_ = std::move(flush);
}

void Queue::Flush() {
  std::lock_guard lock(mutex_);
  if (flush_) flush_();
}

void WaitUntil(const std::function<bool()>& done) {
  const Clock::time_point start = Clock::now();
  Clock::time_point last_check = start;
  while (!done()) {
    const Clock::time_point now = Clock::now();
    const auto waited = now - start;
    if (waited < std::chrono::microseconds(200)) {
      ::sched_yield();
      continue;
    }
    // Oversleeps by at most a 32nd of the wait.
    std::this_thread::sleep_for(std::min<Clock::duration>(waited / 32, std::chrono::milliseconds(5)));
    if (now - last_check > std::chrono::milliseconds(50)) {
      last_check = now;
      if (auto* check = g_interrupt_check.load()) check();
    }
  }
}

void AwaitInterruptibly(const Event& event) {
  WaitUntil([&event] { return event.IsReady(); });
  event.Await();
}

void SetInterruptCheck(void (*check)()) { g_interrupt_check.store(check); }

}  // namespace torch_tpu
