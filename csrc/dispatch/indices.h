// Index lists (x[a, :, mask]) before a row sees them.
#pragma once

#include <ATen/core/stack.h>

namespace torch_tpu {

// Replaces the indices at stack[begin + 1] by int64 positions on self's device: masks through nonzero (which reads
// their count), host indices by upload. Throws IndexError as PyTorch does for masks that don't fit and for other
// dtypes.
void PrepareIndices(torch::jit::Stack& stack, size_t begin);

// self[mask] = one value: no count is needed. True when it was done; self is then the result on the stack.
bool PutAsMaskedFill(torch::jit::Stack& stack, size_t begin);

}  // namespace torch_tpu
