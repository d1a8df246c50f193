#include "device/torch_error.h"

#include <c10/util/Exception.h>

#include "device/current.h"
#include "device/storage.h"

namespace torch_tpu {

void ThrowTorchError(const Error& error) {
  const c10::SourceLocation where{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  switch (error.code()) {
    case Code::kOutOfRange:
      throw c10::IndexError(where, error.what());
    case Code::kUnimplemented:
      throw c10::NotImplementedError(where, error.what());
    case Code::kResourceExhausted:
      throw c10::OutOfMemoryError(where, OutOfMemory(error, CurrentDevice()).what());
    default:
      throw c10::Error(where, error.what());
  }
}

}  // namespace torch_tpu
