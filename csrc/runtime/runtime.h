// One RAII class per PJRT object. Every class is movable or shared, none is copyable; all throw Error with the plugin's
// text.
//
// Thread-safe as PJRT is: a client, a device, an executable may be used from many threads; a Buffer is immutable.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tensor_type.h"
#include "runtime/event.h"

// Opaque handles of the C API, so that users of this header need no PJRT header.
struct PJRT_Buffer;
struct PJRT_Client;
struct PJRT_Device;
struct PJRT_LoadedExecutable;
struct PJRT_Executable;

namespace torch_tpu {

class Plugin;  // plugin/plugin.h
class Client;
class Device;

// An immutable value in a device's memory. Destroying it while a program still reads it is safe.
class Buffer {
 public:
  // `work`: what makes it, as errors name it; a text that stays for good, or nullptr.
  Buffer(Client* client, Device* device, PJRT_Buffer* raw, TensorType type, const char* work = nullptr);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const TensorType& type() const { return type_; }
  Device* device() const { return device_; }
  PJRT_Buffer* raw() const { return raw_; }
  // An event that is ready when the value is, or holds the error that made it.
  Event Ready() const;
  void Await() const;  // blocks; throws the error of the program that should have made it
  // Dense row-major bytes into `out` (type().bytes()); blocks.
  void ToHost(void* out) const;
  // Host address of the value on a CPU plugin, after Await; nullptr elsewhere. Valid while the Buffer lives.
  const void* HostPointer() const;
  std::shared_ptr<Buffer> CopyTo(Device* device) const;
  const char* work() const { return work_; }  // may be nullptr
  // The plugin has taken its memory for a donation; only destruction is allowed from here.
  bool IsDeleted() const;

 private:
  Client* client_;
  Device* device_;
  PJRT_Buffer* raw_;
  const char* work_;
  TensorType type_;
};
using BufferPtr = std::shared_ptr<Buffer>;

struct MemoryStats {  // bytes; nullopt where the plugin does not say
  int64_t in_use = 0;
  std::optional<int64_t> peak_in_use, limit, reserved;
};

class Device {
 public:
  Device(Client* client, PJRT_Device* raw, int index) : client_(client), raw_(raw), index_(index) {}
  Client* client() const { return client_; }
  PJRT_Device* raw() const { return raw_; }
  int index() const { return index_; }  // position among the client's addressable devices
  int64_t id() const;                   // the plugin's own number, unique over all hosts
  std::string kind() const;             // "TPU v6 lite", "cpu"
  std::string debug_string() const;
  std::optional<MemoryStats> memory_stats() const;  // nullopt when the plugin keeps none

 private:
  Client* client_;
  PJRT_Device* raw_;
  int index_;
};

class Executable {
 public:
  Executable(Client* client, PJRT_LoadedExecutable* raw, std::vector<TensorType> outputs);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Launches on `device`, asynchronously. `arguments[i]` may be donated only if i is not in `keep` (sorted) and the
  // program aliases it. On success donated buffers are deleted. One Buffer per output comes back.
  void Execute(Device* device, const PJRT_Buffer* const* arguments, size_t num_arguments, const int64_t* keep,
               size_t num_keep, std::vector<BufferPtr>* results) const;
  size_t num_outputs() const { return outputs_.size(); }
  const std::vector<TensorType>& outputs() const { return outputs_; }
  // What errors call the program, from now on: the op that it is, or the ops that it joins. The first name stays.
  void SetName(const std::string& name);
  std::string Serialize() const;  // the plugin's own format, good for the same plugin and host
  PJRT_LoadedExecutable* raw() const { return raw_; }

 private:
  Client* client_;
  PJRT_LoadedExecutable* raw_;
  PJRT_Device* only_device_ = nullptr;  // of a single-device program
  std::atomic<const char*> name_{nullptr};
  std::vector<TensorType> outputs_;
};

struct CompileOptions {
  int num_replicas = 1, num_partitions = 1;
  int device_ordinal = -1;  // of a single-device program; -1: the plugin's default
  // XLA debug options by name (xla_cpu_enable_fast_min_max = "false"): CompileOptionsProto.env_option_overrides.
  std::vector<std::pair<std::string, std::string>> overrides;
};

struct ClientOptions {
  int num_devices = 1;  // of a CPU plugin; a TPU plugin decides itself
};

class Client {
 public:
  // Throws Error naming the plugin and what to do when it does not start.
  static std::unique_ptr<Client> Create(std::shared_ptr<const Plugin> plugin, const ClientOptions& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Plugin& plugin() const { return *plugin_; }
  const std::shared_ptr<const Plugin>& shared_plugin() const { return plugin_; }
  PJRT_Client* raw() const { return raw_; }
  const std::string& platform_name() const { return platform_name_; }  // "cpu", "tpu"
  const std::string& platform_version() const { return platform_version_; }
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  bool is_cpu() const { return platform_name_ == "cpu" || platform_name_ == "Host"; }

  // StableHLO text -> executable that runs on device `options.device_ordinal`.
  std::shared_ptr<Executable> Compile(const std::string& text, const CompileOptions& options,
                                      std::vector<TensorType> outputs);
  std::shared_ptr<Executable> Deserialize(std::string_view bytes, const CompileOptions& options,
                                          std::vector<TensorType> outputs);

  // The value at the time of the call: the bytes are copied before this returns.
  BufferPtr FromHost(Device* device, const void* data, const TensorType& type);
  // No copy where the plugin can alias 64-byte aligned host memory that nobody changes until `release` is called (once,
  // from any thread, also when this throws); copies elsewhere.
  BufferPtr FromHostZeroCopy(Device* device, const void* data, const TensorType& type, std::function<void()> release);

 private:
  Client(std::shared_ptr<const Plugin> plugin, PJRT_Client* raw);
  std::shared_ptr<const Plugin> plugin_;
  PJRT_Client* raw_;
  std::string platform_name_, platform_version_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace torch_tpu
