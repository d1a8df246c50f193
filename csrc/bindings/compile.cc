// Captured programs: what torch_tpu.compile and ahead-of-time compilation call.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "dispatch/bound_op.h"
#include "dispatch/capture.h"
#include "dispatch/compiled_graph.h"
#include "dispatch/dtype_map.h"
#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

namespace py = pybind11;

py::object Wrap(const at::Tensor& tensor) {
  if (!tensor.defined()) return py::none();
  return py::reinterpret_steal<py::object>(THPVariable_Wrap(tensor));
}

// A plain number's part of the key: its kind and its value. None and other objects are all alike: a graph takes them as
// they were when it was captured.
uint64_t WordOf(PyObject* object) {
  constexpr uint64_t kInt = 0x9e3779b97f4a7c15, kFloat = 0xc2b2ae3d27d4eb4f;
  if (PyLong_Check(object)) return static_cast<uint64_t>(PyLong_AsLongLong(object)) ^ (PyBool_Check(object) ? 0 : kInt);
  if (PyFloat_Check(object)) return std::bit_cast<uint64_t>(PyFloat_AsDouble(object)) ^ kFloat;
  return 0;
}

// A graph and the Python function that captures it: `capture(arguments) -> (outputs, is_host)` runs the graph's ops on
// abstract tensors. Where the graph cannot be one program it gives a callable instead, which takes all calls from then
// on. Called with a list of arguments, which it empties.
class Callable {
 public:
  Callable(py::object capture, std::string name, int device)
      : capture_(std::move(capture)), graph_(std::move(name), device) {}

  py::list Call(py::list arguments) {
    if (split_) [[unlikely]]
      return split_(arguments).cast<py::list>();
    // Inside another capture the ops become part of that one.
    if (Capture::Current() != nullptr) [[unlikely]] {
      const py::object result = capture_(arguments);
      return result.cast<std::pair<py::list, std::vector<bool>>>().first;
    }
    const Arguments plain = Read(arguments);
    const CompiledGraph::Variant* variant = Find(plain);
    if (variant == nullptr) {
      variant = Make(arguments, plain);
      if (variant == nullptr) return split_(arguments).cast<py::list>();
    }
    std::vector<at::Tensor> results;
    {
      py::gil_scoped_release no_gil;
      results = graph_.Run(*variant, plain);
    }
    PyList_SetSlice(arguments.ptr(), 0, PyList_GET_SIZE(arguments.ptr()), nullptr);
    const std::vector<py::object>& others = others_[static_cast<size_t>(variant->id)];
    py::list outputs(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      PyList_SET_ITEM(outputs.ptr(), static_cast<Py_ssize_t>(i),
                      results[i].defined() ? THPVariable_Wrap(std::move(results[i])) : others[i].inc_ref().ptr());
    }
    return outputs;
  }

  double TimeLaunches(const py::list& arguments, int repeats) {
    const Arguments plain = Read(arguments);
    const CompiledGraph::Variant* variant = Find(plain);
    Check(variant != nullptr && variant->executable != nullptr, "time_launches: expected arguments of an earlier call");
    py::gil_scoped_release no_gil;
    return graph_.TimeLaunches(*variant, plain, repeats);
  }

  const CompiledGraph& graph() const { return graph_; }

 private:
  using Arguments = c10::SmallVector<CompiledGraph::Argument, 64>;

  // Refers to the list's tensors.
  static Arguments Read(const py::list& arguments) {
    Arguments plain;
    const Py_ssize_t count = PyList_GET_SIZE(arguments.ptr());
    plain.reserve(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* object = PyList_GET_ITEM(arguments.ptr(), i);
      if (THPVariable_Check(object)) {
        plain.push_back({&THPVariable_Unpack(object), 0});
      } else {
        plain.push_back({nullptr, WordOf(object)});
      }
    }
    return plain;
  }

  const CompiledGraph::Variant* Find(const Arguments& plain) {
    py::gil_scoped_release no_gil;
    return graph_.Find(plain);
  }

