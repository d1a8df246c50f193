// Ahead of time: capturing a step on abstract tensors, and compiling a program for a topology that is not there.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "device/context.h"
#include "device/queue.h"
#include "dispatch/bound_op.h"
#include "dispatch/capture.h"
#include "dispatch/dtype_map.h"
#include "dispatch/tensors.h"
#include "plugin/plugin.h"
#include "runtime/topology.h"

namespace torch_tpu {
namespace {

namespace py = pybind11;

at::Tensor TensorIn(py::handle object, const char* what) {
  Check(THPVariable_Check(object.ptr()), what, ": expected tensors, got ", std::string(py::str(py::type::of(object))));
  return THPVariable_Unpack(object.ptr());
}

// A step as one program. Arguments are abstract tensors; whatever the step does to them is part of the program.
class Step {
 public:
  Step() : capture_(std::make_unique<Capture>(0)) { capture_->tape().KeepLocations(); }

  // An abstract tensor that lies as `like` does (on any device, meta and fake too); reads no value of it.
  py::object Argument(py::handle like) {
    const at::Tensor tensor = TensorIn(like, "capture");
    const Dims sizes(tensor.sizes().begin(), tensor.sizes().end());
    const Dims strides(tensor.strides().begin(), tensor.strides().end());
    return py::reinterpret_steal<py::object>(
        THPVariable_Wrap(Open().Argument(LayoutFor(tensor.scalar_type(), sizes, strides))));
  }

  // Calls `body()` with its ops recorded.
  py::object Run(const py::object& body) {
    Capture::Scope scope(&Open());
    return body();
  }

  // {"stablehlo", "inputs": [(argument or -1, random use or -1, type)], "outputs": the program's output that holds each
  // result or -1, "stores": [(argument with a new value, output or -1)], "donated": [(input, output)],
  // "output_types", "ops"} for a TPU, or for export's plain StableHLO.
  py::dict Finish(const py::list& outputs, bool tpu) {
    std::vector<at::Tensor> results;
    for (py::handle object : outputs) results.push_back(TensorIn(object, "capture"));
    CapturedGraph graph;
    Program program;
    {
      py::gil_scoped_release no_gil;
      graph = Open().Finish(results);
      results.clear();
      program = Lower(graph.graph, LowerOptions{tpu ? Target::kTpu : Target::kOther, graph.precision});
    }
    capture_.reset();
    py::list inputs, given, stores, donated, types;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      inputs.append(py::make_tuple(graph.inputs[i].argument, graph.inputs[i].random, program.inputs[i].ToString()));
    }
    for (const CapturedGraph::Output& output : graph.outputs) {
      given.append(output.argument >= 0 || !output.defined ? -1 : graph.storages[output.storage].value.output);
    }
    for (const CapturedGraph::Store& store : graph.stores) {
      stores.append(py::make_tuple(store.argument, store.value.output));
    }
    for (const auto& [input, output] : graph.graph.aliases) donated.append(py::make_tuple(input, output));
    py::dict row;
    row["stablehlo"] = program.text;
    row["inputs"] = inputs;
    row["outputs"] = given;
    row["stores"] = stores;
    row["donated"] = donated;
    for (const TensorType& type : program.outputs) types.append(type.ToString());
    row["output_types"] = types;
    row["ops"] = graph.ops;
    return row;
  }

 private:
  Capture& Open() {
    Check(capture_ != nullptr, "capture: expected one that is not finished");
    return *capture_;
  }

  std::unique_ptr<Capture> capture_;
};

// A program on this process's device, called with tensors: StableHLO, or an executable that its compiler serialized.
class LoadedProgram {
 public:
  // `outputs` have the types of the program's outputs (meta tensors do).
  LoadedProgram(const std::string& program, bool serialized, const py::list& outputs, int device) : device_(device) {
    std::vector<TensorType> types;
    for (py::handle object : outputs) {
      const at::Tensor like = TensorIn(object, "program");
      types.push_back({CheckedDType(like.scalar_type(), "program"), Dims(like.sizes().begin(), like.sizes().end())});
    }
    py::gil_scoped_release no_gil;
    DeviceContext& context = DeviceContext::Get();
    const CompileOptions options = context.compiler().DefaultOptions(device_);
    executable_ = serialized ? context.client().Deserialize(program, options, types)
                             : context.compiler().Compile(Program{program, {}, types}, options);
  }

