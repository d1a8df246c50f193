// Our Error as PyTorch's exception types.
#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <string_view>

#include "base/error.h"

namespace torch_tpu {

[[noreturn]] void ThrowAsTorch(const Error& error, std::string_view op);

// What `site` gives now.
std::string CallSite();
[[noreturn]] void ThrowLocated(const Error& error);

// `site` gives the user's line that this thread is at ("train.py:12, in step"), or nothing. Set once, by bindings.
void SetCallSite(std::string (*site)());

// Runs `f`; an Error leaves with the user's line behind its text: for programs that fail, not for a user's mistakes,
// which have CPU PyTorch's words.
template <class F>
decltype(auto) Located(F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    ThrowLocated(error);
  }
}

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
