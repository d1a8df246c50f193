// Branches and loops whose bodies are graphs: what torch.cond and while_loop become in compiled programs.
#include "lowering/math.h"
#include "lowering/table.h"
#include "program/graph.h"

namespace torch_tpu {
namespace {

// Runs region `k` on `inputs`, with the region's own constants behind them. Constants of all regions follow each other
// at the end of the call's operands; argument `counts` says how many each has.
Values RunRegion(Builder& b, const Args& a, size_t k, Values inputs, size_t counts) {
  const Dims& own = a.ints(counts);
  size_t first = a.call().operands.size();
  for (size_t i = k; i < own.size(); ++i) first -= static_cast<size_t>(own[i]);
  for (int64_t i = 0; i < own[k]; ++i) inputs.push_back(a.operand(first + static_cast<size_t>(i)));
  return Inline(b, *a.call().regions.at(k), inputs);
}

Value Predicate(Builder& b, Value x) { return b.Convert(b.Reshape(x, {}), DType::kBool); }

// tpu::cond(Tensor predicate, Tensor[] operands, int[] constants) -> Tensor[], regions: true, false
Values EmitCond(Builder& b, const Args& a) {
  return b.If(
      Predicate(b, a.tensor(0)), [&] { return RunRegion(b, a, 0, a.tensors(1), 2); },
      [&] { return RunRegion(b, a, 1, a.tensors(1), 2); });
}

// tpu::while(Tensor[] carried, Tensor[] others, int[] constants) -> Tensor[], regions: condition, body; both take
// carried, then others.
Values EmitWhile(Builder& b, const Args& a) {
  auto with_others = [&](Values values) {
    for (const Value& other : a.tensors(1)) values.push_back(other);
    return values;
  };
  return b.While(
      a.tensors(0),
      [&](const Values& carried) { return Values{Predicate(b, RunRegion(b, a, 0, with_others(carried), 2).at(0))}; },
      [&](const Values& carried) { return RunRegion(b, a, 1, with_others(carried), 2); });
}

constexpr OpRow kRows[] = {
    {"tpu::cond", EmitCond, kInternal},
    {"tpu::while", EmitWhile, kInternal},
};

}  // namespace

std::span<const OpRow> ControlFlowRows() { return kRows; }

}  // namespace torch_tpu
