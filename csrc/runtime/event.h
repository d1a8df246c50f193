// A PJRT event: becomes ready once, perhaps with an error.
#pragma once

struct PJRT_Event;

namespace torch_tpu {

class Plugin;

class Event {
 public:
  Event() = default;  // always ready
  // `work`: what the event waits for, as errors name it; a text that stays for good, or nullptr.
  Event(const Plugin* plugin, PJRT_Event* raw, const char* work = nullptr) : plugin_(plugin), raw_(raw), work_(work) {}
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
  const char* work_ = nullptr;
};

}  // namespace torch_tpu
