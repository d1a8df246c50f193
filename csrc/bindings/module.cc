#include "bindings/bindings.h"
#include "device/hooks.h"

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  torch_tpu::RegisterHooks();
  torch_tpu::BindErrors(m);
  torch_tpu::BindDevice(m);
  torch_tpu::BindCache(m);
  torch_tpu::BindDispatch(m);
  torch_tpu::BindCompile(m);
  torch_tpu::BindAot(m);
}
