// Protobuf's wire format, as far as compile options need it.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace torch_tpu {

class ProtoWriter {
 public:
  // int32, int64, bool, enum. Negative numbers take ten bytes, as protobuf writes them.
  void Varint(int field, int64_t value) {
    Raw(static_cast<uint64_t>(field) << 3);
    Raw(static_cast<uint64_t>(value));
  }
  void Double(int field, double value) {
    Raw(static_cast<uint64_t>(field) << 3 | 1);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(bits >> (8 * i)));
  }
  // string, bytes, message.
  void Bytes(int field, std::string_view value) {
    Raw(static_cast<uint64_t>(field) << 3 | 2);
    Raw(value.size());
    bytes_.append(value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void Raw(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  std::string bytes_;
};

}  // namespace torch_tpu
