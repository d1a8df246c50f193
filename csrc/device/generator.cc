#include "device/generator.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/DispatchKeySet.h>

#include <array>
#include <cstring>

#include "device/context.h"
#include "device/current.h"
#include "device/torch_error.h"

namespace torch_tpu {
namespace {

constexpr size_t kStateBytes = 2 * sizeof(uint64_t);
constexpr uint64_t kWordsPerBlock = 4;

void CheckOffset(uint64_t offset) {
  TORCH_CHECK(offset % kWordsPerBlock == 0, "tpu generator: offset must be a multiple of 4, got ", offset);
}

c10::DeviceIndex Checked(c10::DeviceIndex device) {
  if (device < 0) return CurrentDevice();
  WithTorchErrors([&] { DeviceContext::CheckDevice(device); });
  return device;
}

}  // namespace

TpuGenerator::TpuGenerator(c10::DeviceIndex device) : TpuGenerator(device, std::make_shared<State>()) {}

TpuGenerator::TpuGenerator(c10::DeviceIndex device, std::shared_ptr<State> state)
    : c10::GeneratorImpl(c10::Device(c10::DeviceType::PrivateUse1, device),
                         c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      state_(std::move(state)) {}

void TpuGenerator::set_current_seed(uint64_t seed) {
  std::lock_guard lock(state_->mutex);
  state_->seed = seed;
  state_->offset = 0;
}

void TpuGenerator::set_offset(uint64_t offset) {
  CheckOffset(offset);
  std::lock_guard lock(state_->mutex);
  state_->offset = offset;
}

uint64_t TpuGenerator::get_offset() const {
  std::lock_guard lock(state_->mutex);
  return state_->offset;
}

uint64_t TpuGenerator::current_seed() const {
  std::lock_guard lock(state_->mutex);
  return state_->seed;
}

uint64_t TpuGenerator::seed() {
  const uint64_t random = c10::detail::getNonDeterministicRandom(/*is_cuda=*/true);
  set_current_seed(random);
  return random;
}

void TpuGenerator::set_state(const c10::TensorImpl& new_state) {
  at::detail::check_rng_state(new_state);
  TORCH_CHECK(new_state.numel() == static_cast<int64_t>(kStateBytes), "RNG state is wrong size: a tpu generator's has ",
              kStateBytes, " bytes, got ", new_state.numel());
  std::array<uint64_t, 2> words;
  std::memcpy(words.data(), new_state.data(), kStateBytes);
  CheckOffset(words[1]);
  std::lock_guard lock(state_->mutex);
  state_->seed = words[0];
  state_->offset = words[1];
}

c10::intrusive_ptr<c10::TensorImpl> TpuGenerator::get_state() const {
  at::Tensor tensor = at::empty({static_cast<int64_t>(kStateBytes)}, at::TensorOptions(at::kCPU).dtype(at::kByte));
  std::array<uint64_t, 2> words;
  {
    std::lock_guard lock(state_->mutex);
    words = {state_->seed, state_->offset};
  }
  std::memcpy(tensor.mutable_data_ptr(), words.data(), kStateBytes);
  return tensor.getIntrusivePtr();
}

void TpuGenerator::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& new_state) {
  auto* other = dynamic_cast<TpuGenerator*>(new_state.get());
  TORCH_CHECK(other != nullptr, "graphsafe_set_state: expected a tpu generator, got one of ", new_state->device());
  state_ = other->state_;
}

c10::intrusive_ptr<c10::GeneratorImpl> TpuGenerator::graphsafe_get_state() const {
  return c10::intrusive_ptr<c10::GeneratorImpl>::unsafe_steal_from_new(new TpuGenerator(device().index(), state_));
}

std::pair<uint64_t, uint64_t> TpuGenerator::Reserve(uint64_t count) {
  const uint64_t blocks = (count + kWordsPerBlock - 1) / kWordsPerBlock;
  std::lock_guard lock(state_->mutex);
  const std::pair<uint64_t, uint64_t> reserved{state_->seed, state_->offset};
  state_->offset += blocks * kWordsPerBlock;
  return reserved;
}

TpuGenerator* TpuGenerator::clone_impl() const {
  auto copy = std::make_shared<State>();
  std::lock_guard lock(state_->mutex);
  copy->seed = state_->seed;
  copy->offset = state_->offset;
  return new TpuGenerator(device().index(), std::move(copy));
}

const at::Generator& DefaultGenerator(c10::DeviceIndex device) {
  struct Generators {
    std::mutex mutex;
    std::array<at::Generator, 128> of;
  };
  static auto* generators = new Generators;
  const c10::DeviceIndex index = Checked(device);
  std::lock_guard lock(generators->mutex);
  at::Generator& generator = generators->of[static_cast<size_t>(index)];
  if (!generator.defined()) generator = at::make_generator<TpuGenerator>(index);
  return generator;
}

at::Generator NewGenerator(c10::DeviceIndex device) { return at::make_generator<TpuGenerator>(Checked(device)); }

TpuGenerator& GeneratorFor(const std::optional<at::Generator>& generator, c10::DeviceIndex device) {
  if (!generator.has_value() || !generator->defined()) return *DefaultGenerator(device).get<TpuGenerator>();
  TORCH_CHECK(generator->device().type() == TpuGenerator::device_type(), "Expected a '", TpuGenerator::device_type(),
              "' device type for generator but found '", generator->device().type(), "'");
  return *generator->get<TpuGenerator>();
}

}  // namespace torch_tpu
