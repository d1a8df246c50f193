// How ops are executed, for the whole process and for a thread.
#pragma once

#include "program/builder.h"

namespace torch_tpu {

// The numbers are those of torch.tpu.EagerMode on the Python side.
enum class EagerMode : int {
  kStrict = 0,  // DEFER_NEVER: one executable per op, launched asynchronously
  kDebug = 1,   // DEFER_NEVER_AND_LAUNCH_BLOCKING: waits after each op, index checks on
  kFused = 2,   // DEFER_AND_FUSE
};

EagerMode CurrentMode();  // kFused inside a capture
void SetProcessMode(EagerMode mode);
// -1 takes the thread's own mode away.
void SetThreadMode(int mode);
int ThreadMode();

// -1: follow torch.set_float32_matmul_precision.
void SetPrecisionOverride(int precision);
int PrecisionOverride();
Precision CurrentPrecision();

class Capture;  // dispatch/capture.h
// nullptr: ops of this thread run. Like the mode, it travels with autograd to its threads.
Capture* CurrentCapture();
void SetThreadCapture(Capture* capture);

// The above in one look, for each op's way.
struct ThreadState {
  EagerMode mode;
  Capture* capture;
};
ThreadState CurrentState();

}  // namespace torch_tpu
