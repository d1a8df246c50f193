// A program before it is text: inputs, calls in order, outputs. Strict mode builds graphs of one op with its view reads
// and writes; fused mode, compile and ahead of time build larger ones from the same calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tensor_type.h"
#include "program/builder.h"
#include "program/op_call.h"

namespace torch_tpu {

struct Node {
  OpCall call;               // operands name values of the graph
  int32_t first_result = 0;  // results are values first_result .. first_result + num_results
  int32_t num_results = 1;
  std::string location;  // the user's line, as MLIR spells it ("train.py":12:0); empty: not kept
};

// Values 0 .. inputs.size() are the inputs; then each node's results in order.
struct Graph {
  std::vector<TensorType> inputs;
  std::vector<Node> nodes;
  std::vector<int32_t> outputs;                      // value ids
  std::vector<std::pair<int32_t, int32_t>> aliases;  // (input, position in outputs): the memory may be reused

  // Appends a node and gives the id of its first result. All inputs come before the first call.
  int32_t Add(OpCall call, int32_t num_results = 1);
  int32_t num_values() const;
};

// StableHLO text plus the types of what goes in and out.
struct Program {
  std::string text;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;  // one per graph output; kInvalid: absent, and then not an output of the text
};

struct LowerOptions {
  Target target = Target::kCpu;
  Precision precision = Precision::kHighest;
  bool host_kernels = false;  // the program may call host kernels: only good where they are registered
};

// Adds the nodes of `graph` to the builder's current region, with `inputs` for its inputs, and gives its outputs.
Values Inline(Builder& b, const Graph& graph, const Values& inputs);

// A graph on its way to a program: what is appended to it in the meantime is emitted when it is asked for, and nothing
// twice. Emitting throws Error whose text starts with the op's name.
class Lowering {
 public:
  Lowering(const Graph& graph, const LowerOptions& options);
  // Emits the nodes that are new since the last call. The same graph, with its inputs.
  void Extend(const Graph& graph);
  // kInvalid: absent.
  TensorType type(int32_t value) const;
  // With the graph's outputs and aliases. Once, at the end.
  Program Finish(const Graph& graph);

 private:
  Builder builder_;
  Values values_;
  size_t emitted_ = 0;  // nodes
};

// All of the above in one go.
Program Lower(const Graph& graph, const LowerOptions& options);

}  // namespace torch_tpu
