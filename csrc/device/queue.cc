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
  if (ready.IsReady()) {
    // An error that a Synchronize has thrown is not thrown again: then the value is off the list.
    const auto listed = [&](const std::weak_ptr<Buffer>& weak) { return weak.lock() == value; };
    try {
      ready.Await();
    } catch (const Error&) {
      if (!error_ && std::any_of(in_flight_.begin(), in_flight_.end(), listed)) error_ = std::current_exception();
    }
    return;
  }
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

Error Queue::Origin(const Error& error) {
  const std::string text = error.what();
  Error origin = error;
  size_t shortest = text.size();
  auto consider = [&](const Error& other) {
    const std::string_view other_text = other.what();
    const size_t named = other_text.find(": ");  // each begins with the name of its own work
    if (named == std::string_view::npos) return;
    std::string_view cause = other_text.substr(named + 2);
    for (std::string_view head : {"Buffer Definition Event: ", "Error dispatching computation: "}) {
      while (cause.starts_with(head)) cause.remove_prefix(head.size());
    }
    if (other_text.size() - named >= shortest || cause.empty() || !text.ends_with(cause)) return;
    shortest = other_text.size() - named;
    origin = other;
  };
  std::lock_guard lock(mutex_);
  auto await = [&](const Event& event) {
    try {
      if (event.IsReady()) event.Await();
    } catch (const Error& other) {
      consider(other);
    }
  };
  for (const EventPtr& event : dropped_) {
    if (event != nullptr) await(*event);
  }
  for (const std::weak_ptr<Buffer>& weak : in_flight_) {
    if (const BufferPtr buffer = weak.lock(); buffer != nullptr && !buffer->IsDeleted()) await(buffer->Ready());
  }
  if (error_ != nullptr) {
    try {
      std::rethrow_exception(error_);
    } catch (const Error& other) {
      consider(other);
    }
  }
  return origin;
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
  if (error == nullptr) return;
  try {
    std::rethrow_exception(error);
  } catch (const Error& failed) {
    throw Origin(failed);
  }
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

void AwaitInterruptibly(const Buffer& buffer) {
  try {
    AwaitInterruptibly(buffer.Ready());
  } catch (const Error& error) {
    throw Queue::Of(buffer.device()->index()).Origin(error);
  }
}

void SetInterruptCheck(void (*check)()) { g_interrupt_check.store(check); }

}  // namespace torch_tpu
