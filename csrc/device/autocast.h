// Autocast on the tpu device: PyTorch's cast lists for CUDA, with bfloat16 as the default.
#pragma once

namespace torch_tpu {

// PyTorch keeps the autocast dtype per thread and starts each with float16 for this device type. Called where a thread
// first meets the device; makes the default bfloat16 unless autocast is already on.
void EnsureAutocastDefault();

}  // namespace torch_tpu
