#include <cstring>

#include "plugin/call.h"
#include "runtime/runtime.h"

namespace torch_tpu {

Buffer::Buffer(Client* client, Device* device, PJRT_Buffer* raw, TensorType type, const char* work)
    : client_(client), device_(device), raw_(raw), work_(work), type_(std::move(type)) {}

Buffer::~Buffer() {
  auto args = PJRT_ARGS(PJRT_Buffer_Destroy);
  args.buffer = raw_;
  CallQuietly(client_->plugin(), &PJRT_Api::PJRT_Buffer_Destroy, args);
}

Event Buffer::Ready() const {
  auto args = PJRT_ARGS(PJRT_Buffer_ReadyEvent);
  args.buffer = raw_;
  Call(client_->plugin(), &PJRT_Api::PJRT_Buffer_ReadyEvent, args, "waiting for a buffer");
  return Event(&client_->plugin(), args.event, work_);
}

void Buffer::Await() const { Ready().Await(); }

const void* Buffer::HostPointer() const {
  if (!client_->is_cpu() || !Has(client_->plugin(), &PJRT_Api::PJRT_Buffer_UnsafePointer)) return nullptr;
  auto args = PJRT_ARGS(PJRT_Buffer_UnsafePointer);
  args.buffer = raw_;
  Call(client_->plugin(), &PJRT_Api::PJRT_Buffer_UnsafePointer, args, "address of a buffer");
  return reinterpret_cast<const void*>(args.buffer_pointer);
}

void Buffer::ToHost(void* out) const {
  const size_t bytes = type_.bytes();
  // CPU programs return dense row-major values: their memory can be read as it is.
  if (client_->is_cpu()) {
    Await();
    if (bytes == 0) return;
    if (const void* data = HostPointer()) {
      std::memcpy(out, data, bytes);
      return;
    }
  }
  // A device may keep another order of dimensions or tiles; the layout asked for here is row-major.
  const size_t rank = type_.dims.size();
  std::vector<int64_t> minor_to_major(rank);
  for (size_t i = 0; i < rank; ++i) minor_to_major[i] = static_cast<int64_t>(rank - 1 - i);
  auto layout = PJRT_STRUCT(PJRT_Buffer_MemoryLayout);
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled = PJRT_STRUCT(PJRT_Buffer_MemoryLayout_Tiled);
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.minor_to_major_size = rank;

  auto args = PJRT_ARGS(PJRT_Buffer_ToHostBuffer);
  args.src = raw_;
  args.host_layout = &layout;
  args.dst = out;
  args.dst_size = bytes;
  Call(client_->plugin(), &PJRT_Api::PJRT_Buffer_ToHostBuffer, args, "copy to host");
  Event(&client_->plugin(), args.event).Await();
}

std::shared_ptr<Buffer> Buffer::CopyTo(Device* device) const {
  Check(device->client() == client_, "copy: expected a device of the same client");
  Check(device != device_, "copy: expected another device, got the buffer's own (", device->index(), ")");
  PJRT_Buffer* copied = nullptr;
  const Plugin& plugin = client_->plugin();
  if (Has(plugin, &PJRT_Api::PJRT_Buffer_CopyToDevice)) {
    auto args = PJRT_ARGS(PJRT_Buffer_CopyToDevice);
    args.buffer = raw_;
    args.dst_device = device->raw();
    Call(plugin, &PJRT_Api::PJRT_Buffer_CopyToDevice, args, "copy to device");
    copied = args.dst_buffer;
  } else {
    auto memory = PJRT_ARGS(PJRT_Device_DefaultMemory);
    memory.device = device->raw();
    Call(plugin, &PJRT_Api::PJRT_Device_DefaultMemory, memory, "memory of a device");
    auto args = PJRT_ARGS(PJRT_Buffer_CopyToMemory);
    args.buffer = raw_;
    args.dst_memory = memory.memory;
    Call(plugin, &PJRT_Api::PJRT_Buffer_CopyToMemory, args, "copy to device");
    copied = args.dst_buffer;
  }
  return std::make_shared<Buffer>(client_, device, copied, type_);
}

bool Buffer::IsDeleted() const {
  auto args = PJRT_ARGS(PJRT_Buffer_IsDeleted);
  args.buffer = raw_;
  Call(client_->plugin(), &PJRT_Api::PJRT_Buffer_IsDeleted, args, "asking a buffer");
  return args.is_deleted;
}

}  // namespace torch_tpu
