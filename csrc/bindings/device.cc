// The process's devices, for torch_tpu.tpu.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/engine.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/env.h"
#include "bindings/bindings.h"
#include "device/autocast.h"
#include "device/context.h"
#include "device/current.h"
#include "device/generator.h"
#include "device/host_memory.h"
#include "device/queue.h"

namespace torch_tpu {
namespace {

namespace py = pybind11;
using NoGil = py::call_guard<py::gil_scoped_release>;

c10::DeviceIndex AsIndex(int index) {
  DeviceContext::CheckDevice(index);
  return static_cast<c10::DeviceIndex>(index);
}

void ConfigureFromPairs(const std::vector<std::pair<std::string, std::string>>& candidates, int num_devices) {
  std::vector<PluginCandidate> list;
  list.reserve(candidates.size());
  for (const auto& [name, path] : candidates) list.push_back({name, path});
  Configure(std::move(list), num_devices);
}

// Bytes: in_use, peak, limit; None where nobody knows. A CPU plugin's device has the host's memory.
py::dict DeviceMemory(int index) {
  MemoryStats stats;
  {
    py::gil_scoped_release no_gil;
    DeviceContext& context = DeviceContext::Get();
    if (auto found = context.device(index)->memory_stats()) {
      stats = *found;
    } else {
      const HostMemory host = ReadHostMemory();
      stats.in_use = static_cast<int64_t>(host.total - host.available);
      stats.limit = static_cast<int64_t>(host.total);
    }
  }
  py::dict memory;
  memory["in_use"] = stats.in_use;
  memory["peak"] = stats.peak_in_use;
  memory["limit"] = stats.limit;
  return memory;
}

py::list EnvTable() {
  py::list rows;
  for (const env::Row& row : env::Table()) {
    rows.append(py::make_tuple(
        row.name, row.default_value == nullptr ? py::object(py::none()) : py::str(row.default_value), row.meaning));
  }
  return rows;
}

void Synchronize(int index) {
  AsIndex(index);
  DeviceContext::CheckFork();
  if (DeviceContext::IsInitialized()) Queue::Of(index).Synchronize();
}

py::object DefaultGeneratorObject(int index) {
  return py::reinterpret_steal<py::object>(THPGenerator_Wrap(DefaultGenerator(AsIndex(index))));
}

// Whether a thread of autograd's is alive: they are detached, and have only their names to be known by.
bool AutogradIsAlive() {
  std::error_code gone;  // threads end while this reads
  std::filesystem::directory_iterator task("/proc/self/task", gone);
  for (; !gone && task != std::filesystem::directory_iterator(); task.increment(gone)) {
    std::string name;
    std::getline(std::ifstream(task->path() / "comm"), name);
    if (name.starts_with("pt_autograd_")) return true;
  }
  return false;
}

// A backward returns a little before autograd's threads let go of its graph, which may hold Python objects, and a
// thread that wants the GIL of an interpreter that has ended takes the process with it. So they are asked to end, and
// are waited for. Tensors that live on until the interpreter ends then find a device with nothing left to do.
void AtExit() {
  if (!DeviceContext::IsInBadFork() && DeviceContext::IsInitialized()) {
    torch::autograd::Engine::get_default_engine().stop();
    for (int i = 0; i < 1000 && AutogradIsAlive(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  DeviceContext::Shutdown();
}

}  // namespace

void BindDevice(py::module_& m) {
  m.def("ensure_autocast_default", &EnsureAutocastDefault);
  m.def("configure", &ConfigureFromPairs, py::arg("candidates"), py::arg("num_devices"));
  m.def("is_initialized", &DeviceContext::IsInitialized);
  m.def("is_in_bad_fork", &DeviceContext::IsInBadFork);
  m.def("init", [] { DeviceContext::Get(); }, NoGil());
  m.def("shutdown", &DeviceContext::Shutdown, NoGil());
  m.def("device_count", &DeviceContext::DeviceCount, NoGil());
  m.def("current_device", [] { return static_cast<int>(CurrentDevice()); });
  m.def("set_device", [](int index) { SetCurrentDevice(AsIndex(index)); }, NoGil());
  m.def("exchange_device", [](int index) { return static_cast<int>(ExchangeDevice(AsIndex(index))); }, NoGil());
  m.def("synchronize", &Synchronize, NoGil());
  m.def("device_kind", [](int index) { return DeviceContext::Get().device(index)->kind(); }, NoGil());
  m.def("platform_name", [] { return DeviceContext::Get().client().platform_name(); }, NoGil());
  m.def("platform_version", [] { return DeviceContext::Get().client().platform_version(); }, NoGil());
  m.def("plugin_name", [] { return DeviceContext::Get().client().plugin().name(); }, NoGil());
  m.def("plugin_path", [] { return DeviceContext::Get().client().plugin().path(); }, NoGil());
  m.def("plugin_version", [] { return DeviceContext::Get().client().plugin().version_string(); }, NoGil());
  m.def("device_memory", &DeviceMemory);
  m.def("default_generator", &DefaultGeneratorObject);
  m.def("env_table", &EnvTable);
  m.def("at_exit", &AtExit, NoGil());
  py::module_::import("atexit").attr("register")(m.attr("at_exit"));
}

}  // namespace torch_tpu
