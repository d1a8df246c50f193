#include "runtime/topology.h"

#include "plugin/call.h"
#include "runtime/compile_options.h"

namespace torch_tpu {

std::unique_ptr<Topology> Topology::Create(std::shared_ptr<const Plugin> plugin, const std::string& name) {
  auto args = PJRT_ARGS(PJRT_TopologyDescription_Create);
  args.topology_name = name.data();
  args.topology_name_size = name.size();
  Call(*plugin, &PJRT_Api::PJRT_TopologyDescription_Create, args, Cat("topology ", name).c_str());
  return std::unique_ptr<Topology>(new Topology(std::move(plugin), args.topology, true));
}

std::unique_ptr<Topology> Topology::Of(const Client& client) {
  auto args = PJRT_ARGS(PJRT_Client_TopologyDescription);
  args.client = client.raw();
  Call(client.plugin(), &PJRT_Api::PJRT_Client_TopologyDescription, args, "topology of a client");
  return std::unique_ptr<Topology>(new Topology(client.shared_plugin(), args.topology, false));
}

Topology::~Topology() {
  if (!owned_) return;
  auto args = PJRT_ARGS(PJRT_TopologyDescription_Destroy);
  args.topology = raw_;
  CallQuietly(*plugin_, &PJRT_Api::PJRT_TopologyDescription_Destroy, args);
}

std::string Topology::platform_name() const {
  auto args = PJRT_ARGS(PJRT_TopologyDescription_PlatformName);
  args.topology = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_TopologyDescription_PlatformName, args, "naming a topology's platform");
  return std::string(args.platform_name, args.platform_name_size);
}

std::string Topology::platform_version() const {
  auto args = PJRT_ARGS(PJRT_TopologyDescription_PlatformVersion);
  args.topology = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_TopologyDescription_PlatformVersion, args, "naming a topology's platform version");
  return std::string(args.platform_version, args.platform_version_size);
}

std::vector<std::string> Topology::device_kinds() const {
  auto args = PJRT_ARGS(PJRT_TopologyDescription_GetDeviceDescriptions);
  args.topology = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_TopologyDescription_GetDeviceDescriptions, args, "listing a topology's devices");
  std::vector<std::string> kinds;
  for (size_t i = 0; i < args.num_descriptions; ++i) {
    auto kind = PJRT_ARGS(PJRT_DeviceDescription_Kind);
    kind.device_description = args.descriptions[i];
    Call(*plugin_, &PJRT_Api::PJRT_DeviceDescription_Kind, kind, "describing a device");
    kinds.emplace_back(kind.device_kind, kind.device_kind_size);
  }
  return kinds;
}

Compiled Topology::Compile(const std::string& text, const CompileOptions& options) const {
  Check(options.device_ordinal < 0, "compile: expected no device ordinal for a topology, got ", options.device_ordinal);
  const std::string serialized = SerializeOptions(options, std::nullopt);
  static constexpr std::string_view kFormat = "mlir";
  auto program = PJRT_STRUCT(PJRT_Program);
  program.code = const_cast<char*>(text.data());
  program.code_size = text.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();

  auto args = PJRT_ARGS(PJRT_Compile);
  args.topology = raw_;
  args.program = &program;
  args.compile_options = serialized.data();
  args.compile_options_size = serialized.size();
  Call(*plugin_, &PJRT_Api::PJRT_Compile, args, "compile");
  return Compiled(plugin_, args.executable);
}

}  // namespace torch_tpu
