// Modes, precision, fallback counts and the registration's report.
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "device/queue.h"
#include "dispatch/fallback.h"
#include "dispatch/host_kernels/host_kernels.h"
#include "dispatch/mode.h"
#include "dispatch/registration.h"
#include "dispatch/replay.h"
#include "dispatch/tape.h"

namespace torch_tpu {

void BindDispatch(pybind11::module_& m) {
  RegisterFallback();
  RegisterRows();
  RegisterHostKernels();
  m.def("eager_mode", [] { return static_cast<int>(CurrentMode()); });
  m.def("set_eager_mode", [](int mode) { SetProcessMode(static_cast<EagerMode>(mode)); });
  m.def("thread_eager_mode", &ThreadMode);
  m.def("set_thread_eager_mode", &SetThreadMode);
  m.def(
      "take_flush_records",
      [](int device) {
        std::vector<FlushRecord> records;
        {
          std::lock_guard lock(Queue::Of(device).mutex());
          records = Tape::Of(device).TakeRecords();
        }
        pybind11::list rows;
        for (const FlushRecord& r : records) {
          rows.append(pybind11::make_tuple(r.reason, r.ops, r.inputs, r.outputs, r.donated, r.compiled, r.milliseconds,
                                           r.memory));
        }
        return rows;
      },
      "What fused mode ran since the last call: (reason, ops, inputs, outputs, donated, compiled, milliseconds, "
      "bytes).");
  m.def("precision", &PrecisionOverride);
  m.def("set_precision", &SetPrecisionOverride);
  m.def("fallback_counts", &FallbackCounts);
  m.def("reset_fallback_counts", &ResetFallbackCounts);
  m.def("fallback_policy", [] { return static_cast<int>(GetFallbackPolicy()); });
  m.def("set_fallback_policy", [](int policy) { SetFallbackPolicy(static_cast<FallbackPolicy>(policy)); });
  m.def("host_kernels", &HostKernels);
  m.def("set_host_kernels", &SetHostKernels);
  m.def("host_kernel_counts", &HostKernelCounts);
  m.def("reset_host_kernel_counts", &ResetHostKernelCounts);
  m.def("start_recording", &LaunchLog::Start);
  m.def("stop_recording", &LaunchLog::Stop);
  m.def("replay", &LaunchLog::Replay, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("registered_ops", &RegisteredOps);
  m.def("registration_problems", &RegistrationProblems);
}

}  // namespace torch_tpu
