// Environment variables are one table; the only getenv of the core is in env.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace torch_tpu::env {

enum class Var {
  kPlugin,          // TORCH_TPU_PLUGIN
  kNumDevices,      // TORCH_TPU_NUM_DEVICES
  kLaunchBlocking,  // TORCH_TPU_LAUNCH_BLOCKING
  kDeferAndFuse,    // TORCH_TPU_DEFER_AND_FUSE
  kDebugChecks,     // TORCH_TPU_ENABLE_DEBUG_CHECKS
  kFallback,        // TORCH_TPU_FALLBACK: warn (default) | error | silent
  kHostKernels,     // TORCH_TPU_HOST_KERNELS: 1 (default) | 0
  kCacheDir,        // TORCH_TPU_CACHE_DIR
  kCache,           // TORCH_TPU_CACHE: 1 (default) | 0
  kCacheMaxBytes,   // TORCH_TPU_CACHE_MAX_BYTES
  kDumpTo,          // TORCH_TPU_DUMP_TO: folder for the StableHLO text of each compiled program
  kHome,            // HOME
  kXdgCacheHome,    // XDG_CACHE_HOME
  kLocalRank,       // LOCAL_RANK
  kTpuLibraryPath,  // TPU_LIBRARY_PATH
  kXlaFlags,        // XLA_FLAGS, which plugins read: it changes what they compile
  kCount,
};

struct Row {
  Var var;
  const char* name;
  const char* default_value;  // nullptr: unset
  const char* meaning;
};

std::span<const Row> Table();
// The value, the default when unset, nullopt when there is neither. Read anew at each call: not for hot paths.
std::optional<std::string> Get(Var var);
bool Flag(Var var);  // "1", "true", "on", "yes" (any case)
std::optional<int64_t> Int(Var var);
// Sets a variable for libraries that read the environment (libtpu) unless the user has set it.
void SetDefault(const char* name, const char* value);

}  // namespace torch_tpu::env
