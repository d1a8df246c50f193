// Host functions that programs of a plugin may call: XLA's typed foreign functions (custom calls of api_version 4).
//
// The C structs of that interface come in no header a small wheel ships, so ffi.cc says the few that are used.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "plugin/plugin.h"

struct FfiCallFrame;
struct FfiError;

namespace torch_tpu {

struct FfiBuffer {
  DType dtype = DType::kInvalid;
  void* data = nullptr;  // dense, row-major
  std::span<const int64_t> dims;
};

// One call, for as long as it runs. Buffers of arguments may only be read.
class FfiCall {
 public:
  explicit FfiCall(const FfiCallFrame* frame) : frame_(frame) {}
  size_t num_arguments() const;
  size_t num_results() const;
  FfiBuffer argument(size_t i) const;
  FfiBuffer result(size_t i) const;
  // The i64 array that the call's dictionary holds under `name`. Throws kInvalidArgument where it does not.
  std::span<const int64_t> ints(std::string_view name) const;

 private:
  const FfiCallFrame* frame_;
};

// May throw: the program's results are then errors with the exception's text. Runs on any thread of the plugin.
using FfiFunction = void (*)(const FfiCall&);
using FfiHandler = FfiError* (*)(FfiCallFrame*);

// The plugin's way to call `function`.
FfiError* RunFfi(FfiCallFrame* frame, FfiFunction function) noexcept;
template <FfiFunction function>
FfiError* HandlerOf(FfiCallFrame* frame) noexcept {
  return RunFfi(frame, function);
}

// True when `plugin` finds handlers by name while it compiles. Older ones take a registration and then do not.
bool SupportsFfi(const Plugin& plugin);
// For the whole process, under a name that is registered once. Before any program that calls it is compiled or loaded.
void RegisterFfi(const Plugin& plugin, const std::string& name, FfiHandler handler);

}  // namespace torch_tpu
