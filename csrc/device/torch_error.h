// Error, as PyTorch throws it.
#pragma once

#include <exception>

#include "base/error.h"

namespace torch_tpu {

// Throws the c10 exception that becomes the right Python type: kOutOfRange IndexError, kUnimplemented
// NotImplementedError, kResourceExhausted torch.OutOfMemoryError with the current device's figures, others
// RuntimeError.
[[noreturn]] void ThrowTorchError(const Error& error);

// Runs `body`; an Error leaves it as PyTorch's.
template <class Body>
auto WithTorchErrors(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    ThrowTorchError(error);
  }
}

}  // namespace torch_tpu
