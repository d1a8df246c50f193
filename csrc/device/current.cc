#include "device/current.h"

#include <array>
#include <atomic>

#include "base/error.h"
#include "device/context.h"

namespace torch_tpu {
namespace {

constexpr int kStreamPool = 32;

struct ThreadState {
  c10::DeviceIndex device = 0;
  std::array<c10::StreamId, 128> streams{};
};
thread_local ThreadState t_state;

c10::Stream StreamOf(c10::DeviceIndex device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::PrivateUse1, device), id);
}

c10::DeviceIndex Resolve(c10::DeviceIndex device) { return device < 0 ? t_state.device : device; }

}  // namespace

c10::DeviceIndex CurrentDevice() noexcept { return t_state.device; }

void SetCurrentDevice(c10::DeviceIndex device) {
  if (device == t_state.device) return;
  DeviceContext::CheckDevice(device);
  t_state.device = device;
}

c10::DeviceIndex ExchangeDevice(c10::DeviceIndex device) {
  const c10::DeviceIndex previous = t_state.device;
  SetCurrentDevice(device);
  return previous;
}

c10::Stream CurrentStream(c10::DeviceIndex device) {
  const c10::DeviceIndex index = Resolve(device);
  return StreamOf(index, t_state.streams[static_cast<size_t>(index)]);
}

c10::Stream ExchangeStream(c10::Stream stream) {
  Check(stream.device_type() == c10::DeviceType::PrivateUse1, "set_stream: expected a tpu stream, got one of ",
        c10::DeviceTypeName(stream.device_type(), /*lower_case=*/true));
  const c10::Stream previous = CurrentStream(stream.device_index());
  t_state.streams[static_cast<size_t>(Resolve(stream.device_index()))] = stream.id();
  return previous;
}

c10::Stream NewStream(c10::DeviceIndex device) {
  static std::atomic<uint32_t> next{0};
  return StreamOf(Resolve(device), 1 + next.fetch_add(1) % kStreamPool);
}

}  // namespace torch_tpu