  const CompiledGraph::Variant* Make(const py::list& arguments, std::span<const CompiledGraph::Argument> plain) {
    std::vector<TensorLayout> layouts;
    auto capture = std::make_unique<Capture>(graph_.device());
    py::list abstract;
    {
      py::gil_scoped_release no_gil;
      layouts = graph_.Layouts(plain);
    }
    for (size_t i = 0; i < plain.size(); ++i) {
      const at::Tensor made = capture->Argument(layouts[i]);
      abstract.append(plain[i].tensor != nullptr ? Wrap(made) : py::object(arguments[i]));
    }
    std::vector<at::Tensor> outputs;
    std::vector<py::object> others;
    std::vector<bool> host;
    {
      py::object result;
      {
        Capture::Scope scope(capture.get());
        result = capture_(abstract);
      }
      if (PyCallable_Check(result.ptr())) {
        split_ = std::move(result);
        return nullptr;
      }
      const auto [list, on_host] = result.cast<std::pair<py::list, std::vector<bool>>>();
      host = on_host;
      for (py::handle object : list) {
        // A host tensor that the graph did not compute is a constant of it.
        const bool is_tensor = THPVariable_Check(object.ptr()) && IsTpu(THPVariable_Unpack(object.ptr()));
        outputs.push_back(is_tensor ? THPVariable_Unpack(object.ptr()) : at::Tensor());
        others.push_back(is_tensor ? py::object(py::none()) : py::reinterpret_borrow<py::object>(object));
      }
    }
    const CompiledGraph::Variant* variant = nullptr;
    {
      py::gil_scoped_release no_gil;
      CapturedGraph captured = capture->Finish(outputs);
      outputs.clear();
      variant = graph_.Add(std::move(captured), plain, std::move(host));
    }
    if (others_.size() <= static_cast<size_t>(variant->id)) others_.resize(static_cast<size_t>(variant->id) + 1);
    others_[static_cast<size_t>(variant->id)] = std::move(others);
    return variant;
  }

  py::object capture_;
  CompiledGraph graph_;
  py::object split_;
  std::deque<std::vector<py::object>> others_;  // per variant: outputs that are no tensors. Guarded by the GIL.
};

py::list Describe(const Callable& callable) {
  py::list rows;
  for (const CompiledGraph::Variant* variant : callable.graph().variants()) {
    py::dict row;
    row["ops"] = variant->graph.ops;
    row["inputs"] = variant->graph.inputs.size();
    row["outputs"] = variant->graph.graph.outputs.size();
    row["donated"] = variant->donations.size();
    row["stores"] = variant->graph.stores.size();
    row["stablehlo"] = variant->text;
    rows.append(row);
  }
  return rows;
}

std::vector<at::Tensor> Unpacked(const py::handle& list) {
  std::vector<at::Tensor> tensors;
  for (py::handle object : list) {
    Check(THPVariable_Check(object.ptr()), "control flow: expected tensors, got an abstract one of another kind: ",
          std::string(py::str(py::type::of(object))));
    tensors.push_back(THPVariable_Unpack(object.ptr()));
  }
  return tensors;
}

// Arguments of `capture` as PyTorch makes new tensors of the same dtypes and sizes.
py::list FreshArguments(Capture& capture, const std::vector<at::Tensor>& like) {
  py::list arguments;
  for (const at::Tensor& tensor : like) {
    Dims strides(static_cast<size_t>(tensor.dim()));
    int64_t stride = 1;
    for (int64_t d = tensor.dim(); d-- > 0;) {
      strides[static_cast<size_t>(d)] = stride;
      stride *= std::max<int64_t>(tensor.size(d), 1);
    }
    const Dims sizes(tensor.sizes().begin(), tensor.sizes().end());
    arguments.append(Wrap(capture.Argument(LayoutFor(tensor.scalar_type(), sizes, strides))));
  }
  return arguments;
}

