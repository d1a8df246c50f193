// How a client's programs are lowered: its target, the precision of float32 products, and whether they may call host
// kernels.
#pragma once

#include "dispatch/host_kernels/host_kernels.h"
#include "program/graph.h"
#include "runtime/runtime.h"

namespace torch_tpu {

inline LowerOptions OptionsFor(const Client& client, Precision precision) {
  const Target target = client.is_cpu()                   ? Target::kCpu
                        : client.platform_name() == "tpu" ? Target::kTpu
                                                          : Target::kOther;
  return {target, precision, HostKernels()};
}

}  // namespace torch_tpu
