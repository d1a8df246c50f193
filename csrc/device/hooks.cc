#include "device/hooks.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "device/address.h"
#include "device/autocast.h"
#include "device/context.h"
#include "device/current.h"
#include "device/generator.h"
#include "device/host_memory.h"
#include "device/storage.h"
#include "device/torch_error.h"

namespace torch_tpu {
namespace {

struct TpuHooks final : public at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return DeviceContext::DeviceCount() > 0; }

  bool hasPrimaryContext(c10::DeviceIndex device) const override {
    return DeviceContext::IsInitialized() && device >= 0 && device < DeviceContext::DeviceCount();
  }

  // Asked for pinned memory and generators, too, which need no client: it starts with the first program or copy.
  void init() const override {
    WithTorchErrors([] { DeviceContext::CheckFork(); });
  }

  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(DeviceContext::DeviceCount()); }

  void setCurrentDevice(c10::DeviceIndex device) const override {
    WithTorchErrors([&] { SetCurrentDevice(device); });
  }

  c10::DeviceIndex getCurrentDevice() const override { return CurrentDevice(); }

  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return WithTorchErrors([&] { return ExchangeDevice(device); });
  }

  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? CurrentDevice() : exchangeDevice(device);
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return DefaultGenerator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override { return NewGenerator(device); }

  bool isPinnedPtr(const void* data) const override { return IsPinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return GetHostAllocator(); }

  at::Device getDeviceFromPtr(void* data) const override {
    const std::optional<c10::DeviceIndex> device = DeviceOfAddress(reinterpret_cast<uintptr_t>(data));
    TORCH_CHECK(device.has_value(), "The specified pointer is not an address of a tpu storage");
    return at::Device(at::kPrivateUse1, *device);
  }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override {
    c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
    TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
    ResizeStorage(*impl, nbytes);
  }
};

}  // namespace

void RegisterHooks() {
  static const bool registered = [] {
    at::RegisterPrivateUse1HooksInterface(new TpuHooks);
    at::setHostAllocator(at::kPrivateUse1, GetHostAllocator());
    return true;
  }();
  static_cast<void>(registered);
  EnsureAutocastDefault();
}

}  // namespace torch_tpu
