// A compiled program that is not loaded on any device: what ahead-of-time compilation gives, and the unloaded side of
// an Executable. Facts about it need no device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/tensor_type.h"
#include "runtime/runtime.h"

namespace torch_tpu {

// Bytes on one device.
struct CompiledMemory {
  int64_t code = 0, arguments = 0, outputs = 0, aliased = 0, temporaries = 0, peak = 0;
};

class Compiled {
 public:
  Compiled(std::shared_ptr<const Plugin> plugin, PJRT_Executable* raw) : plugin_(std::move(plugin)), raw_(raw) {}
  static Compiled Of(const Client& client, PJRT_LoadedExecutable* loaded);
  ~Compiled();
  Compiled(Compiled&& other) noexcept;
  Compiled& operator=(Compiled&&) = delete;

  std::string name() const;
  int64_t num_replicas() const;
  int64_t num_partitions() const;
  // Throws kInvalidArgument unless the program's outputs are `expected`. Sizes of host copies follow from them.
  void CheckOutputs(const std::vector<TensorType>& expected) const;
  CompiledMemory memory() const;
  // "flops", "bytes accessed", "optimal_seconds", ... as the plugin names them. A plugin's sum over many ops may hold
  // its own marker for "unknown" (negative).
  std::map<std::string, double> cost_analysis() const;
  std::string Serialize() const;  // the plugin's own format, good for the same plugin and kind of device
  struct Optimized {
    std::string format, code;  // "hlo_with_config": a serialized HloModuleProtoWithConfig
  };
  Optimized optimized_program() const;

 private:
  std::shared_ptr<const Plugin> plugin_;
  PJRT_Executable* raw_;
};

}  // namespace torch_tpu
