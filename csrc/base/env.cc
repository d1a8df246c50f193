#include "base/env.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "base/error.h"

namespace torch_tpu::env {
namespace {

constexpr std::array<Row, static_cast<size_t>(Var::kCount)> kRows = {{
    {Var::kPlugin, "TORCH_TPU_PLUGIN", nullptr, "PJRT plugin to use: a known name or the path of a shared object"},
    {Var::kNumDevices, "TORCH_TPU_NUM_DEVICES", "1", "number of devices of a CPU plugin"},
    {Var::kLaunchBlocking, "TORCH_TPU_LAUNCH_BLOCKING", nullptr, "wait for every program right after its launch"},
    {Var::kDeferAndFuse, "TORCH_TPU_DEFER_AND_FUSE", nullptr,
     "start in fused eager mode: record ops, compile them together"},
    {Var::kDebugChecks, "TORCH_TPU_ENABLE_DEBUG_CHECKS", nullptr,
     "start in debug eager mode: check every op as it runs"},
    {Var::kFallback, "TORCH_TPU_FALLBACK", "warn", "an op without a lowering runs on the host: warn, error or silent"},
    {Var::kHostKernels, "TORCH_TPU_HOST_KERNELS", "1",
     "on a CPU plugin, let programs call PyTorch's own CPU kernels: 1 or 0"},
    {Var::kCacheDir, "TORCH_TPU_CACHE_DIR", nullptr,
     "folder of compiled programs (default: torch_tpu in the user's cache folder)"},
    {Var::kCache, "TORCH_TPU_CACHE", "1", "keep compiled programs on disk: 1 or 0"},
    {Var::kCacheMaxBytes, "TORCH_TPU_CACHE_MAX_BYTES", "4294967296",
     "size bound of that folder; the least recently used go first"},
    {Var::kDumpTo, "TORCH_TPU_DUMP_TO", nullptr, "folder for the StableHLO text of each compiled program"},
    {Var::kHome, "HOME", nullptr, "the user's home, where the cache is by default"},
    {Var::kXdgCacheHome, "XDG_CACHE_HOME", nullptr, "the user's cache folder, before HOME/.cache"},
    {Var::kLocalRank, "LOCAL_RANK", nullptr, "this process' index on its host, set by torchrun"},
    {Var::kTpuLibraryPath, "TPU_LIBRARY_PATH", nullptr, "path of libtpu.so, as other TPU software reads it"},
    {Var::kXlaFlags, "XLA_FLAGS", nullptr, "XLA's own options, read by plugins; part of every cache key"},
}};

constexpr bool InOrder() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].var) != i) return false;
  }
  return true;
}
static_assert(InOrder(), "rows follow the enum");

}  // namespace

std::span<const Row> Table() { return kRows; }

std::optional<std::string> Get(Var var) {
  const Row& row = kRows.at(static_cast<size_t>(var));
  const char* value = std::getenv(row.name);
  // An empty variable is how a shell unsets one for a single command.
  if (value == nullptr || *value == '\0') value = row.default_value;
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

bool Flag(Var var) {
  std::string value = Get(var).value_or("");
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
  return value == "1" || value == "true" || value == "on" || value == "yes";
}

std::optional<int64_t> Int(Var var) {
  const std::optional<std::string> value = Get(var);
  if (!value) return std::nullopt;
  errno = 0;
  char* end = nullptr;
  const long long number = std::strtoll(value->c_str(), &end, 10);
  Check(errno == 0 && end != value->c_str() && *end == '\0', kRows[static_cast<size_t>(var)].name,
        ": expected an integer, got \"", *value, "\"");
  return number;
}

void SetDefault(const char* name, const char* value) { ::setenv(name, value, /*overwrite=*/0); }

}  // namespace torch_tpu::env
