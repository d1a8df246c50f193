#include "dispatch/host_kernels/host_kernels.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <atomic>
#include <mutex>
#include <string>

#include "base/env.h"
#include "base/error.h"
#include "device/context.h"
#include "dispatch/dtype_map.h"
#include "dispatch/host_kernels/kernel.h"

namespace torch_tpu {
namespace {

std::atomic<bool> g_registered{false};

std::atomic<bool>& Enabled() {
  static std::atomic<bool> enabled{env::Flag(env::Var::kHostKernels)};
  return enabled;
}

struct Counts {
  std::mutex mutex;
  std::map<std::string, int64_t> counts;
};

Counts& TheCounts() {
  static auto& counts = *new Counts;  // plugin threads may outlive the end of main
  return counts;
}

// PyTorch's dispatcher must go straight to the CPU kernels, whatever the thread that called the plugin had switched on.
class PlainDispatch {
 public:
  PlainDispatch()
      : keys_(c10::DispatchKeySet(c10::DispatchKey::BackendSelect),
              c10::DispatchKeySet(c10::DispatchKeySet::FULL) -
                  c10::DispatchKeySet({c10::DispatchKey::Dense, c10::DispatchKey::BackendSelect})) {}

 private:
  c10::AutoGradMode grad_{false};
  c10::impl::ForceDispatchKeyGuard keys_;
};

at::Tensor View(const FfiBuffer& buffer) {
  return at::from_blob(buffer.data, c10::IntArrayRef(buffer.dims.data(), buffer.dims.size()),
                       at::TensorOptions().dtype(ToScalarType(buffer.dtype)).device(at::kCPU));
}

void RegisterWith(Client& client) {
  if (!client.is_cpu() || !SupportsFfi(client.plugin())) return;
  for (const auto& kernels : {ConvolutionKernels(), LinalgKernels(), OrderKernels(), IndexKernels()}) {
    for (const HostKernel& kernel : kernels) {
      RegisterFfi(client.plugin(), Cat("torch_tpu.", kernel.name), kernel.handler);
    }
  }
  g_registered = true;
}

}  // namespace

at::Tensor HostCall::argument(size_t i) const { return View(call_.argument(i)); }
at::Tensor HostCall::result(size_t i) const { return View(call_.result(i)); }
void HostCall::Store(size_t i, const at::Tensor& value) const { result(i).copy_(value); }

int64_t HostCall::number(size_t i) const { return numbers(i, 1)[0]; }

c10::IntArrayRef HostCall::numbers(size_t first, size_t count) const {
  Check(first + count <= numbers_.size(), "host kernel: expected at least ", first + count, " numbers, got ",
        numbers_.size());
  return {numbers_.data() + first, count};
}

void RunHostKernel(const char* name, void (*kernel)(const HostCall&), const FfiCall& call) {
  {
    Counts& counts = TheCounts();
    std::lock_guard lock(counts.mutex);
    ++counts.counts[name];
  }
  PlainDispatch plain;
  try {
    kernel(HostCall(call));
  } catch (const c10::IndexError& error) {  // without its C++ stack
    throw Error(Code::kOutOfRange, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    throw Error(Code::kInvalidArgument, error.what_without_backtrace());
  }
}

void RegisterHostKernels() { DeviceContext::SetStartHook(&RegisterWith); }
bool HostKernels() { return g_registered.load(std::memory_order_relaxed) && Enabled().load(std::memory_order_relaxed); }
void SetHostKernels(bool enabled) { Enabled() = enabled; }

std::map<std::string, int64_t> HostKernelCounts() {
  std::lock_guard lock(TheCounts().mutex);
  return TheCounts().counts;
}

void ResetHostKernelCounts() {
  std::lock_guard lock(TheCounts().mutex);
  TheCounts().counts.clear();
}

}  // namespace torch_tpu
