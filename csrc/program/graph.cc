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
  nodes.push_back({std::move(call), first, num_results, {}});
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
  b.SetLocation(node.location.empty() ? std::string() : Cat("\"", name, "\"(", node.location, ")"));
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

// Emits the nodes of `graph` from `node` on; `values` are those before it.
void EmitFrom(Builder& b, const Graph& graph, size_t node, Values& values) {
  values.reserve(static_cast<size_t>(graph.num_values()));
  for (; node < graph.nodes.size(); ++node) {
    const Node& next = graph.nodes[node];
    Check(static_cast<size_t>(next.first_result) == values.size(), next.call.row->name,
          ": expected results to start at ", values.size(), ", got ", next.first_result);
    const Values results = Run(b, next, values);
    values.insert(values.end(), results.begin(), results.end());
  }
}

}  // namespace

Values Inline(Builder& b, const Graph& graph, const Values& inputs) {
  Check(inputs.size() == graph.inputs.size(), "graph: expected ", graph.inputs.size(), " inputs, got ", inputs.size());
  Values values = inputs;
  EmitFrom(b, graph, 0, values);
  Values outputs;
  for (int32_t id : graph.outputs) outputs.push_back(values.at(static_cast<size_t>(id)));
  return outputs;
}

Lowering::Lowering(const Graph& graph, const LowerOptions& options)
    : builder_(options.target, options.precision, options.host_kernels) {
  for (const TensorType& input : graph.inputs) values_.push_back(builder_.Parameter(input));
  Extend(graph);
}

void Lowering::Extend(const Graph& graph) {
  EmitFrom(builder_, graph, emitted_, values_);
  emitted_ = graph.nodes.size();
}

TensorType Lowering::type(int32_t value) const {
  Check(value >= 0 && static_cast<size_t>(value) < values_.size(), "graph: expected outputs among its ", values_.size(),
        " values, got ", value);
  return values_[value] ? values_[value].type() : TensorType{};
}

Program Lowering::Finish(const Graph& graph) {
  Extend(graph);
  Program program;
  program.inputs = graph.inputs;
  Values outputs;
  for (int32_t id : graph.outputs) {
    // An absent result (a gradient that was not asked for) keeps its place among the types and is no output of the
    // program.
    program.outputs.push_back(type(id));
    if (values_[id]) outputs.push_back(values_[id]);
  }
  for (const auto& [input, output] : graph.aliases) builder_.Alias(input, output);
  program.text = builder_.Finish(outputs);
  return program;
}

Program Lower(const Graph& graph, const LowerOptions& options) { return Lowering(graph, options).Finish(graph); }

}  // namespace torch_tpu
