// A device's queue: the lock under which storages' values change, and the work that is still in flight.
#pragma once

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "runtime/runtime.h"

namespace torch_tpu {

using EventPtr = std::shared_ptr<const Event>;

class Queue {
 public:
  // One per device for the life of the process. Throws kInvalidArgument for an index that no device can have.
  static Queue& Of(int device);

  std::recursive_mutex& mutex() { return mutex_; }
  // Remembers a launched result (weakly) until it is known to be ready. Caller holds the mutex.
  void Launched(const BufferPtr& result);
  // A result is about to be freed that may still be in flight: waiting for the device has to wait for it, too.
  void Dropped(const BufferPtr& value);
  // One event for each result in flight now: work is done when all are ready. Holds no device memory.
  std::vector<EventPtr> Pending();
  // Flushes what dispatch holds back, then waits for all work. Throws the error of a failed program once. Releases no
  // GIL: callers do. The mutex must not be held.
  void Synchronize();
  // Of the failures that are known, the one that `error` comes from: a program whose input failed has an error that
  // ends in its input's.
  Error Origin(const Error& error);
  // dispatch registers what must run before anyone waits (fused mode's pending graph).
  void SetFlush(std::function<void()> flush);
  void Flush();

 private:
  // True when the event is ready; then an error in it is kept for the next Synchronize.
  bool Settled(const Event& event);

  std::recursive_mutex mutex_;
  std::vector<std::weak_ptr<Buffer>> in_flight_;
  size_t prune_at_ = 256;
  // CPU plugins run up to 32 programs at once, in any order, so that many may be unfinished with nobody holding a
  // result.
  std::array<EventPtr, 32> dropped_;
  size_t next_dropped_ = 0;
  std::exception_ptr error_;
  std::function<void()> flush_;
};

// Waits until the buffer holds its value; throws the Error of the program that should have made it, or an input of it.
void AwaitInterruptibly(const Buffer& buffer);
// Waits with the interrupt check below, in small and growing steps; throws the event's Error.
void AwaitInterruptibly(const Event& event);
// The same for any condition.
void WaitUntil(const std::function<bool()>& done);
// `check` runs about 20 times a second during a wait and may throw to end it (Ctrl-C). Set once, by bindings.
void SetInterruptCheck(void (*check)());

}  // namespace torch_tpu
