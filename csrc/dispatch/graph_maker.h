// From a walk's tensor uses to graph nodes: reads of views in front of an op, writes behind it.
#pragma once

#include <string>
#include <vector>

#include "dispatch/walk.h"
#include "program/graph.h"

namespace torch_tpu {

// What the program needs of a walk, copied so that the queue lock can be given back.
struct Plan {
  std::string key;
  std::vector<TensorType> inputs;
  std::vector<TensorUse> tensors;
  std::vector<DType> dtypes;  // per use
  std::vector<ViewSpec> specs;
  std::vector<size_t> nbytes;  // of the use's storage
  std::vector<ScalarUse> scalars;
  std::vector<ViewPlan> plans;
};

class GraphMaker {
 public:
  explicit GraphMaker(const Plan& plan);

  Graph& graph() { return graph_; }
  // The dense value of tensor use `u`; -1 when it is undefined.
  int32_t Read(size_t u);
  int32_t Uninitialized(DType dtype, const Dims& sizes);
  // Cast, broadcast, and laid out row-major in `order`.
  int32_t Store(int32_t value, DType dtype, const Dims& sizes, const Dims& order);
  // The new base value of the storage behind use `u` once `value` is written there. `current`: the base as written so
  // far, -1 when this is the first write.
  int32_t Write(size_t u, int32_t value, int32_t current);

 private:
  const Plan& plan_;
  Graph graph_;
};

// The type of a storage's value after a write that fills it.
TensorType BaseOfFill(const Plan& plan, size_t u);

}  // namespace torch_tpu
