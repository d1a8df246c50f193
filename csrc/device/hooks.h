// Registration of the device with PyTorch.
#pragma once

namespace torch_tpu {

// Registers hooks, the pinned host allocator and the autocast default of the calling thread. Once per process, when the
// module loads; opens nothing.
void RegisterHooks();

}  // namespace torch_tpu
