#include "dispatch/errors.h"

#include <atomic>

#include "device/torch_error.h"

namespace torch_tpu {
namespace {

std::atomic<std::string (*)()> g_call_site{nullptr};

}  // namespace

void SetCallSite(std::string (*site)()) { g_call_site = site; }

std::string CallSite() {
  const auto site = g_call_site.load();
  return site == nullptr ? "" : site();
}

void ThrowLocated(const Error& error) {
  const std::string line = CallSite();
  throw line.empty() ? error : Error(error.code(), Cat(error.what(), "\n  at ", line));
}

void ThrowAsTorch(const Error& error, std::string_view op) {
  std::string text = error.what();
  if (op.starts_with("aten::") || op.starts_with("tpu::")) op.remove_prefix(op.find("::") + 2);
  if (!op.empty() && text.compare(0, op.size(), op) != 0) text = std::string(op) + ": " + text;
  ThrowTorchError(Error(error.code(), text));
}

}  // namespace torch_tpu