  // `updates`: (argument, output): the argument's tensor, which is whole and contiguous, gets that value, and its
  // memory is reused where the program says so. Gives the other outputs.
  std::vector<py::object> Call(const py::list& arguments, const std::vector<std::pair<int, int>>& updates) {
    std::vector<at::Tensor> tensors;
    for (py::handle object : arguments) tensors.push_back(TensorIn(object, "program"));
    std::vector<BufferPtr> results;
    std::vector<at::Tensor> given;
    {
      py::gil_scoped_release no_gil;
      std::vector<BufferPtr> values;
      for (const at::Tensor& tensor : tensors) {
        Check(IsTpu(tensor), "program: expected tensors on tpu, got one on ", tensor.device().str());
        values.push_back(DenseValue(tensor));
      }
      std::lock_guard lock(Queue::Of(device_).mutex());
      std::vector<bool> updated(executable_->num_outputs(), false);
      std::vector<int64_t> keep;
      for (size_t i = 0; i < values.size(); ++i) keep.push_back(static_cast<int64_t>(i));
      for (const auto& [argument, output] : updates) {
        const at::Tensor& tensor = tensors.at(argument);
        StorageContext& context = ContextOf(*tensor.unsafeGetTensorImpl());
        Check(FillsStorage(*tensor.unsafeGetTensorImpl(), context) && tensor.is_contiguous(),
              "program: expected a contiguous tensor with a storage of its own for argument ", argument,
              ", which gets a new value");
        updated.at(output) = true;
        // Held by the storage and by `values`.
        if (context.value == values[argument] && context.value.use_count() == 2) std::erase(keep, argument);
      }
      std::vector<PJRT_Buffer*> raw;
      for (const BufferPtr& value : values) raw.push_back(value->raw());
      executable_->Execute(DeviceContext::Get().device(device_), raw.data(), raw.size(), keep.data(), keep.size(),
                           &results);
      if (!results.empty()) Queue::Of(device_).Launched(results.back());
      for (const auto& [argument, output] : updates) {
        SetValue(ContextOf(*tensors[argument].unsafeGetTensorImpl()), results[output]);
      }
      for (size_t i = 0; i < results.size(); ++i) {
        if (!updated[i]) given.push_back(WrapBuffer(results[i], ToScalarType(results[i]->type().dtype)));
      }
    }
    std::vector<py::object> objects;
    for (at::Tensor& tensor : given) objects.push_back(py::reinterpret_steal<py::object>(THPVariable_Wrap(tensor)));
    return objects;
  }

  py::bytes Serialize() const { return executable_->Serialize(); }

 private:
  int device_;
  std::shared_ptr<Executable> executable_;
};

// Compiles StableHLO for a topology that the plugin at `path` knows by name. Opens no client; the topology is kept.
py::dict TopologyCompile(const std::string& path, const std::string& topology_name, const std::string& text,
                         int num_replicas) {
  static auto& topologies = *new std::map<std::pair<std::string, std::string>, std::unique_ptr<Topology>>;
  py::dict row;
  std::vector<std::string> kinds;
  CompiledMemory memory;
  std::map<std::string, double> cost;
  Compiled::Optimized optimized;
  std::string serialized, platform;
  {
    py::gil_scoped_release no_gil;
    std::unique_ptr<Topology>& topology = topologies[{path, topology_name}];
    if (topology == nullptr) topology = Topology::Create(Plugin::Open({"libtpu", path}), topology_name);
    kinds = topology->device_kinds();
    platform = topology->platform_version();
    if (!text.empty()) {
      CompileOptions options;
      options.device_ordinal = -1;
      options.num_replicas = num_replicas;
      const Compiled compiled = topology->Compile(text, options);
      memory = compiled.memory();
      cost = compiled.cost_analysis();
      optimized = compiled.optimized_program();
      serialized = compiled.Serialize();
    }
  }
  row["kinds"] = kinds;
  row["platform"] = platform;
  row["memory"] = py::dict();
  row["memory"]["argument_bytes"] = memory.arguments;
  row["memory"]["output_bytes"] = memory.outputs;
  row["memory"]["alias_bytes"] = memory.aliased;
  row["memory"]["temp_bytes"] = memory.temporaries;
  row["memory"]["code_bytes"] = memory.code;
  row["cost"] = cost;
  row["optimized_format"] = optimized.format;
  row["optimized"] = py::bytes(optimized.code);
  row["executable"] = py::bytes(serialized);
  return row;
}

}  // namespace

void BindAot(py::module_& m) {
  py::class_<Step>(m, "Step")
      .def(py::init<>())
      .def("argument", &Step::Argument)
      .def("run", &Step::Run)
      .def("finish", &Step::Finish, py::arg("outputs"), py::arg("tpu") = true);
  py::class_<LoadedProgram>(m, "LoadedProgram")
      .def(py::init<const std::string&, bool, const py::list&, int>(), py::arg("program"), py::arg("serialized"),
           py::arg("outputs"), py::arg("device") = 0)
      .def("__call__", &LoadedProgram::Call, py::arg("arguments"), py::arg("updates"))
      .def("serialize", &LoadedProgram::Serialize);
  m.def("topology_compile", &TopologyCompile, py::arg("path"), py::arg("topology"), py::arg("text"),
        py::arg("num_replicas") = 1);
}

}  // namespace torch_tpu
