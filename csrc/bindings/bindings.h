// The parts of the module `torch_tpu._C`, one file each.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_tpu {

void BindErrors(pybind11::module_& m);
void BindDevice(pybind11::module_& m);
void BindCache(pybind11::module_& m);
void BindDispatch(pybind11::module_& m);
void BindCompile(pybind11::module_& m);
void BindAot(pybind11::module_& m);

}  // namespace torch_tpu
