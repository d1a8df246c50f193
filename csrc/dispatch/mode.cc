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

// The thread's own mode travels with autograd to its threads: this is what PyTorch hands over to them.
const c10::DebugInfoKind kModeSlot = c10::DebugInfoKind::TEST_INFO_2;
struct ModeInfo : c10::DebugInfoBase {
  explicit ModeInfo(int mode) : mode(mode) {}
  int mode;
};
thread_local int precision_override = -1;

}  // namespace

EagerMode CurrentMode() {
  const int mode = ThreadMode();
  return static_cast<EagerMode>(mode >= 0 ? mode : ProcessMode().load(std::memory_order_relaxed));
}

void SetProcessMode(EagerMode mode) { ProcessMode() = static_cast<int>(mode); }

void SetThreadMode(int mode) {
  if (ThreadMode() >= 0) c10::ThreadLocalDebugInfo::_pop(kModeSlot);
  if (mode >= 0) c10::ThreadLocalDebugInfo::_push(kModeSlot, std::make_shared<ModeInfo>(mode));
}

int ThreadMode() {
  const auto* info = dynamic_cast<ModeInfo*>(c10::ThreadLocalDebugInfo::get(kModeSlot));
  return info == nullptr ? -1 : info->mode;
}

void SetPrecisionOverride(int precision) { precision_override = precision; }
int PrecisionOverride() { return precision_override; }

Precision CurrentPrecision() {
  if (precision_override >= 0) return static_cast<Precision>(precision_override);
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
