#include "dispatch/graph_maker.h"

#include <c10/util/Exception.h>

#include "dispatch/tensors.h"
#include "lowering/table.h"

namespace torch_tpu {
namespace {

const OpRow& Row(const char* name) {
  const OpRow* row = FindRow(name);
  TORCH_INTERNAL_ASSERT(row != nullptr, name);
  return *row;
}

Arg TensorArg(OpCall& call, int32_t value) {
  Arg arg;
  if (value < 0) return arg;
  arg.kind = Arg::Kind::kTensor;
  arg.first = static_cast<int32_t>(call.operands.size());
  arg.count = 1;
  call.operands.push_back({value, false});
  return arg;
}

Arg IntsArg(Dims ints) {
  Arg arg;
  arg.kind = Arg::Kind::kInts;
  arg.ints = std::move(ints);
  return arg;
}

Arg DTypeArg(DType dtype) {
  Arg arg;
  arg.kind = Arg::Kind::kDType;
  arg.dtype = dtype;
  return arg;
}

}  // namespace

GraphMaker::GraphMaker(const Plan& plan) : plan_(plan) { graph_.inputs = plan.inputs; }

// The dense value of tensor use `u`.
int32_t GraphMaker::Read(size_t u) {
  const TensorUse& use = plan_.tensors[u];
  if (use.undefined) return -1;
  if (use.context == nullptr) return use.input;
  if (use.input < 0) return Uninitialized(plan_.dtypes[u], plan_.specs[u].sizes);
  if (use.plan < 0) return use.input;
  OpCall call;
  call.row = &Row("tpu::view_read");
  call.args = {TensorArg(call, use.input), TensorArg(call, use.starts), IntsArg(plan_.plans[use.plan].Encode())};
  return graph_.Add(std::move(call));
}

int32_t GraphMaker::Uninitialized(DType dtype, const Dims& sizes) {
  OpCall call;
  call.row = &Row("tpu::uninitialized");
  call.args = {DTypeArg(dtype), IntsArg(sizes)};
  return graph_.Add(std::move(call));
}

// Cast, broadcast, and laid out row-major in `order`.
int32_t GraphMaker::Store(int32_t value, DType dtype, const Dims& sizes, const Dims& order) {
  OpCall call;
  call.row = &Row("tpu::store");
  call.args = {TensorArg(call, value), DTypeArg(dtype), IntsArg(sizes), IntsArg(order)};
  return graph_.Add(std::move(call));
}

// The new base value of the storage behind use `u` once `value` is written there.
int32_t GraphMaker::Write(size_t u, int32_t value, int32_t current) {
  const TensorUse& use = plan_.tensors[u];
  const ViewSpec& spec = plan_.specs[u];
  if (use.fills) {
    const std::optional<Dims> order = DenseOrder(spec.sizes, spec.strides);
    TORCH_INTERNAL_ASSERT(order.has_value());
    return Store(value, plan_.dtypes[u], spec.sizes, *order);
  }
  Dims order(spec.sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  const int32_t update = Store(value, plan_.dtypes[u], spec.sizes, order);
  if (current < 0) {
    current = use.input >= 0
                  ? use.input
                  : Uninitialized(plan_.dtypes[u], {static_cast<int64_t>(plan_.nbytes[u] / ItemSize(plan_.dtypes[u]))});
  }
  OpCall call;
  call.row = &Row("tpu::view_write");
  const ViewPlan plan = use.plan >= 0 ? plan_.plans[use.plan] : SolveView(plan_.inputs.at(use.input), spec);
  call.args = {TensorArg(call, current), TensorArg(call, use.starts), IntsArg(plan.Encode())};
  call.args.push_back(TensorArg(call, update));
  return graph_.Add(std::move(call));
}

TensorType BaseOfFill(const Plan& plan, size_t u) {
  const ViewSpec& spec = plan.specs[u];
  const std::optional<Dims> order = DenseOrder(spec.sizes, spec.strides);
  TensorType type{plan.dtypes[u], {}};
  for (int64_t d : order.value()) type.dims.push_back(spec.sizes[d]);
  return type;
}

}  // namespace torch_tpu
