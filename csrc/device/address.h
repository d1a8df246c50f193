// Opaque addresses of storages: never those of memory, so that a stray host access faults at once.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace torch_tpu {

// A range of max(nbytes, 1) bytes, 64-byte aligned. Ranges of a device grow upwards and are not used again (until 2^58
// bytes have been allocated on it; then the upper half of the device's space is walked again). Thread-safe.
uintptr_t ReserveAddress(size_t nbytes, c10::DeviceIndex device);
std::optional<c10::DeviceIndex> DeviceOfAddress(uintptr_t address);

}  // namespace torch_tpu
