#include "program/test_cases.h"

namespace torch_tpu {
namespace {

TEST(BuilderControl, Sort) {
  const auto less = [](Builder& b) {
    return [&b](const Values& v) { return Values{b.Compare(v[0], v[1], Direction::kLt)}; };
  };
  RunCases({
      {"one",
       {F32({2, 3}, {3, 1, 2, 6, 5, 4})},
       [&](Builder& b, const Values& v) { return b.Sort(v, 1, true, less(b)); },
       {F32({2, 3}, {1, 2, 3, 4, 5, 6})}},
      {"stable with indices",
       {I32({4}, {2, 1, 2, 1})},
       [&](Builder& b, const Values& v) { return b.Sort({v[0], b.Iota(DType::kInt64, {4}, 0)}, 0, true, less(b)); },
       {I32({4}, {1, 1, 2, 2}), I64({4}, {1, 3, 0, 2})}},
      {"nothing",
       {F32({0}, {})},
       [&](Builder& b, const Values& v) { return b.Sort(v, 0, false, less(b)); },
       {F32({0}, {})}},
  });
}

TEST(BuilderControl, Flow) {
  RunCases({
      {"while sees enclosing values",
       {I32({}, {0}), F32({2}, {1, 2})},
       [](Builder& b, const Values& v) {
         const Value end = b.ConstantInt(DType::kInt32, 5);
         return b.While(
             {v[0], b.Zero(DType::kFloat32, {2})},
             [&](const Values& s) { return Values{b.Compare(s[0], end, Direction::kLt)}; },
             [&](const Values& s) { return Values{b.Add(s[0], b.ConstantInt(DType::kInt32, 1)), b.Add(s[1], v[1])}; });
       },
       {I32({}, {5}), F32({2}, {5, 10})}},
      {"nested while and reduce",
       {F32({3}, {1, 2, 3})},
       [](Builder& b, const Values& v) {
         return b.While(
             {b.Zero(DType::kInt32), v[0]},
             [&](const Values& s) { return Values{b.Compare(s[0], b.ConstantInt(DType::kInt32, 2), Direction::kLt)}; },
             [&](const Values& s) {
               const Value sum = b.Reduce(s[1], Builder::Reducer::kAdd, {0});
               return Values{b.Add(s[0], b.One(DType::kInt32)), b.Add(s[1], b.BroadcastTo(sum, {3}))};
             });
       },
       {I32({}, {2}), F32({3}, {31, 32, 33})}},
      {"if",
       {Bools({2}, {1, 0}), F32({}, {3})},
       [](Builder& b, const Values& v) {
         Values out;
         for (int64_t i = 0; i < 2; ++i) {
           const Value p = b.Reshape(b.SliceDim(v[0], 0, i, i + 1), {});
           out.push_back(b.If(p, [&] { return Values{b.Negate(v[1])}; }, [&] { return Values{v[1]}; })[0]);
         }
         return out;
       },
       {F32({}, {-3}), F32({}, {3})}},
      {"case clamps to the last",
       {I32({}, {9}), F32({}, {3})},
       [](Builder& b, const Values& v) {
         return b.Case(v[0], {[&] { return Values{v[1], v[1]}; }, [&] { return Values{b.Negate(v[1]), v[1]}; }});
       },
       {F32({}, {-3}), F32({}, {3})}},
      {"barrier",
       {F32({}, {3}), I32({1}, {4})},
       [](Builder& b, const Values& v) { return b.OptimizationBarrier(v); },
       {F32({}, {3}), I32({1}, {4})}},
  });
}

TEST(BuilderControl, RandomBits) {
  for (RngAlgorithm algorithm : {RngAlgorithm::kPhilox, RngAlgorithm::kThreeFry}) {
    const auto draw = [&](double seed) {
      return Evaluate({Of(DType::kUInt64, {2}, {seed, 0})}, [&](Builder& b, const Values& v) {
        const auto [state, bits] = b.RngBitGenerator(v[0], algorithm, {DType::kUInt32, {4, 2}});
        const auto more = b.RngBitGenerator(state, algorithm, {DType::kUInt32, {4, 2}});
        return Values{state, bits, more.second};
      });
    };
    const std::vector<Array> one = draw(7), again = draw(7), other = draw(8);
    ASSERT_EQ(one.size(), 3u);
    EXPECT_EQ(one[0].type, (TensorType{DType::kUInt64, {2}}));
    EXPECT_EQ(one[1].values, again[1].values);
    EXPECT_NE(one[1].values, other[1].values);
    EXPECT_NE(one[1].values, one[2].values);
  }
}

TEST(BuilderControl, CustomCallIsAcceptedAsTypedCall) {
  Builder b;
  const Value x = b.Parameter({DType::kFloat32, {2}});
  const TensorType result{DType::kFloat32, {3}};
  const Values results = b.CustomCall("torch_tpu_no_such_handler", {x}, {result, result}, "{n = 1 : i64}", true);
  ASSERT_EQ(results.size(), 2u);
  try {
    RunProgram(b.Finish(results), {result, result}, {Upload(F32({2}, {1, 2}))});
    FAIL() << "the handler does not exist";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("torch_tpu_no_such_handler"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("parse"), std::string::npos) << error.what();
  }
}

// With one replica a collective moves nothing, but its text goes through the whole compiler.
TEST(BuilderCollectives, OneReplica) {
  const Builder::Groups self = {{0}};
  RunCases(
      {{"all",
        {F32({2}, {1, 2})},
        [&](Builder& b, const Values& v) {
          return Values{b.AllReduce(v[0], Builder::Reducer::kAdd, self),
                        b.AllReduce(v[0], Builder::Reducer::kMax, self, 1),
                        b.AllGather(v[0], 0, self),
                        b.AllGather(v[0], 0, self, 2),
                        b.ReduceScatter(v[0], Builder::Reducer::kAdd, 0, self),
                        b.ReduceScatter(v[0], Builder::Reducer::kAdd, 0, self, 3),
                        b.AllToAll(v[0], 0, 0, 1, self),
                        b.AllToAll(v[0], 0, 0, 1, self, 4),
                        b.CollectivePermute(v[0], {{0, 0}}),
                        b.CollectivePermute(v[0], {{0, 0}}, 5),
                        b.Convert(b.ReplicaId(), DType::kInt32)};
        },
        {F32({2}, {1, 2}), F32({2}, {1, 2}), F32({2}, {1, 2}), F32({2}, {1, 2}), F32({2}, {1, 2}), F32({2}, {1, 2}),
         F32({2}, {1, 2}), F32({2}, {1, 2}), F32({2}, {1, 2}), F32({2}, {1, 2}), I32({}, {0})}}});
}

TEST(BuilderCollectives, TwoReplicasCompile) {
  const Builder::Groups both = {{0, 1}};
  Builder b;
  const Value x = b.Parameter({DType::kFloat32, {4, 2}});
  const Values results = {b.AllReduce(x, Builder::Reducer::kAdd, both), b.AllGather(x, 1, both),
                          b.ReduceScatter(x, Builder::Reducer::kAdd, 0, both), b.AllToAll(x, 0, 1, 2, both),
                          b.CollectivePermute(x, {{0, 1}, {1, 0}})};
  EXPECT_EQ(results[1].dims(), (Dims{4, 4}));
  EXPECT_EQ(results[2].dims(), (Dims{2, 2}));
  EXPECT_EQ(results[3].dims(), (Dims{2, 4}));
  std::vector<TensorType> types;
  for (const Value& result : results) types.push_back(result.type());
  CompileOptions options;
  options.num_replicas = 2;
  EXPECT_EQ(TestClient().Compile(b.Finish(results), options, types)->num_outputs(), 5u);
}

TEST(BuilderControl, Refusals) {
  const TensorType f{DType::kFloat32, {4}}, p{DType::kBool, {}}, s{DType::kFloat32, {}}, i{DType::kInt32, {}};
  const auto same = [](const Values& v) { return v; };
  const Builder::Groups pair = {{0, 1}};
  ExpectRefusals({
      {"sort: expected a region that returns (tensor<i1>), got (tensor<f32>, tensor<f32>)",
       [=](Builder& b) { b.Sort({b.Parameter(f)}, 0, true, same); }},
      {"sort: expected at least one operand, got none", [=](Builder& b) { b.Sort({}, 0, true, same); }},
      {"while: expected a region that returns (tensor<i1>), got (tensor<f32>)",
       [=](Builder& b) { b.While({b.Parameter(s)}, same, same); }},
      {"while: expected a region that returns (tensor<i1>), got (tensor<f32>)",
       [=](Builder& b) {
         b.While({b.Parameter(p)}, same, [&](const Values&) { return Values{b.One(DType::kFloat32)}; });
       }},
      {"if: expected a 0-d bool, got tensor<f32>",
       [=](Builder& b) { b.If(b.Parameter(s), [] { return Values{}; }, {}); }},
      {"if: expected a region that returns (tensor<f32>), got ()",
       [=](Builder& b) {
         b.If(b.Parameter(p), [&] { return Values{b.One(DType::kFloat32)}; }, [] { return Values{}; });
       }},
      {"negate: expected a value that this region can see, got %2 of another region",
       [=](Builder& b) {
         Value inner;
         const Value predicate = b.Parameter(p);
         b.If(
             predicate, [&] { return Values{b.One(DType::kFloat32), inner = b.Negate(b.One(DType::kFloat32))}; },
             [&] { return Values{b.One(DType::kFloat32), b.Negate(inner)}; });
       }},
      {"case: expected a 0-d i32, got tensor<f32>", [=](Builder& b) { b.Case(b.Parameter(s), {}); }},
      {"case: expected at least one branch, got none", [=](Builder& b) { b.Case(b.Parameter(i), {}); }},
      {"rng_bit_generator: expected a state of tensor<2xui64>, got tensor<4xf32>",
       [=](Builder& b) { b.RngBitGenerator(b.Parameter(f), RngAlgorithm::kPhilox, {DType::kUInt32, {2}}); }},
      {"custom_call: expected a plain target name, got ", [=](Builder& b) { b.CustomCall("", {}, {}); }},
      {"all_reduce: expected at least one replica group, got none",
       [=](Builder& b) { b.AllReduce(b.Parameter(f), Builder::Reducer::kAdd, {}); }},
      {"all_reduce: expected groups of equal sizes, got 2 and 1",
       [=](Builder& b) { b.AllReduce(b.Parameter(f), Builder::Reducer::kAdd, {{0, 1}, {2}}); }},
      {"all_gather: expected ids of 0 or more, none twice, got 0",
       [=](Builder& b) { b.AllGather(b.Parameter(f), 0, {{0, 0}}); }},
      {"reduce_scatter: expected a multiple of 3 in dim 0, got tensor<4xf32>",
       [=](Builder& b) { b.ReduceScatter(b.Parameter(f), Builder::Reducer::kAdd, 0, {{0, 1, 2}}); }},
      {"all_to_all: expected a split into 2 parts, one for each of a group, got 4",
       [=](Builder& b) { b.AllToAll(b.Parameter(f), 0, 0, 4, pair); }},
      {"collective_permute: expected sources and targets of 0 or more, none twice, got 0 -> 2",
       [=](Builder& b) { b.CollectivePermute(b.Parameter(f), {{0, 1}, {0, 2}}); }},
  });
}

}  // namespace
}  // namespace torch_tpu
