// Our Error as PyTorch's exception types.
#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace torch_tpu {

[[noreturn]] void ThrowAsTorch(const Error& error, std::string_view op);

// Runs `f`; an Error leaves as the c10 exception of its kind, with the op's name in front.
template <class F>
decltype(auto) Translated(std::string_view op, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    ThrowAsTorch(error, op);
  }
}

}  // namespace torch_tpu
