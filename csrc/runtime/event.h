// A PJRT event: becomes ready once, perhaps with an error.
#pragma once

struct PJRT_Event;

namespace torch_tpu {

class Plugin;

class Event {
 public:
  Event() = default;  // always ready
  Event(const Plugin* plugin, PJRT_Event* raw) : plugin_(plugin), raw_(raw) {}
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  bool IsReady() const;  // also when it holds an error
  void Await() const;    // throws its Error

 private:
  const Plugin* plugin_ = nullptr;
  PJRT_Event* raw_ = nullptr;
};

}  // namespace torch_tpu
