// C++ exceptions as Python's, and Ctrl-C during a wait.
#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>

#include <string>

#include "base/error.h"
#include "bindings/bindings.h"
#include "device/queue.h"
#include "dispatch/errors.h"

namespace torch_tpu {
namespace {

// Not exported by torch's library.
PyObject* OutOfMemoryType() { return pybind11::module_::import("torch").attr("OutOfMemoryError").ptr(); }

PyObject* TypeOf(Code code) {
  switch (code) {
    case Code::kOutOfRange:
      return PyExc_IndexError;
    case Code::kUnimplemented:
      return PyExc_NotImplementedError;
    case Code::kResourceExhausted:
      return OutOfMemoryType();
    default:
      return PyExc_RuntimeError;
  }
}

void Translate(std::exception_ptr pointer) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    PyErr_SetString(TypeOf(error.code()), error.what());
  } catch (const c10::IndexError& error) {
    PyErr_SetString(PyExc_IndexError, error.what_without_backtrace());
  } catch (const c10::ValueError& error) {
    PyErr_SetString(PyExc_ValueError, error.what_without_backtrace());
  } catch (const c10::TypeError& error) {
    PyErr_SetString(PyExc_TypeError, error.what_without_backtrace());
  } catch (const c10::NotImplementedError& error) {
    PyErr_SetString(PyExc_NotImplementedError, error.what_without_backtrace());
  } catch (const c10::OutOfMemoryError& error) {
    PyErr_SetString(OutOfMemoryType(), error.what_without_backtrace());
  } catch (const c10::Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace());
  }
}

// Runs Python's signal handlers (in the main thread; elsewhere it does nothing) and lets what they raise end the wait.
void CheckSignals() {
  if (!Py_IsInitialized() || _Py_IsFinalizing()) return;
  pybind11::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

// Where the files of a package are, with the last slash.
std::string FolderOf(const char* module) {
  const auto file = pybind11::module_::import(module).attr("__file__").cast<std::string>();
  return file.substr(0, file.rfind('/') + 1);
}

// The innermost frame of this thread that is neither PyTorch's nor ours; nothing where no Python is running, as in
// autograd's threads.
std::string UsersLine() {
  if (!Py_IsInitialized() || _Py_IsFinalizing()) return "";
  pybind11::gil_scoped_acquire gil;
  static const std::string& torch_folder = *new std::string(FolderOf("torch"));
  static const std::string& our_folder = *new std::string(FolderOf("torch_tpu._C"));
  auto frame = pybind11::reinterpret_borrow<pybind11::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  for (; frame && !frame.is_none(); frame = frame.attr("f_back")) {
    const pybind11::object code = frame.attr("f_code");
    const auto file = code.attr("co_filename").cast<std::string>();
    if (file.starts_with(torch_folder) || file.starts_with(our_folder)) continue;
    return Cat(file, ":", frame.attr("f_lineno").cast<int>(), ", in ", code.attr("co_name").cast<std::string>());
  }
  return "";
}

}  // namespace

void BindErrors(pybind11::module_& m) {
  SetCallSite(&UsersLine);
  pybind11::register_local_exception_translator(&Translate);
  SetInterruptCheck(&CheckSignals);
}

}  // namespace torch_tpu
