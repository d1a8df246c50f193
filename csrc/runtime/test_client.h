// Clients for tests, on the CPU plugin the build found (TORCH_TPU_TEST_PLUGIN).
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "plugin/plugin.h"
#include "runtime/runtime.h"

namespace torch_tpu {

inline std::shared_ptr<const Plugin> TestPlugin() { return Plugin::Open({"test", TORCH_TPU_TEST_PLUGIN}); }

// One client with two devices, shared by all tests of a binary.
inline Client& TestClient() {
  static Client* client = Client::Create(TestPlugin(), ClientOptions{2}).release();
  return *client;
}

template <class T>
std::vector<T> ReadBack(const Buffer& buffer) {
  std::vector<T> values(static_cast<size_t>(buffer.type().numel()));
  buffer.ToHost(values.data());
  return values;
}

// Compiles `text`, runs it on `device_index` with the CPU defaults (NaN-keeping min and max, no fast math), awaits
// nothing.
inline std::vector<BufferPtr> RunProgram(const std::string& text, std::vector<TensorType> outputs,
                                         const std::vector<BufferPtr>& arguments, int device_index = 0) {
  Client& client = TestClient();
  CompileOptions options;
  options.device_ordinal = device_index;
  options.overrides = {{"xla_cpu_enable_fast_min_max", "false"},
                       {"xla_cpu_enable_fast_math", "false"},
                       {"xla_allow_excess_precision", "false"}};
  auto executable = client.Compile(text, options, std::move(outputs));
  std::vector<const PJRT_Buffer*> raw;
  for (const BufferPtr& argument : arguments) raw.push_back(argument->raw());
  std::vector<BufferPtr> results;
  executable->Execute(client.devices()[static_cast<size_t>(device_index)].get(), raw.data(), raw.size(), nullptr, 0,
                      &results);
  return results;
}

}  // namespace torch_tpu
