#include "program/graph.h"

#include <algorithm>

#include "base/error.h"
#include "program/op_row.h"

namespace torch_tpu {

int32_t Graph::num_values() const {
  return nodes.empty() ? static_cast<int32_t>(inputs.size()) : nodes.back().first_result + nodes.back().num_results;
}

int32_t Graph::Add(OpCall call, int32_t num_results) {
  Check(call.row != nullptr, "graph: expected a call of an op of the table, got one without a row");
  Check(num_results >= 0, call.row->name, ": expected 0 or more results, got ", num_results);
  Check(nodes.empty() || nodes.front().first_result == static_cast<int32_t>(inputs.size()), call.row->name,
        ": expected all inputs of the graph before its calls, got one later");
  const int32_t first = num_values();
  for (const Operand& operand : call.operands) {
    Check(operand.value >= -1 && operand.value < first, call.row->name, ": expected operands among the ", first,
          " values of the graph, got ", operand.value);
  }
  nodes.push_back({std::move(call), first, num_results});
  return first;
}

namespace {

Values Run(Builder& b, const Node& node, const Values& values) {
  Values operands;
  operands.reserve(node.call.operands.size());
  for (const Operand& operand : node.call.operands) {
    operands.push_back(operand.value < 0 ? Value() : values.at(operand.value));
  }
  const std::string_view name = node.call.row->name;
  try {
    Values results = node.call.row->emit(b, Args(node.call, std::move(operands)));
    Check(static_cast<int32_t>(results.size()) == node.num_results, name, ": expected ", node.num_results,
          " results, got ", results.size());
    return results;
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(name)) throw;
    throw Error(error.code(), Cat(name, ": ", error.what()));
  } catch (const std::exception& error) {
    throw Error(Code::kInternal, Cat(name, ": ", error.what()));
  }
}

}  // namespace

namespace {

// Every value of `graph`, inputs first.
Values EmitAll(Builder& b, const Graph& graph, const Values& inputs) {
  Values values = inputs;
  values.reserve(static_cast<size_t>(graph.num_values()));
  for (const Node& node : graph.nodes) {
    Check(static_cast<size_t>(node.first_result) == values.size(), node.call.row->name,
          ": expected results to start at ", values.size(), ", got ", node.first_result);
    const Values results = Run(b, node, values);
    values.insert(values.end(), results.begin(), results.end());
  }
  return values;
}

}  // namespace

Values Inline(Builder& b, const Graph& graph, const Values& inputs) {
  Check(inputs.size() == graph.inputs.size(), "graph: expected ", graph.inputs.size(), " inputs, got ", inputs.size());
  const Values values = EmitAll(b, graph, inputs);
  Values outputs;
  for (int32_t id : graph.outputs) outputs.push_back(values.at(static_cast<size_t>(id)));
  return outputs;
}

Program Lower(const Graph& graph, const LowerOptions& options) {
  Builder b(options.target, options.precision, options.host_kernels);
  Program program;
  program.inputs = graph.inputs;
  Values inputs;
  for (const TensorType& input : graph.inputs) inputs.push_back(b.Parameter(input));
  const Values values = EmitAll(b, graph, inputs);
  Values outputs;
  for (int32_t id : graph.outputs) {
    Check(id >= 0 && static_cast<size_t>(id) < values.size(), "graph: expected outputs among its ", values.size(),
          " values, got ", id);
    // An absent result (a gradient that was not asked for) keeps its place among the types and is no output of the
    // program.
    program.outputs.push_back(values[id] ? values[id].type() : TensorType{});
    if (values[id]) outputs.push_back(values[id]);
  }
  for (const auto& [input, output] : graph.aliases) b.Alias(input, output);
  program.text = b.Finish(outputs);
  return program;
}

}  // namespace torch_tpu
