#include "device/context.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "device/queue.h"
#include "plugin/abandon.h"

namespace torch_tpu {
namespace {

struct Settings {
  std::vector<PluginCandidate> candidates;
  int num_devices = 1;
};

std::atomic<DeviceContext*> g_context{nullptr};
std::atomic<bool> g_touched{false};  // a start was tried: threads and locks of a plugin may exist
std::atomic<bool> g_bad_fork{false};
std::atomic<bool> g_closed{false};
std::atomic<void (*)(Client&)> g_start_hook{nullptr};
std::atomic<int> g_device_count{-1};  // -1: not known yet

std::mutex& Mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

Settings& TheSettings() {
  static auto* settings = new Settings;
  return *settings;
}

// In a child. Takes no lock: another thread of the parent may have held it.
void AfterForkInChild() {
  if (g_touched.load()) {
    AbandonPlugins();
    g_bad_fork.store(true);
    g_context.store(nullptr);
  }
}

constexpr char kForkText[] =
    "Cannot re-initialize TPU in forked subprocess. To use TPU with multiprocessing, you must use the 'spawn' start "
    "method";

bool IsTpuPlugin(const PluginCandidate& candidate) { return candidate.name == "libtpu"; }

// A bare library name is the loader's to find; a path can be looked at.
bool MayExist(const PluginCandidate& candidate) {
  return candidate.path.find('/') == std::string::npos || ::access(candidate.path.c_str(), R_OK) == 0;
}

// Candidates worth opening, in order. libtpu without a chip waits long for hardware, so it counts only when it is all
// there is.
std::vector<PluginCandidate> Usable(const std::vector<PluginCandidate>& candidates) {
  std::vector<PluginCandidate> usable = candidates;
  if (candidates.size() > 1 && CountTpuChips() == 0) std::erase_if(usable, IsTpuPlugin);
  return usable;
}

std::shared_ptr<const Plugin> OpenPlugin(const std::vector<PluginCandidate>& candidates) {
  if (candidates.empty()) {
    Fail(Code::kNotFound,
         "torch_tpu: no PJRT plugin found. Install XLA's CPU plugin (pip install fastatomstruct-xla-cpu) or, on a TPU "
         "host, "
         "Google's (pip install libtpu), or set TORCH_TPU_PLUGIN to a plugin's name or path");
  }
  for (size_t i = 0;; ++i) {
    try {
      return Plugin::Open(candidates[i]);
    } catch (const Error&) {
      // A TPU that is there but does not work must not turn into a silent run on the CPU.
      if (i + 1 == candidates.size() || IsTpuPlugin(candidates[i])) throw;
    }
  }
}

}  // namespace

void Configure(std::vector<PluginCandidate> candidates, int num_devices) {
  static const int registered = ::pthread_atfork(nullptr, nullptr, &AfterForkInChild);
  Check(registered == 0, "torch_tpu: pthread_atfork failed");
  std::lock_guard lock(Mutex());
  if (g_context.load() != nullptr) return;
  TheSettings() = {std::move(candidates), std::max(num_devices, 0)};
  g_device_count.store(-1);
}

bool DeviceContext::IsInitialized() { return g_context.load(std::memory_order_acquire) != nullptr; }

void DeviceContext::SetStartHook(void (*hook)(Client&)) { g_start_hook.store(hook); }

bool DeviceContext::IsInBadFork() { return g_bad_fork.load(std::memory_order_relaxed); }

void DeviceContext::CheckFork() {
  if (IsInBadFork()) [[unlikely]]
    Fail(Code::kFailedPrecondition, kForkText);
}

DeviceContext& DeviceContext::Get() {
  DeviceContext* context = g_context.load(std::memory_order_acquire);
  if (context != nullptr && !g_closed.load(std::memory_order_relaxed)) [[likely]]
    return *context;
  return Start();
}

DeviceContext& DeviceContext::Start() {
  CheckFork();  // before the lock, which a thread of the parent may have held
  std::lock_guard lock(Mutex());
  if (g_closed.load()) Fail(Code::kFailedPrecondition, "torch_tpu: the runtime was shut down in this process");
  if (DeviceContext* context = g_context.load()) return *context;
  const Settings& settings = TheSettings();
  g_touched.store(true);
  std::unique_ptr<DeviceContext> context(new DeviceContext);
  std::shared_ptr<const Plugin> plugin = OpenPlugin(Usable(settings.candidates));
  context->client_ = Client::Create(plugin, ClientOptions{.num_devices = std::max(settings.num_devices, 1)});
  context->compiler_ = std::make_unique<Compiler>(context->client_.get());
  const int found = static_cast<int>(context->client_->devices().size());
  if (found == 0) Fail(Code::kUnavailable, "torch_tpu: plugin ", plugin->name(), " started, but shows no device");
  if (auto* hook = g_start_hook.load()) hook(*context->client_);
  context->num_devices_ = settings.num_devices > 0 ? std::min(settings.num_devices, found) : found;
  if (context->client_->is_cpu()) {
    std::fprintf(stderr, "torch_tpu: no TPU found, running on XLA's CPU plugin (%s)\n", plugin->name().c_str());
  }
  g_device_count.store(context->num_devices_);
  // Deliberately never freed: see Shutdown.
  DeviceContext* started = context.release();
  g_context.store(started, std::memory_order_release);
  return *started;
}

int DeviceContext::DeviceCount() noexcept {
  const int known = g_device_count.load(std::memory_order_relaxed);
  if (known >= 0) return known;
  try {
    int count = 0;
    bool ask_client = false;
    if (IsInBadFork()) {
      count = std::max(TheSettings().num_devices, 1);
    } else {
      std::lock_guard lock(Mutex());
      const Settings& settings = TheSettings();
      const std::vector<PluginCandidate> usable = Usable(settings.candidates);
      const auto found = std::find_if(usable.begin(), usable.end(), MayExist);
      if (found != usable.end()) {
        count = std::max(settings.num_devices, 1);
        ask_client = IsTpuPlugin(*found) && settings.num_devices != 1;
      }
    }
    if (ask_client) count = Get().num_devices();
    g_device_count.store(count);
    return count;
  } catch (const std::exception&) {
    return 0;
  }
}

void DeviceContext::CheckDevice(int index) {
  const int count = DeviceCount();
  if (index < 0 || index >= count) [[unlikely]] {
    Fail(Code::kInvalidArgument, "tpu:", index, ": invalid device ordinal, this process has ", count, " tpu device(s)");
  }
}

Device* DeviceContext::device(int index) {
  if (index < 0 || index >= num_devices_) [[unlikely]]
    CheckDevice(index);
  return client_->devices()[static_cast<size_t>(index)].get();
}

void DeviceContext::Shutdown() {
  if (IsInBadFork()) return;
  DeviceContext* context = g_context.load(std::memory_order_acquire);
  if (context != nullptr && !g_closed.load()) {
    for (int i = 0; i < context->num_devices_; ++i) {
      try {
        Queue::Of(i).Synchronize();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "torch_tpu: work on tpu:%d had failed: %s\n", i, error.what());
      }
    }
    context->compiler_->ClearMemory();
  }
  g_closed.store(true);
  AbandonPlugins();
}

}  // namespace torch_tpu
