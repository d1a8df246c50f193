#include "dispatch/mode.h"

#include <ATen/Context.h>

#include <atomic>

#include "base/env.h"

namespace torch_tpu {
namespace {

int InitialMode() {
  if (env::Flag(env::Var::kLaunchBlocking)) return static_cast<int>(EagerMode::kDebug);
  return static_cast<int>(EagerMode::kStrict);
}

std::atomic<int>& ProcessMode() {
  static std::atomic<int> mode{InitialMode()};
  return mode;
}

thread_local int thread_mode = -1;
thread_local int precision_override = -1;

}  // namespace

EagerMode CurrentMode() {
  return static_cast<EagerMode>(thread_mode >= 0 ? thread_mode : ProcessMode().load(std::memory_order_relaxed));
}

void SetProcessMode(EagerMode mode) { ProcessMode() = static_cast<int>(mode); }
void SetThreadMode(int mode) { thread_mode = mode; }
int ThreadMode() { return thread_mode; }

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
