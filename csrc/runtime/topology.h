// The devices a program is compiled for, present or not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/compiled.h"

struct PJRT_TopologyDescription;

namespace torch_tpu {

class Topology {
 public:
  // By the plugin's own name for it ("v5e:2x2"). Throws the plugin's Error on a name it does not know. libtpu reads its
  // environment here, and leaves a lock file: use it in a process of its own.
  static std::unique_ptr<Topology> Create(std::shared_ptr<const Plugin> plugin, const std::string& name);
  // Of the devices the client has; the client must outlive it.
  static std::unique_ptr<Topology> Of(const Client& client);
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  std::string platform_name() const;
  std::string platform_version() const;
  std::vector<std::string> device_kinds() const;  // one per device

  // StableHLO text -> a program for these devices. `options.device_ordinal` must be -1: devices are not there yet.
  Compiled Compile(const std::string& text, const CompileOptions& options) const;

 private:
  Topology(std::shared_ptr<const Plugin> plugin, PJRT_TopologyDescription* raw, bool owned)
      : plugin_(std::move(plugin)), raw_(raw), owned_(owned) {}
  std::shared_ptr<const Plugin> plugin_;
  PJRT_TopologyDescription* raw_;
  bool owned_;
};

}  // namespace torch_tpu
