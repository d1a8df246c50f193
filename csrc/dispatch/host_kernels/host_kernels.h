// Host kernels: PyTorch's own CPU kernels (oneDNN's convolutions, LAPACK) that programs of a CPU plugin call from
// inside, on the plugin's memory. An op that has one keeps its pure StableHLO form beside it (lowering/host_call.h).
//
// A kernel runs on a thread of the plugin, without the GIL, and never reaches the tpu device or autograd.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace torch_tpu {

// Once, before the first client starts.
void RegisterHostKernels();
// True when the process's client can call them and they are switched on. TORCH_TPU_HOST_KERNELS is the first setting.
bool HostKernels();
void SetHostKernels(bool enabled);
// How often each kernel ran since the last reset.
std::map<std::string, int64_t> HostKernelCounts();
void ResetHostKernelCounts();

}  // namespace torch_tpu
