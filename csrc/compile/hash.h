// A 64-bit hash for names and checksums. Not for anyone who wants to forge a file.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace torch_tpu {

// Every step is a bijection of the state, so that changing any one byte always changes the result.
inline uint64_t Hash64(std::string_view bytes) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
  uint64_t hash = bytes.size() * kOdd;
  auto mix = [&hash](uint64_t block) {
    hash = (hash ^ block) * kOdd;
    hash ^= hash >> 29;
  };
  while (bytes.size() >= 8) {
    uint64_t block;
    std::memcpy(&block, bytes.data(), 8);
    mix(block);
    bytes.remove_prefix(8);
  }
  uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  mix(rest);
  mix(0);
  return hash;
}

inline std::string HexOf(uint64_t value) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) text[static_cast<size_t>(i)] = "0123456789abcdef"[value & 15];
  return text;
}

}  // namespace torch_tpu
