#include <array>
#include <mutex>
#include <unordered_set>

#include "plugin/call.h"
#include "runtime/compiled.h"
#include "runtime/runtime.h"

namespace torch_tpu {
namespace {

void Destroy(const Plugin& plugin, PJRT_LoadedExecutable* raw) {
  auto args = PJRT_ARGS(PJRT_LoadedExecutable_Destroy);
  args.executable = raw;
  CallQuietly(plugin, &PJRT_Api::PJRT_LoadedExecutable_Destroy, args);
}

// The device of a single-device executable; nullptr for one that spans several.
PJRT_Device* OnlyDevice(const Plugin& plugin, PJRT_LoadedExecutable* raw) {
  auto args = PJRT_ARGS(PJRT_LoadedExecutable_AddressableDevices);
  args.executable = raw;
  Call(plugin, &PJRT_Api::PJRT_LoadedExecutable_AddressableDevices, args, "reading an executable");
  return args.num_addressable_devices == 1 ? args.addressable_devices[0] : nullptr;
}

}  // namespace

Executable::Executable(Client* client, PJRT_LoadedExecutable* raw, std::vector<TensorType> outputs)
    : client_(client), raw_(raw), outputs_(std::move(outputs)) {
  try {
    Compiled::Of(*client, raw).CheckOutputs(outputs_);
    only_device_ = OnlyDevice(client->plugin(), raw);
  } catch (...) {
    Destroy(client->plugin(), raw);  // the destructor does not run
    throw;
  }
}

void Executable::SetName(const std::string& name) {
  // Buffers outlive their executables, and texts cost little: kept for good.
  static auto* const mutex = new std::mutex;
  static auto* const names = new std::unordered_set<std::string>;
  std::lock_guard lock(*mutex);
  if (name_.load(std::memory_order_relaxed) == nullptr) name_ = names->insert(name).first->c_str();
}

Executable::~Executable() { Destroy(client_->plugin(), raw_); }

void Executable::Execute(Device* device, const PJRT_Buffer* const* arguments, size_t num_arguments, const int64_t* keep,
                         size_t num_keep, std::vector<BufferPtr>* results) const {
  if (only_device_ != nullptr && device->raw() != only_device_) [[unlikely]] {
    Fail(Code::kInvalidArgument, "execute: expected the device the program was compiled for, got device ",
         device->index());
  }
  const char* const name = name_.load(std::memory_order_relaxed);
  auto options = PJRT_STRUCT(PJRT_ExecuteOptions);
  options.non_donatable_input_indices = keep;
  options.num_non_donatable_input_indices = num_keep;

  constexpr size_t kOnStack = 16;
  std::array<PJRT_Buffer*, kOnStack> few;
  std::vector<PJRT_Buffer*> many;
  PJRT_Buffer** outputs = few.data();
  const size_t num_outputs = outputs_.size();
  if (num_outputs > kOnStack) {
    many.resize(num_outputs);
    outputs = many.data();
  }
  results->clear();
  results->reserve(num_outputs);

  // The C API takes pointers to mutable buffers, and does not change what a Buffer shows except by donation.
  PJRT_Buffer* const* inputs = const_cast<PJRT_Buffer* const*>(arguments);
  auto args = PJRT_ARGS(PJRT_LoadedExecutable_Execute);
  args.executable = raw_;
  args.options = &options;
  args.argument_lists = &inputs;
  args.num_devices = 1;
  args.num_args = num_arguments;
  args.output_lists = &outputs;
  if (only_device_ == nullptr) args.execute_device = device->raw();
  Call(client_->plugin(), &PJRT_Api::PJRT_LoadedExecutable_Execute, args, name != nullptr ? name : "execute");
  for (size_t i = 0; i < num_outputs; ++i) {
    results->push_back(std::make_shared<Buffer>(client_, device, outputs[i], outputs_[i], name));
  }
}

std::string Executable::Serialize() const { return Compiled::Of(*client_, raw_).Serialize(); }

}  // namespace torch_tpu
