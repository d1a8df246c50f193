// Sorting, control flow, random bits and calls.
#include "program/builder_impl.h"

namespace torch_tpu {

Values Builder::Sort(const Values& xs, int64_t dim, bool stable, const Body& less) {
  impl_->Use("sort", xs);
  Check(!xs.empty(), "sort: expected at least one operand, got none");
  ExpectDims("sort", "dims", {dim}, xs[0].rank());
  std::vector<TensorType> arguments;
  for (const Value& x : xs) {
    Check(x.dims() == xs[0].dims(), "sort: expected operands of equal dims, got ", ToString(xs[0].dims()), " and ",
          ToString(x.dims()));
    arguments.insert(arguments.end(), 2, TensorType{x.dtype(), {}});
  }
  const std::string region = impl_->TypedRegion("sort", arguments, true, less, {{DType::kBool, {}}});
  return impl_->EmitMany("sort", xs, TypesOf(xs), Cat("dimension = ", dim, " : i64, is_stable = ", Bool(stable)),
                         {region});
}

Values Builder::While(const Values& init, const Body& condition, const Body& body) {
  impl_->Use("while", init);
  const std::vector<TensorType> types = TypesOf(init);
  const std::string test = impl_->TypedRegion("while", types, false, condition, {{DType::kBool, {}}});
  const std::string step = impl_->TypedRegion("while", types, false, body, types);
  return impl_->EmitMany("while", init, types, {}, {test, step});
}

Values Builder::If(Value predicate, const std::function<Values()>& on_true, const std::function<Values()>& on_false) {
  impl_->Use("if", {predicate});
  Check(predicate.type() == TensorType{DType::kBool, {}}, "if: expected a 0-d bool, got ", predicate.type().ToString());
  std::vector<TensorType> types;
  const std::string first = impl_->Region("if", {}, false, [&](const Values&) { return on_true(); }, &types);
  const std::string second = impl_->TypedRegion("if", {}, false, [&](const Values&) { return on_false(); }, types);
  return impl_->EmitMany("if", {predicate}, types, {}, {first, second});
}

Values Builder::Case(Value index, const std::vector<std::function<Values()>>& branches) {
  impl_->Use("case", {index});
  Check(index.type() == TensorType{DType::kInt32, {}}, "case: expected a 0-d i32, got ", index.type().ToString());
  Check(!branches.empty(), "case: expected at least one branch, got none");
  std::vector<TensorType> types;
  std::vector<std::string> regions;
  for (const auto& branch : branches) {
    const Body body = [&](const Values&) { return branch(); };
    regions.push_back(regions.empty() ? impl_->Region("case", {}, false, body, &types)
                                      : impl_->TypedRegion("case", {}, false, body, types));
  }
  return impl_->EmitMany("case", {index}, types, {}, regions);
}

std::pair<Value, Value> Builder::RngBitGenerator(Value state, RngAlgorithm algorithm, const TensorType& bits) {
  constexpr std::string_view kOp = "rng_bit_generator";
  impl_->Use(kOp, {state});
  Check(state.type() == TensorType{DType::kUInt64, {2}}, kOp, ": expected a state of tensor<2xui64>, got ",
        state.type().ToString());
  Check(IsInteger(bits.dtype), kOp, ": expected bits of an integer type, got ", bits.ToString());
  ExpectSizes(kOp, bits.dims);
  const std::string_view name = algorithm == RngAlgorithm::kPhilox ? "PHILOX" : "THREE_FRY";
  const Values results =
      impl_->EmitMany(kOp, {state}, {state.type(), bits}, Cat("rng_algorithm = #stablehlo<rng_algorithm ", name, ">"));
  return {results[0], results[1]};
}

Values Builder::CustomCall(std::string_view target, const Values& operands, const std::vector<TensorType>& results,
                           std::string_view attributes, bool has_side_effect) {
  impl_->Use("custom_call", operands);
  Check(!target.empty() && target.find_first_of("\"\\\n") == std::string_view::npos,
        "custom_call: expected a plain target name, got ", target);
  for (const TensorType& type : results) ExpectSizes("custom_call", type.dims);
  return impl_->EmitMany("custom_call", operands, results,
                         Cat("call_target_name = \"", target, "\", has_side_effect = ", Bool(has_side_effect),
                             ", api_version = 4 : i32, backend_config = ", attributes));
}

Values Builder::OptimizationBarrier(const Values& xs) {
  impl_->Use("optimization_barrier", xs);
  if (xs.empty()) return {};
  return impl_->EmitMany("optimization_barrier", xs, TypesOf(xs));
}

}  // namespace torch_tpu