// StableHLO of `body` on contiguous tensors with the dtypes and sizes of `like`, for export: nothing is compiled or
// run. Says what the program's inputs are (argument index, or a constant), which of its outputs are the function's
// results, and which are new values of arguments.
py::dict LowerFunction(const py::object& body, const py::list& like) {
  Capture capture(0);
  const py::list arguments = FreshArguments(capture, Unpacked(like));
  CapturedGraph graph;
  {
    Capture::Scope scope(&capture);
    // Results as dense values, so that an output of the program is one of the function.
    static InternalOp& identity = *new InternalOp("tpu::identity(Tensor x) -> Tensor");
    std::vector<at::Tensor> outputs;
    const py::object result = body(*arguments);
    for (const at::Tensor& output : Unpacked(result)) outputs.push_back(identity.Run({output}, 0)[0]);
    graph = capture.Finish(outputs);
  }
  std::vector<int> order(graph.outputs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = graph.storages[graph.outputs[i].storage].value.output;
  py::list inputs, outputs, stores;
  for (const CapturedGraph::Input& input : graph.inputs) {
    Check(input.random < 0, "export: expected a graph without random numbers: a program has no generator");
    py::object constant = py::none();
    if (input.constant != nullptr)
      constant = Wrap(WrapBuffer(input.constant, ToScalarType(input.constant->type().dtype)));
    inputs.append(py::make_tuple(input.argument, constant));
  }
  for (const CapturedGraph::Store& store : graph.stores)
    stores.append(py::make_tuple(store.argument, store.value.output));
  const Program program = Lower(graph.graph, LowerOptions{Target::kOther, graph.precision});
  py::dict row;
  row["stablehlo"] = program.text;
  row["inputs"] = inputs;
  row["outputs"] = order;
  row["mutations"] = stores;
  return row;
}

py::list Wrapped(const std::vector<at::Tensor>& tensors) {
  py::list list;
  for (const at::Tensor& tensor : tensors) list.append(Wrap(tensor));
  return list;
}

Capture& Recording() {
  Capture* capture = Capture::Current();
  Check(capture != nullptr, "capture: expected to be called while a program is recorded");
  return *capture;
}

// Runs `body(*arguments)` on abstract tensors like `operands`, densely stored.
Capture::Region RegionOf(const py::object& body, const std::vector<at::Tensor>& operands) {
  Capture capture(Recording().device());
  const py::list arguments = FreshArguments(capture, operands);
  Capture::Scope scope(&capture);
  const py::object result = body(*arguments);
  const bool many = PyTuple_Check(result.ptr()) || PyList_Check(result.ptr());
  return capture.FinishRegion(Unpacked(many ? result : py::object(py::make_tuple(result))));
}

py::list RecordCond(const py::object& predicate, const py::object& on_true, const py::object& on_false,
                    const py::list& operands) {
  const std::vector<at::Tensor> given = Unpacked(operands);
  std::vector<Capture::Region> regions;
  regions.push_back(RegionOf(on_true, given));
  regions.push_back(RegionOf(on_false, given));
  return Wrapped(Recording().ControlFlow("tpu::cond", {Unpacked(py::make_tuple(predicate)), given}, {true, false},
                                         std::move(regions)));
}

py::list RecordWhile(const py::object& condition, const py::object& body, const py::list& carried,
                     const py::list& others) {
  const std::vector<at::Tensor> moving = Unpacked(carried), fixed = Unpacked(others);
  std::vector<at::Tensor> given = moving;
  given.insert(given.end(), fixed.begin(), fixed.end());
  std::vector<Capture::Region> regions;
  regions.push_back(RegionOf(condition, given));
  regions.push_back(RegionOf(body, given));
  return Wrapped(Recording().ControlFlow("tpu::while", {moving, fixed}, {false, false}, std::move(regions)));
}

}  // namespace

void BindCompile(py::module_& m) {
  py::class_<Callable>(m, "CompiledGraph")
      .def(py::init<py::object, std::string, int>(), py::arg("capture"), py::arg("name"), py::arg("device"))
      .def("__call__", &Callable::Call)
      .def("time_launches", &Callable::TimeLaunches)
      .def("programs", &Describe);
  m.def("lower_function", &LowerFunction);
  m.def("record_cond", &RecordCond);
  m.def("record_while", &RecordWhile);
  m.def("save_random_state", [] { return Wrap(Recording().SaveRandomState()); });
  m.def("use_random_state", [](const py::object& state) {
    Recording().UseRandomState(state.is_none() ? at::Tensor() : THPVariable_Unpack(state.ptr()));
  });
  m.def("is_capturing", [] { return Capture::Current() != nullptr; });
}

}  // namespace torch_tpu
