#include <string>

#include "plugin/call.h"
#include "runtime/compile_options.h"
#include "runtime/runtime.h"

namespace torch_tpu {
namespace {

constexpr char kDeviceCountOption[] = "cpu_device_count";

PJRT_Client* CreateRaw(const Plugin& plugin, const PJRT_NamedValue* options, size_t num_options) {
  auto args = PJRT_ARGS(PJRT_Client_Create);
  args.create_options = options;
  args.num_options = num_options;
  Call(plugin, &PJRT_Api::PJRT_Client_Create, args, "creating a client");
  return args.client;
}

std::optional<int64_t> DeviceId(const Client& client, const CompileOptions& options) {
  if (options.device_ordinal < 0) return std::nullopt;
  const auto& devices = client.devices();
  Check(static_cast<size_t>(options.device_ordinal) < devices.size(), "compile: expected a device below ",
        devices.size(), ", got ", options.device_ordinal);
  return devices[static_cast<size_t>(options.device_ordinal)]->id();
}

}  // namespace

std::unique_ptr<Client> Client::Create(std::shared_ptr<const Plugin> plugin, const ClientOptions& options) {
  Check(options.num_devices >= 1, "client: expected at least one device, got ", options.num_devices);
  auto count = PJRT_STRUCT(PJRT_NamedValue);
  count.name = kDeviceCountOption;
  count.name_size = sizeof(kDeviceCountOption) - 1;
  count.type = PJRT_NamedValue_kInt64;
  count.int64_value = options.num_devices;
  count.value_size = 1;

  PJRT_Client* raw = nullptr;
  try {
    try {
      raw = CreateRaw(*plugin, &count, 1);
    } catch (const Error& error) {
      // Some plugins refuse options they do not know.
      if (std::string_view(error.what()).find(kDeviceCountOption) == std::string_view::npos) throw;
      raw = CreateRaw(*plugin, nullptr, 0);
    }
  } catch (const Error& error) {
    Fail(error.code(), "plugin ", plugin->name(), " (", plugin->path(), ", PJRT API ", plugin->version_string(),
         ") did not start: ", error.what(),
         "; check that no other process holds the device, or name another plugin in TORCH_TPU_PLUGIN");
  }
  std::unique_ptr<Client> client(new Client(std::move(plugin), raw));
  if (client->is_cpu()) {
    auto& devices = client->devices_;
    const auto wanted = static_cast<size_t>(options.num_devices);
    Check(devices.size() >= wanted, "client: expected ", wanted, " devices, got ", devices.size(), " from plugin ",
          client->plugin().name());
    // A plugin that does not know the option brings its own number of devices.
    devices.resize(wanted);
  }
  return client;
}

Client::Client(std::shared_ptr<const Plugin> plugin, PJRT_Client* raw) : plugin_(std::move(plugin)), raw_(raw) {
  auto name = PJRT_ARGS(PJRT_Client_PlatformName);
  name.client = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Client_PlatformName, name, "naming the platform");
  platform_name_.assign(name.platform_name, name.platform_name_size);

  auto version = PJRT_ARGS(PJRT_Client_PlatformVersion);
  version.client = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Client_PlatformVersion, version, "naming the platform's version");
  platform_version_.assign(version.platform_version, version.platform_version_size);

  auto devices = PJRT_ARGS(PJRT_Client_AddressableDevices);
  devices.client = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Client_AddressableDevices, devices, "listing devices");
  for (size_t i = 0; i < devices.num_addressable_devices; ++i) {
    devices_.push_back(std::make_unique<Device>(this, devices.addressable_devices[i], static_cast<int>(i)));
  }
}

Client::~Client() {
  auto args = PJRT_ARGS(PJRT_Client_Destroy);
  args.client = raw_;
  CallQuietly(*plugin_, &PJRT_Api::PJRT_Client_Destroy, args);
}

std::shared_ptr<Executable> Client::Compile(const std::string& text, const CompileOptions& options,
                                            std::vector<TensorType> outputs) {
  const std::string serialized = SerializeOptions(options, DeviceId(*this, options));
  static constexpr std::string_view kFormat = "mlir";
  auto program = PJRT_STRUCT(PJRT_Program);
  program.code = const_cast<char*>(text.data());
  program.code_size = text.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();

  auto args = PJRT_ARGS(PJRT_Client_Compile);
  args.client = raw_;
  args.program = &program;
  args.compile_options = serialized.data();
  args.compile_options_size = serialized.size();
  Call(*plugin_, &PJRT_Api::PJRT_Client_Compile, args, "compile");
  return std::make_shared<Executable>(this, args.executable, std::move(outputs));
}

std::shared_ptr<Executable> Client::Deserialize(std::string_view bytes, const CompileOptions& options,
                                                std::vector<TensorType> outputs) {
  const std::string serialized = SerializeOptions(options, DeviceId(*this, options));
  auto args = PJRT_ARGS(PJRT_Executable_DeserializeAndLoad);
  args.client = raw_;
  args.serialized_executable = bytes.data();
  args.serialized_executable_size = bytes.size();
  args.overridden_serialized_compile_options = serialized.data();
  args.overridden_serialized_compile_options_size = serialized.size();
  Call(*plugin_, &PJRT_Api::PJRT_Executable_DeserializeAndLoad, args, "loading an executable");
  return std::make_shared<Executable>(this, args.loaded_executable, std::move(outputs));
}

}  // namespace torch_tpu
