// Compiled programs, in memory and on disk.
#include <pybind11/pybind11.h>

#include "bindings/bindings.h"
#include "compile/disk_cache.h"
#include "device/context.h"

namespace torch_tpu {
namespace {

namespace py = pybind11;

// All zero before the first use of a device.
py::dict Stats() {
  CacheStats stats;
  if (DeviceContext::IsInitialized()) stats = DeviceContext::Get().compiler().stats();
  py::dict result;
  result["requests"] = stats.requests;
  result["memory_hits"] = stats.memory_hits;
  result["disk_hits"] = stats.disk_hits;
  result["compilations"] = stats.compilations;
  result["disk_errors"] = stats.disk_errors;
  result["compile_seconds"] = stats.compile_seconds;
  result["load_seconds"] = stats.load_seconds;
  return result;
}

void ClearMemory() {
  if (DeviceContext::IsInitialized()) DeviceContext::Get().compiler().ClearMemory();
}

py::dict Usage() {
  const DiskCache::Usage usage = DiskCache::FromEnv().usage();
  py::dict result;
  result["files"] = usage.files;
  result["bytes"] = usage.bytes;
  return result;
}

// (entry, seconds, any other entry, [(part, here, there)]) of each compilation since the last call.
py::list Misses() {
  std::vector<MissExplanation> misses;
  if (DeviceContext::IsInitialized()) {
    py::gil_scoped_release no_gil;
    misses = DeviceContext::Get().compiler().TakeMisses();
  }
  py::list rows;
  for (const MissExplanation& miss : misses) {
    py::list differences;
    for (const auto& difference : miss.differences)
      differences.append(py::make_tuple(difference.part, difference.here, difference.there));
    rows.append(py::make_tuple(miss.entry, miss.seconds, miss.any, differences));
  }
  return rows;
}

}  // namespace

void BindCache(py::module_& m) {
  using NoGil = py::call_guard<py::gil_scoped_release>;
  m.def("cache_stats", &Stats);
  m.def("clear_cache", &ClearMemory, NoGil());
  m.def("cache_folder", [] { return DiskCache::FromEnv().folder(); });  // "" when off
  m.def("cache_usage", &Usage);
  m.def("take_cache_misses", &Misses);
  m.def("cache_disk_clear", [] { return DiskCache::FromEnv().Clear(); }, NoGil());
}

}  // namespace torch_tpu
