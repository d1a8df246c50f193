#include "plugin/call.h"
#include "runtime/runtime.h"

namespace torch_tpu {
namespace {

PJRT_DeviceDescription* Description(const Device& device) {
  auto args = PJRT_ARGS(PJRT_Device_GetDescription);
  args.device = device.raw();
  Call(device.client()->plugin(), &PJRT_Api::PJRT_Device_GetDescription, args, "describing a device");
  return args.device_description;
}

}  // namespace

int64_t Device::id() const {
  auto args = PJRT_ARGS(PJRT_DeviceDescription_Id);
  args.device_description = Description(*this);
  Call(client_->plugin(), &PJRT_Api::PJRT_DeviceDescription_Id, args, "describing a device");
  return args.id;
}

std::string Device::kind() const {
  auto args = PJRT_ARGS(PJRT_DeviceDescription_Kind);
  args.device_description = Description(*this);
  Call(client_->plugin(), &PJRT_Api::PJRT_DeviceDescription_Kind, args, "describing a device");
  return std::string(args.device_kind, args.device_kind_size);
}

std::string Device::debug_string() const {
  auto args = PJRT_ARGS(PJRT_DeviceDescription_DebugString);
  args.device_description = Description(*this);
  Call(client_->plugin(), &PJRT_Api::PJRT_DeviceDescription_DebugString, args, "describing a device");
  return std::string(args.debug_string, args.debug_string_size);
}

std::optional<MemoryStats> Device::memory_stats() const {
  const Plugin& plugin = client_->plugin();
  if (!Has(plugin, &PJRT_Api::PJRT_Device_MemoryStats)) return std::nullopt;
  auto args = PJRT_ARGS(PJRT_Device_MemoryStats);
  args.device = raw_;
  try {
    Call(plugin, &PJRT_Api::PJRT_Device_MemoryStats, args, "memory statistics");
  } catch (const Error& error) {
    if (error.code() == Code::kUnimplemented) return std::nullopt;
    throw;
  }
  MemoryStats stats;
  stats.in_use = args.bytes_in_use;
  if (args.peak_bytes_in_use_is_set) stats.peak_in_use = args.peak_bytes_in_use;
  if (args.bytes_limit_is_set) stats.limit = args.bytes_limit;
  if (args.bytes_reserved_is_set) stats.reserved = args.bytes_reserved;
  return stats;
}

}  // namespace torch_tpu
