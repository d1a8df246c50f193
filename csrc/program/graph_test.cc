#include "program/graph.h"

#include "program/op_row.h"
#include "program/test_cases.h"

namespace torch_tpu {
namespace {

const OpRow kAdd{"add.Tensor", [](Builder& b, const Args& a) { return Values{b.Add(a.tensor(0), a.tensor(1))}; },
                 kNoTraits};
const OpRow kBoth{"both", [](Builder& b, const Args& a) { return Values{b.Negate(a.tensor(0)), b.Abs(a.tensor(0))}; },
                  kNoTraits};
const OpRow kNamed{
    "named", [](Builder&, const Args&) -> Values { Fail(Code::kUnimplemented, "named: expected less, got more"); },
    kNoTraits};
const OpRow kForeign{"foreign", [](Builder&, const Args&) -> Values { throw std::out_of_range("at"); }, kNoTraits};

const TensorType kPair{DType::kFloat32, {2}};

OpCall Call(const OpRow& row, std::vector<int32_t> values) {
  OpCall call{&row, {}, {}};
  for (int32_t value : values) {
    Arg arg;
    arg.kind = Arg::Kind::kTensor;
    arg.first = static_cast<int32_t>(call.operands.size());
    call.args.push_back(arg);
    call.operands.push_back({value, false});
  }
  return call;
}

TEST(Graph, LowersCallsInOrder) {
  Graph graph;
  graph.inputs = {kPair, kPair};
  EXPECT_EQ(graph.num_values(), 2);
  const int32_t sum = graph.Add(Call(kAdd, {0, 1}));
  const int32_t both = graph.Add(Call(kBoth, {sum}), 2);
  EXPECT_EQ(sum, 2);
  EXPECT_EQ(both, 3);
  EXPECT_EQ(graph.num_values(), 5);
  graph.outputs = {both + 1, 0, both};
  graph.aliases = {{1, 2}};
  const Program program = Lower(graph, {});
  EXPECT_EQ(program.inputs, graph.inputs);
  ASSERT_EQ(program.outputs, (std::vector<TensorType>{kPair, kPair, kPair}));
  const BufferPtr given = Upload(F32({2}, {3, -5}));
  const auto results = RunProgram(program.text, program.outputs, {Upload(F32({2}, {1, 2})), given});
  ExpectArrayEq(Download(*results[0]), F32({2}, {4, 3}));
  ExpectArrayEq(Download(*results[1]), F32({2}, {1, 2}));
  ExpectArrayEq(Download(*results[2]), F32({2}, {-4, 3}));
  EXPECT_TRUE(given->IsDeleted());
  EXPECT_EQ(Lower(graph, {}).text, program.text);
}

std::string LowerError(const Graph& graph, Code code) {
  try {
    Lower(graph, {});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "no error";
}

TEST(Graph, ErrorsStartWithTheOpsName) {
  const auto one = [](OpCall call, int32_t results = 1) {
    Graph graph;
    graph.inputs = {kPair, {DType::kFloat32, {3}}};
    graph.Add(std::move(call), results);
    return graph;
  };
  EXPECT_EQ(LowerError(one(Call(kAdd, {0, 1})), Code::kInvalidArgument),
            "add.Tensor: add: expected operands of one type, got tensor<2xf32> and tensor<3xf32>");
  EXPECT_EQ(LowerError(one(Call(kAdd, {0, -1})), Code::kInvalidArgument),
            "add.Tensor: expected a tensor as argument 1, got none");
  EXPECT_EQ(LowerError(one(Call(kBoth, {0}), 3), Code::kInvalidArgument), "both: expected 3 results, got 2");
  EXPECT_EQ(LowerError(one(Call(kNamed, {})), Code::kUnimplemented), "named: expected less, got more");
  EXPECT_EQ(LowerError(one(Call(kForeign, {})), Code::kInternal), "foreign: at");
}

TEST(Graph, Refusals) {
  ExpectRefusals({
      {"add.Tensor: expected operands among the 1 values of the graph, got 1",
       [](Builder&) {
         Graph graph;
         graph.inputs = {kPair};
         graph.Add(Call(kAdd, {0, 1}));
       }},
      {"add.Tensor: expected all inputs of the graph before its calls, got one later",
       [](Builder&) {
         Graph graph;
         graph.inputs = {kPair};
         graph.Add(Call(kAdd, {0, 0}));
         graph.inputs.push_back(kPair);
         graph.Add(Call(kAdd, {0, 0}));
       }},
      {"graph: expected a call of an op of the table, got one without a row",
       [](Builder&) {
         Graph graph;
         graph.Add(OpCall());
       }},
      {"graph: expected outputs among its 1 values, got 1",
       [](Builder&) {
         Graph graph;
         graph.inputs = {kPair};
         graph.outputs = {1};
         Lower(graph, {});
       }},
      {"alias: expected result 0 of type tensor<2xf32>, got tensor<3xf32>",
       [](Builder&) {
         Graph graph;
         graph.inputs = {kPair, {DType::kFloat32, {3}}};
         graph.outputs = {1};
         graph.aliases = {{0, 0}};
         Lower(graph, {});
       }},
  });
}

}  // namespace
}  // namespace torch_tpu
