#include "dispatch/host_values.h"

#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "device/context.h"

namespace torch_tpu {
namespace {

// Enough for the scalars of a large optimizer and for the starts of long loops; past it all are dropped and come back
// as used.
constexpr size_t kMaxValues = 16384;

struct Hash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

struct Cache {
  std::mutex mutex;
  std::unordered_map<std::string, BufferPtr, Hash, std::equal_to<>> values;
};

Cache& TheCache() {
  static Cache& cache = *new Cache;  // outlives everything: buffers must not be freed after the client at exit
  return cache;
}

}  // namespace

BufferPtr HostValue(int device, DType dtype, const void* data, size_t bytes, const Dims& dims) {
  char key[512];
  const size_t size = bytes + 3;
  if (size > sizeof(key))
    return DeviceContext::Get().client().FromHost(DeviceContext::Get().device(device), data, {dtype, dims});
  key[0] = static_cast<char>(device);
  key[1] = static_cast<char>(dtype);
  key[2] = static_cast<char>(dims.empty() ? -1 : static_cast<int>(dims.size()));
  std::memcpy(key + 3, data, bytes);
  const std::string_view view(key, size);
  Cache& cache = TheCache();
  std::lock_guard lock(cache.mutex);
  if (auto it = cache.values.find(view); it != cache.values.end()) return it->second;
  DeviceContext& context = DeviceContext::Get();
  BufferPtr buffer = context.client().FromHost(context.device(device), data, TensorType{dtype, dims});
  if (cache.values.size() >= kMaxValues) cache.values.clear();
  cache.values.emplace(std::string(view), buffer);
  return buffer;
}

BufferPtr ScalarValue(int device, double value) {
  return HostValue(device, DType::kFloat64, &value, sizeof(value), {});
}
BufferPtr ScalarValue(int device, int64_t value) { return HostValue(device, DType::kInt64, &value, sizeof(value), {}); }
BufferPtr ScalarValue(int device, bool value) { return HostValue(device, DType::kBool, &value, sizeof(value), {}); }
BufferPtr ScalarValue(int device, std::complex<double> value) {
  return HostValue(device, DType::kComplex128, &value, sizeof(value), {});
}

BufferPtr StartsValue(int device, const Dims& starts) {
  return HostValue(device, DType::kInt64, starts.data(), starts.size() * sizeof(int64_t),
                   {static_cast<int64_t>(starts.size())});
}

void ClearHostValues() {
  Cache& cache = TheCache();
  std::lock_guard lock(cache.mutex);
  cache.values.clear();
}

}  // namespace torch_tpu
