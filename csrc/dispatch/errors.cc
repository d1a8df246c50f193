#include "dispatch/errors.h"

#include "device/torch_error.h"

namespace torch_tpu {

void ThrowAsTorch(const Error& error, std::string_view op) {
  std::string text = error.what();
  if (op.starts_with("aten::") || op.starts_with("tpu::")) op.remove_prefix(op.find("::") + 2);
  if (!op.empty() && text.compare(0, op.size(), op) != 0) text = std::string(op) + ": " + text;
  ThrowTorchError(Error(error.code(), text));
}

}  // namespace torch_tpu
