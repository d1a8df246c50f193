// A counter-based generator: 16-byte state {seed, offset}, the same stream on every plugin and in every mode.
//
// The offset counts 32-bit words, as PyTorch's own device generators do (DTensor advances it in fours); a Philox block
// is four words, so an offset is always a multiple of 4, and block offset / 4 is the next one to be used.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace torch_tpu {

class TpuGenerator : public c10::GeneratorImpl {
 public:
  explicit TpuGenerator(c10::DeviceIndex device);
  void set_current_seed(uint64_t seed) override;  // and offset 0
  void set_offset(uint64_t offset) override;      // throws c10::Error unless a multiple of 4
  uint64_t get_offset() const override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_state(const c10::TensorImpl& new_state) override;  // uint8[16], on CPU
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  // Two generators that share one state from then on.
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& new_state) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;
  static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }

  // {seed, offset} for a program that draws `count` 32-bit words; the offset moves on by whole Philox blocks, so that
  // draws never overlap. Thread-safe.
  std::pair<uint64_t, uint64_t> Reserve(uint64_t count);

 private:
  struct State {
    // Of its own: Python holds the generator's mutex around the calls above, and generators may share a state.
    std::mutex mutex;
    uint64_t seed = c10::default_rng_seed_val;
    uint64_t offset = 0;
  };
  TpuGenerator(c10::DeviceIndex device, std::shared_ptr<State> state);
  TpuGenerator* clone_impl() const override;

  std::shared_ptr<State> state_;
};

// The generator of tpu:`device` (-1: the current one). Starts no client. Throws c10::Error for a device that is not
// there.
const at::Generator& DefaultGenerator(c10::DeviceIndex device);
at::Generator NewGenerator(c10::DeviceIndex device);
// The given generator or the device's default. Throws c10::Error with PyTorch's text for a generator of another device.
TpuGenerator& GeneratorFor(const std::optional<at::Generator>& generator, c10::DeviceIndex device);

}  // namespace torch_tpu
