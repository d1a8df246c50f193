// Host memory -> Buffer.
#include <cstdint>
#include <memory>

#include "plugin/call.h"
#include "runtime/buffer_type.h"
#include "runtime/runtime.h"

namespace torch_tpu {
namespace {

struct Uploaded {
  PJRT_Buffer* buffer;
  PJRT_Event* done_with_host;
};

Uploaded Upload(const Client& client, const Device& device, const void* data, const TensorType& type,
                PJRT_HostBufferSemantics semantics) {
  auto args = PJRT_ARGS(PJRT_Client_BufferFromHostBuffer);
  args.client = client.raw();
  args.data = data;
  args.type = ToBufferType(type.dtype);
  args.dims = type.dims.data();
  args.num_dims = type.dims.size();
  args.host_buffer_semantics = semantics;
  args.device = device.raw();
  Call(client.plugin(), &PJRT_Api::PJRT_Client_BufferFromHostBuffer, args, "copy from host");
  return {args.buffer, args.done_with_host_buffer};
}

struct Release {
  const Plugin* plugin;
  std::function<void()> call;

  static void OnReady(PJRT_Error* error, void* user_arg) {
    std::unique_ptr<Release> self(static_cast<Release*>(user_arg));
    if (error != nullptr) {
      auto destroy = PJRT_ARGS(PJRT_Error_Destroy);
      destroy.error = error;
      self->plugin->api()->PJRT_Error_Destroy(&destroy);
    }
    self->call();
  }
};

}  // namespace

BufferPtr Client::FromHost(Device* device, const void* data, const TensorType& type) {
  const Uploaded uploaded = Upload(*this, *device, data, type, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
  Event done(plugin_.get(), uploaded.done_with_host);  // already in the past: only to be destroyed
  return std::make_shared<Buffer>(this, device, uploaded.buffer, type);
}

BufferPtr Client::FromHostZeroCopy(Device* device, const void* data, const TensorType& type,
                                   std::function<void()> release) {
  constexpr uintptr_t kAlignment = 64;  // what XLA's CPU programs assume of their arguments
  auto owned = std::make_unique<Release>(Release{plugin_.get(), std::move(release)});
  try {
    if (!is_cpu() || reinterpret_cast<uintptr_t>(data) % kAlignment != 0 ||
        !Has(*plugin_, &PJRT_Api::PJRT_Event_OnReady)) {
      BufferPtr copied = FromHost(device, data, type);
      owned->call();
      return copied;
    }
    const Uploaded uploaded = Upload(*this, *device, data, type, PJRT_HostBufferSemantics_kImmutableZeroCopy);
    Event done(plugin_.get(), uploaded.done_with_host);
    BufferPtr buffer = std::make_shared<Buffer>(this, device, uploaded.buffer, type);
    auto args = PJRT_ARGS(PJRT_Event_OnReady);
    args.event = uploaded.done_with_host;
    args.callback = &Release::OnReady;
    args.user_arg = owned.get();
    Call(*plugin_, &PJRT_Api::PJRT_Event_OnReady, args, "copy from host");
    owned.release();
    return buffer;
  } catch (...) {
    if (owned && owned->call) owned->call();
    throw;
  }
}

}  // namespace torch_tpu
