#include "dispatch/fallback.h"

#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <atomic>
#include <mutex>

#include "base/env.h"
#include "dispatch/dtype_map.h"

namespace torch_tpu {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::string, int64_t> counts;
};

Counts& TheCounts() {
  static auto& counts = *new Counts;
  return counts;
}

std::atomic<FallbackPolicy>& Policy() {
  static std::atomic<FallbackPolicy> policy = [] {
    const std::string text = env::Get(env::Var::kFallback).value_or("warn");
    if (text == "error") return FallbackPolicy::kError;
    return text == "silent" ? FallbackPolicy::kSilent : FallbackPolicy::kWarn;
  }();
  return policy;
}

void Fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = toString(op.operator_name());
  const FallbackPolicy policy = Policy();
  TORCH_CHECK_NOT_IMPLEMENTED(
      policy != FallbackPolicy::kError, name,
      ": the tpu device has no lowering for this op. Set TORCH_TPU_FALLBACK=warn to run it on the host");
  bool first = false;
  {
    Counts& counts = TheCounts();
    std::lock_guard lock(counts.mutex);
    first = ++counts.counts[name] == 1;
  }
  if (first && policy == FallbackPolicy::kWarn) {
    TORCH_WARN(name,
               " has no lowering for the tpu device: it runs on the host, with copies both ways. See "
               "torch_tpu.fallback_counts(); TORCH_TPU_FALLBACK=error makes this an error.");
  }
  at::native::cpu_fallback(op, stack, /*error_on_views=*/false);
}

void Quantized(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, toString(op.operator_name()),
                              ": expected a dtype that the tpu device supports, got a quantized one");
}

void Compressed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, toString(op.operator_name()),
                              ": expected layout torch.strided on the tpu device, got a compressed sparse one");
}

}  // namespace

void RegisterFallback() {
  static auto& quantized =
      *new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::QuantizedPrivateUse1, __FILE__, __LINE__);
  static auto& compressed =
      *new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::SparseCsrPrivateUse1, __FILE__, __LINE__);
  compressed.fallback(torch::CppFunction::makeFromBoxedFunction<&Compressed>());
  quantized.fallback(torch::CppFunction::makeFromBoxedFunction<&Quantized>());
  static auto& library =
      *new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&Fallback>());
}

std::map<std::string, int64_t> FallbackCounts() {
  std::lock_guard lock(TheCounts().mutex);
  return TheCounts().counts;
}

void ResetFallbackCounts() {
  std::lock_guard lock(TheCounts().mutex);
  TheCounts().counts.clear();
}

void SetFallbackPolicy(FallbackPolicy policy) { Policy() = policy; }
FallbackPolicy GetFallbackPolicy() { return Policy(); }

}  // namespace torch_tpu
