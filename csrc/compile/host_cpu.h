// What a program compiled for this host's CPU depends on.
#pragma once

#include <string>

namespace torch_tpu {

// "<model name> <hash of the model's numbers and instruction set flags>"; read once.
const std::string& HostCpu();

}  // namespace torch_tpu
