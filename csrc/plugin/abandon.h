// When plugins must no longer be called, not even to free things.
#pragma once

#include <atomic>

namespace torch_tpu {

inline std::atomic<bool> plugins_abandoned{false};

// From now on destructors leave the plugin's objects to the end of the process: its libraries take themselves down
// before the last of our owners are gone (at exit), or its threads are not there to help (in a forked child). Safe in a
// fork handler.
inline void AbandonPlugins() { plugins_abandoned.store(true); }
inline bool PluginsAbandoned() { return plugins_abandoned.load(std::memory_order_relaxed); }

}  // namespace torch_tpu
