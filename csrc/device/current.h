// The calling thread's current device and streams.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace torch_tpu {

c10::DeviceIndex CurrentDevice() noexcept;
// Throws kInvalidArgument ("invalid device ordinal") for a device that is not there. Starts no client.
void SetCurrentDevice(c10::DeviceIndex device);
c10::DeviceIndex ExchangeDevice(c10::DeviceIndex device);

// Streams are names: whatever the stream, work of a device goes through its one queue, in the order it was given.
// Stream 0 is the default. Index -1 means the current device.
c10::Stream CurrentStream(c10::DeviceIndex device);
c10::Stream ExchangeStream(c10::Stream stream);
c10::Stream NewStream(c10::DeviceIndex device);  // from a pool of 32 per process, taken in turn

}  // namespace torch_tpu
