// Calling the C API: zeroed arguments that know their size, and one way from a foreign error to ours.
//
//   auto args = PJRT_ARGS(PJRT_Client_Devices);
//   args.client = raw;
//   Call(plugin, &PJRT_Api::PJRT_Client_Devices, args, "listing devices");
//
// Only plugin/ and runtime/ include this.
#pragma once

#include <cstddef>

#include "base/error.h"
#include "pjrt_c_api.h"
#include "plugin/abandon.h"
#include "plugin/plugin.h"

namespace torch_tpu {

template <class Struct>
inline Struct MakeSized(size_t size) {
  Struct value{};
  value.struct_size = size;
  return value;
}

#define PJRT_STRUCT(name) ::torch_tpu::MakeSized<name>(name##_STRUCT_SIZE)
#define PJRT_ARGS(function) PJRT_STRUCT(function##_Args)

// True when the plugin's table reaches this far and the entry is set.
template <class Function>
inline bool Has(const Plugin& plugin, Function* PJRT_Api::* function) {
  const PJRT_Api* api = plugin.api();
  const auto offset = reinterpret_cast<const char*>(&(api->*function)) - reinterpret_cast<const char*>(api);
  return static_cast<size_t>(offset) + sizeof(Function*) <= api->struct_size && api->*function != nullptr;
}

// The plugin's error, to be destroyed by the caller; nullptr on success. Throws kUnimplemented when the plugin lacks
// `function`.
template <class Function, class Args>
inline PJRT_Error* TryCall(const Plugin& plugin, Function* PJRT_Api::* function, Args& args, const char* what) {
  if (!Has(plugin, function)) [[unlikely]] {
    Fail(Code::kUnimplemented, what, ": plugin ", plugin.name(), " (PJRT API ", plugin.version_string(),
         ") does not offer this call");
  }
  return (plugin.api()->*function)(&args);
}

// Throws the plugin's error as "<what>: <its text>".
template <class Function, class Args>
inline void Call(const Plugin& plugin, Function* PJRT_Api::* function, Args& args, const char* what) {
  PJRT_Error* error = TryCall(plugin, function, args, what);
  if (error != nullptr) [[unlikely]] {
    plugin.ThrowIfError(error, what);
  }
}

// For destructors: a failure has nobody to go to, so it is dropped. Does nothing once plugins are abandoned.
template <class Function, class Args>
inline void CallQuietly(const Plugin& plugin, Function* PJRT_Api::* function, Args& args) noexcept {
  if (PluginsAbandoned() || !Has(plugin, function)) return;
  PJRT_Error* error = (plugin.api()->*function)(&args);
  if (error == nullptr) return;
  auto destroy = PJRT_ARGS(PJRT_Error_Destroy);
  destroy.error = error;
  plugin.api()->PJRT_Error_Destroy(&destroy);
}

}  // namespace torch_tpu
