// What has no lowering runs on the host, counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace torch_tpu {

void RegisterFallback();
std::map<std::string, int64_t> FallbackCounts();
void ResetFallbackCounts();
enum class FallbackPolicy { kWarn, kError, kSilent };
void SetFallbackPolicy(FallbackPolicy policy);
FallbackPolicy GetFallbackPolicy();

}  // namespace torch_tpu
