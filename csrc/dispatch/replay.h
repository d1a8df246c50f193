// Records what eager mode launches and launches it again from a plain loop: the time that a step could take at best.
#pragma once

#include <atomic>
#include <vector>

#include "dispatch/entry.h"
#include "runtime/runtime.h"

namespace torch_tpu {

// One recording a process, for benchmarks: not for use from several threads at once. Buffers are named by slots, so
// that the loop has the data flow, and the donations, of what was recorded. Host transfers are not recorded.
class LaunchLog {
 public:
  static bool recording() { return recording_.load(std::memory_order_relaxed); }
  // Forgets the last recording and begins one.
  static void Start();
  // Ends it; returns the number of launches.
  static size_t Stop();
  // `inputs` and `results` of a launch of `entry` that has just been made, `keep` as it was given to Execute. Caller
  // holds the queue's mutex.
  static void Note(const Entry& entry, const std::vector<Buffer*>& inputs, const std::vector<int64_t>& keep,
                   const std::vector<BufferPtr>& results);
  // Launches the recording `repeats` times on `device`, waits, and gives seconds per repetition. Inputs are zeros of
  // their types.
  static double Replay(int device, int repeats);

 private:
  static std::atomic<bool> recording_;
};

}  // namespace torch_tpu
