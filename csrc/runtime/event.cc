#include "runtime/event.h"

#include <utility>

#include "plugin/call.h"

namespace torch_tpu {

Event::~Event() {
  if (raw_ == nullptr) return;
  auto args = PJRT_ARGS(PJRT_Event_Destroy);
  args.event = raw_;
  CallQuietly(*plugin_, &PJRT_Api::PJRT_Event_Destroy, args);
}

Event::Event(Event&& other) noexcept
    : plugin_(other.plugin_), raw_(std::exchange(other.raw_, nullptr)), work_(other.work_) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(plugin_, other.plugin_);
  std::swap(raw_, other.raw_);
  std::swap(work_, other.work_);
  return *this;
}

bool Event::IsReady() const {
  if (raw_ == nullptr) return true;
  auto args = PJRT_ARGS(PJRT_Event_IsReady);
  args.event = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Event_IsReady, args, "asking an event");
  return args.is_ready;
}

void Event::Await() const {
  if (raw_ == nullptr) return;
  auto args = PJRT_ARGS(PJRT_Event_Await);
  args.event = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Event_Await, args, work_ != nullptr ? work_ : "asynchronous work failed");
}

}  // namespace torch_tpu
