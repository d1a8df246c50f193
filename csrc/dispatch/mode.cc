#include "dispatch/mode.h"

#include <ATen/Context.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <atomic>
#include <memory>

#include "base/env.h"

namespace torch_tpu {
namespace {

int InitialMode() {
  if (env::Flag(env::Var::kLaunchBlocking)) return static_cast<int>(EagerMode::kDebug);
  return static_cast<int>(env::Flag(env::Var::kDeferAndFuse) ? EagerMode::kFused : EagerMode::kStrict);
}

std::atomic<int>& ProcessMode() {
  static std::atomic<int> mode{InitialMode()};
  return mode;
}

// A thread's own settings travel with autograd to its threads: debug info is what PyTorch hands over to them. They
// never change once pushed, since other threads may see them.
struct Settings : c10::DebugInfoBase {
  int mode = -1, precision = -1;
  Capture* capture = nullptr;
};
const c10::DebugInfoKind kSlot = c10::DebugInfoKind::TEST_INFO_2;

Settings Get() {
  auto* info = c10::ThreadLocalDebugInfo::get(kSlot);
  if (info == nullptr) [[likely]]
    return {};
  const auto* settings = dynamic_cast<Settings*>(info);
  return settings == nullptr ? Settings() : *settings;
}

void Set(const Settings& settings) {
  // Debug info is a stack. Ours is on top unless a profiler started in between; then the new settings cover the old
  // ones.
  if (c10::ThreadLocalDebugInfo::get(kSlot) != nullptr) {
    try {
      c10::ThreadLocalDebugInfo::_pop(kSlot);
    } catch (const c10::Error&) {
    }
  }
  const bool covers = c10::ThreadLocalDebugInfo::get(kSlot) != nullptr;
  if (covers || settings.mode >= 0 || settings.precision >= 0 || settings.capture != nullptr) {
    c10::ThreadLocalDebugInfo::_push(kSlot, std::make_shared<Settings>(settings));
  }
}

}  // namespace

ThreadState CurrentState() {
  const Settings settings = Get();
  if (settings.capture != nullptr) return {EagerMode::kFused, settings.capture};
  const int mode = settings.mode;
  return {static_cast<EagerMode>(mode >= 0 ? mode : ProcessMode().load(std::memory_order_relaxed)), nullptr};
}

EagerMode CurrentMode() { return CurrentState().mode; }

void SetProcessMode(EagerMode mode) { ProcessMode() = static_cast<int>(mode); }

void SetThreadMode(int mode) {
  Settings settings = Get();
  settings.mode = mode;
  Set(settings);
}
int ThreadMode() { return Get().mode; }

Capture* CurrentCapture() { return Get().capture; }
void SetThreadCapture(Capture* capture) {
  Settings settings = Get();
  settings.capture = capture;
  Set(settings);
}

void SetPrecisionOverride(int precision) {
  Settings settings = Get();
  settings.precision = precision;
  Set(settings);
}
int PrecisionOverride() { return Get().precision; }

Precision CurrentPrecision() {
  if (const int precision = Get().precision; precision >= 0) return static_cast<Precision>(precision);
  switch (at::globalContext().float32MatmulPrecision()) {
    case at::Float32MatmulPrecision::HIGH:
      return Precision::kHigh;
    case at::Float32MatmulPrecision::MEDIUM:
      return Precision::kDefault;
    default:
      return Precision::kHighest;
  }
}

}  // namespace torch_tpu
