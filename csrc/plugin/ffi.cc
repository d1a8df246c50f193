#include "plugin/ffi.h"

#include <array>
#include <cstring>
#include <exception>

#include "base/error.h"
#include "plugin/call.h"

// The part of XLA's C interface for foreign functions that has kept its layout since its first version.
extern "C" {

struct FfiExtension {
  size_t struct_size;
  int type;
  FfiExtension* next;
};

struct FfiVersion {
  size_t struct_size;
  FfiExtension* extension_start;
  int major, minor;
};

struct FfiMetadata {
  size_t struct_size;
  FfiVersion version;
  uint32_t traits;
};

struct FfiMetadataExtension {
  FfiExtension base;
  FfiMetadata* metadata;
};

struct FfiErrorArgs {
  size_t struct_size;
  FfiExtension* extension_start;
  const char* message;
  int code;
};

struct FfiApi {
  size_t struct_size;
  FfiExtension* extension_start;
  FfiVersion version;
  const void* internal_api;
  FfiError* (*create_error)(FfiErrorArgs*);
};

struct FfiBufferData {
  size_t struct_size;
  FfiExtension* extension_start;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
};

struct FfiArray {
  int dtype;
  size_t size;
  void* data;
};

struct FfiText {
  const char* data;
  size_t size;
};

struct FfiList {
  size_t struct_size;
  FfiExtension* extension_start;
  int64_t size;
  int* types;
  void** values;
};

struct FfiAttributes {
  size_t struct_size;
  FfiExtension* extension_start;
  int64_t size;
  int* types;
  FfiText** names;
  void** values;
};

struct FfiCallFrame {
  size_t struct_size;
  FfiExtension* extension_start;
  const FfiApi* api;
  void* context;
  int stage;
  FfiList arguments, results;
  FfiAttributes attributes;
};

// PJRT's extension, newer than the header the build uses.
struct PjrtFfiRegisterArgs {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  void* handler;
  const char* platform_name;
  size_t platform_name_size;
  uint32_t traits;
};

struct PjrtFfiExtension {
  PJRT_Extension_Base base;
  void* type_register;
  void* user_data_add;
  PJRT_Error* (*register_handler)(PjrtFfiRegisterArgs*);
};

}  // extern "C"

namespace torch_tpu {
namespace {

constexpr int kMetadataExtension = 1, kBufferType = 1, kArrayAttribute = 1, kInt64Data = 5;
constexpr int kOldestMinor = 100;
constexpr char kPlatform[] = "Host";

DType FromFfi(int type) {
  // By XLA's own numbers of element types.
  constexpr std::array kTypes = {DType::kInvalid,  DType::kBool,    DType::kInt8,      DType::kInt16,
                                 DType::kInt32,    DType::kInt64,   DType::kUInt8,     DType::kUInt16,
                                 DType::kUInt32,   DType::kUInt64,  DType::kFloat16,   DType::kFloat32,
                                 DType::kFloat64,  DType::kInvalid, DType::kInvalid,   DType::kComplex64,
                                 DType::kBFloat16, DType::kInvalid, DType::kComplex128};
  const DType dtype = type >= 0 && type < static_cast<int>(kTypes.size()) ? kTypes[type] : DType::kInvalid;
  Check(dtype != DType::kInvalid, "host kernel: expected an element type of PyTorch, got XLA's number ", type);
  return dtype;
}

FfiBuffer At(const FfiList& list, size_t i, const char* what) {
  Check(static_cast<int64_t>(i) < list.size && list.types[i] == kBufferType, "host kernel: expected ", what, " ", i,
        " to be a buffer, got ", list.size, " of them");
  const auto& buffer = *static_cast<const FfiBufferData*>(list.values[i]);
  return {FromFfi(buffer.dtype), buffer.data, {buffer.dims, static_cast<size_t>(buffer.rank)}};
}

FfiError* ToFfi(const FfiCallFrame& frame, Code code, const char* text) noexcept {
  FfiErrorArgs args{};
  args.struct_size = sizeof(args);
  args.message = text;
  args.code = static_cast<int>(code);
  return frame.api->create_error(&args);
}

const PjrtFfiExtension* ExtensionOf(const Plugin& plugin) {
  const auto* found = static_cast<const PjrtFfiExtension*>(plugin.Extension(PJRT_Extension_Type_FFI));
  if (found == nullptr || found->base.struct_size < sizeof(PjrtFfiExtension)) return nullptr;
  return found->register_handler == nullptr ? nullptr : found;
}

}  // namespace

size_t FfiCall::num_arguments() const { return static_cast<size_t>(frame_->arguments.size); }
size_t FfiCall::num_results() const { return static_cast<size_t>(frame_->results.size); }
FfiBuffer FfiCall::argument(size_t i) const { return At(frame_->arguments, i, "argument"); }
FfiBuffer FfiCall::result(size_t i) const { return At(frame_->results, i, "result"); }

std::span<const int64_t> FfiCall::ints(std::string_view name) const {
  const FfiAttributes& attributes = frame_->attributes;
  for (int64_t i = 0; i < attributes.size; ++i) {
    if (std::string_view(attributes.names[i]->data, attributes.names[i]->size) != name) continue;
    const auto& array = *static_cast<const FfiArray*>(attributes.values[i]);
    if (attributes.types[i] != kArrayAttribute || array.dtype != kInt64Data) break;
    return {static_cast<const int64_t*>(array.data), array.size};
  }
  Fail(Code::kInvalidArgument, "host kernel: expected an array of i64 under the name ", name, ", got none");
}

FfiError* RunFfi(FfiCallFrame* frame, FfiFunction function) noexcept {
  // The plugin's question which version the handler was made for. What is used here is in all of them.
  if (frame->extension_start != nullptr && frame->extension_start->type == kMetadataExtension) {
    FfiVersion& version = reinterpret_cast<FfiMetadataExtension*>(frame->extension_start)->metadata->version;
    version.major = frame->api == nullptr ? 0 : frame->api->version.major;
    version.minor = frame->api == nullptr ? 1 : frame->api->version.minor;
    return nullptr;
  }
  try {
    function(FfiCall(frame));
    return nullptr;
  } catch (const Error& error) {
    return ToFfi(*frame, error.code(), error.what());
  } catch (const std::exception& error) {
    return ToFfi(*frame, Code::kInternal, error.what());
  } catch (...) {
    return ToFfi(*frame, Code::kUnknown, "host kernel: an exception of unknown type");
  }
}

bool SupportsFfi(const Plugin& plugin) {
  return plugin.minor_version() >= kOldestMinor && ExtensionOf(plugin) != nullptr;
}

void RegisterFfi(const Plugin& plugin, const std::string& name, FfiHandler handler) {
  const PjrtFfiExtension* extension = ExtensionOf(plugin);
  Check(extension != nullptr, "host kernel ", name, ": expected a plugin that takes host functions, got ",
        plugin.name());
  PjrtFfiRegisterArgs args{};
  args.struct_size = sizeof(args);
  args.target_name = name.data();
  args.target_name_size = name.size();
  args.handler = reinterpret_cast<void*>(handler);
  args.platform_name = kPlatform;
  args.platform_name_size = std::strlen(kPlatform);
  plugin.ThrowIfError(extension->register_handler(&args), "registering a host kernel");
}

}  // namespace torch_tpu
