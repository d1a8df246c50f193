// How a client's programs are lowered: its target and the precision of float32 products.
#pragma once

#include "program/graph.h"
#include "runtime/runtime.h"

namespace torch_tpu {

inline LowerOptions OptionsFor(const Client& client, Precision precision) {
  const Target target = client.is_cpu()                   ? Target::kCpu
                        : client.platform_name() == "tpu" ? Target::kTpu
                                                          : Target::kOther;
  return {target, precision};
}

}  // namespace torch_tpu
