// The process's one client, its devices and its compiler, made at first use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compile/compiler.h"
#include "plugin/plugin.h"
#include "runtime/runtime.h"

namespace torch_tpu {

// Called by the Python package at load: where plugins are, in order of preference (opens nothing). At most
// `num_devices` of the client's devices are shown; 0 shows all that a TPU has.
void Configure(std::vector<PluginCandidate> candidates, int num_devices);

class DeviceContext {
 public:
  // Starts the client at first use (thread-safe). Throws Error: no plugin found and what to install; a plugin that
  // fails; a forked child of a process that had a client ("Cannot re-initialize TPU in forked subprocess. To use TPU
  // with multiprocessing, you must use the 'spawn' start method"); after Shutdown.
  static DeviceContext& Get();
  static bool IsInitialized();
  // `hook` runs with each client right after its start, before anything is compiled or loaded.
  static void SetStartHook(void (*hook)(Client&));
  // True in a child forked after the client started: nothing of the client may be touched there, not even to free it.
  static bool IsInBadFork();
  static void CheckFork();  // throws the error of Get in such a child
  // Number of devices without starting a client where that can be known (CPU plugin: configured number; one TPU device
  // asked for: 1; else starts it). 0 when no plugin can be found. Never throws.
  static int DeviceCount() noexcept;
  // Throws kInvalidArgument ("invalid device ordinal") when out of range.
  static void CheckDevice(int index);
  // Waits for all work and drops compiled programs. Later use throws. The client itself is never destroyed: Python may
  // free tensors after this, in any order.
  static void Shutdown();

  Client& client() { return *client_; }
  Compiler& compiler() { return *compiler_; }
  Device* device(int index);  // throws as CheckDevice
  int num_devices() const { return num_devices_; }

 private:
  DeviceContext() = default;
  static DeviceContext& Start();
  std::unique_ptr<Client> client_;
  std::unique_ptr<Compiler> compiler_;
  int num_devices_ = 0;
};

}  // namespace torch_tpu
