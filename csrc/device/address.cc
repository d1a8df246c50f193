#include "device/address.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace torch_tpu {
namespace {

// From 2^60 on, no address is canonical on x86-64 or AArch64 (but for the very top, which stays unused). 29 devices
// have a space of their own; the others share the last.
constexpr int kSpaceBits = 59;
constexpr uintptr_t kFirstSpace = 2;
constexpr int kSpaces = 30;
constexpr uintptr_t kSpaceMask = (uintptr_t{1} << kSpaceBits) - 1;
constexpr uintptr_t kHalfSpace = uintptr_t{1} << (kSpaceBits - 1);

// A cache line each: threads of several devices allocate at once.
struct alignas(64) Cursor {
  std::atomic<uintptr_t> next{0};
};
std::array<Cursor, kSpaces> g_cursors;

}  // namespace

uintptr_t ReserveAddress(size_t nbytes, c10::DeviceIndex device) {
  const size_t space = static_cast<size_t>(std::clamp<int>(device, 0, kSpaces - 1));
  const uintptr_t size = (static_cast<uintptr_t>(std::max<size_t>(nbytes, 1)) + 63) & ~uintptr_t{63};
  uintptr_t offset = g_cursors[space].next.fetch_add(size, std::memory_order_relaxed);
  // Long-lived storages are made early, so it is the upper half that is walked again.
  if (offset + size > kSpaceMask) [[unlikely]]
    offset = kHalfSpace + (offset & (kHalfSpace - 1));
  return ((kFirstSpace + space) << kSpaceBits) | (offset & kSpaceMask);
}

std::optional<c10::DeviceIndex> DeviceOfAddress(uintptr_t address) {
  const uintptr_t space = address >> kSpaceBits;
  if (space < kFirstSpace || space >= kFirstSpace + kSpaces - 1) return std::nullopt;
  return static_cast<c10::DeviceIndex>(space - kFirstSpace);
}

}  // namespace torch_tpu
