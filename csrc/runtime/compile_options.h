// CompileOptions -> the serialized CompileOptionsProto that PJRT wants.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/runtime.h"

namespace torch_tpu {

// `device_id`: the plugin's id of the device a single-device program is to run on.
std::string SerializeOptions(const CompileOptions& options, std::optional<int64_t> device_id);

}  // namespace torch_tpu
