// The table, and PyTorch's arithmetic (math.h) as a plugin computes it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "base/error.h"
#include "lowering/math.h"
#include "lowering/table.h"
#include "runtime/test_client.h"

namespace torch_tpu {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Runs `body` over one parameter holding `data`.
template <class In>
std::vector<BufferPtr> RunOn(const std::vector<In>& data, const TensorType& type,
                             const std::function<Values(Builder&, Value)>& body) {
  Builder b;
  Values results = body(b, b.Parameter(type));
  std::vector<TensorType> types;
  for (const Value& result : results) types.push_back(result.type());
  Client& client = TestClient();
  BufferPtr argument = client.FromHost(client.devices()[0].get(), data.data(), type);
  return RunProgram(b.Finish(results), types, {argument});
}

template <class Out, class In>
std::vector<Out> CastTo(const std::vector<In>& data, DType from, DType to) {
  auto results = RunOn(data, {from, {static_cast<int64_t>(data.size())}},
                       [&](Builder& b, Value x) -> Values { return {Cast(b, x, to)}; });
  return ReadBack<Out>(*results[0]);
}

// A call with one argument per entry: a tensor of a type, or a number of a category (an operand, or part of the
// program).
struct Given {
  TensorType type;
  bool number = false, wrapped = false, constant = false;
};

DType ResultOf(const std::vector<Given>& given) {
  Builder b;
  OpCall call;
  Values operands;
  std::vector<size_t> positions;
  for (const Given& g : given) {
    Arg arg;
    arg.kind = g.constant ? Arg::Kind::kConstant : g.number ? Arg::Kind::kScalar : Arg::Kind::kTensor;
    arg.dtype = g.type.dtype;
    arg.first = static_cast<int32_t>(operands.size());
    arg.count = 1;
    if (g.constant) {
      arg.floats = {1.0};
    } else {
      call.operands.push_back({arg.first, g.wrapped});
      operands.push_back(b.Parameter(g.type));
    }
    positions.push_back(call.args.size());
    call.args.push_back(arg);
  }
  return ResultType(Args(call, operands), positions);
}

Given Tensor(DType dtype) { return {{dtype, {2}}}; }
Given ZeroDim(DType dtype) { return {{dtype, {}}}; }
Given Number(DType category) { return {{category, {}}, true}; }
Given Constant(DType category) { return {{category, {}}, true, false, true}; }

TEST(Table, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const OpRow& row : AllRows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(FindRow(row.name), &row);
    EXPECT_NE(row.emit, nullptr) << row.name;
  }
  EXPECT_EQ(FindRow("no_such_op"), nullptr);
}

TEST(Promotion, OfTwoTypes) {
  EXPECT_EQ(PromoteTypes(DType::kBool, DType::kInt8), DType::kInt8);
  EXPECT_EQ(PromoteTypes(DType::kUInt8, DType::kInt8), DType::kInt16);
  EXPECT_EQ(PromoteTypes(DType::kUInt8, DType::kInt32), DType::kInt32);
  EXPECT_EQ(PromoteTypes(DType::kInt64, DType::kFloat16), DType::kFloat16);
  EXPECT_EQ(PromoteTypes(DType::kFloat16, DType::kBFloat16), DType::kFloat32);
  EXPECT_EQ(PromoteTypes(DType::kFloat64, DType::kComplex64), DType::kComplex128);
  EXPECT_EQ(PromoteTypes(DType::kInt64, DType::kComplex64), DType::kComplex64);
  EXPECT_EQ(PromoteTypes(DType::kUInt16, DType::kFloat32), DType::kFloat32);
  EXPECT_THROW(PromoteTypes(DType::kUInt16, DType::kInt64), Error);
  EXPECT_THROW(PromoteTypes(DType::kFloat8E5M2, DType::kFloat32), Error);
}

TEST(Promotion, DimsOutweighZeroDimsOutweighNumbers) {
  EXPECT_EQ(ResultOf({Tensor(DType::kBFloat16), ZeroDim(DType::kFloat64)}), DType::kBFloat16);
  EXPECT_EQ(ResultOf({Tensor(DType::kInt32), ZeroDim(DType::kInt64)}), DType::kInt32);
  EXPECT_EQ(ResultOf({Tensor(DType::kInt32), ZeroDim(DType::kFloat64)}), DType::kFloat64);
  EXPECT_EQ(ResultOf({ZeroDim(DType::kInt32), Number(DType::kInt64)}), DType::kInt32);
  EXPECT_EQ(ResultOf({Tensor(DType::kInt64), Number(DType::kFloat64)}), DType::kFloat32);
  EXPECT_EQ(ResultOf({Tensor(DType::kInt64), Constant(DType::kFloat64)}), DType::kFloat32);
  EXPECT_EQ(ResultOf({Tensor(DType::kUInt8), Constant(DType::kInt64)}), DType::kUInt8);
  EXPECT_EQ(ResultOf({Tensor(DType::kBool), Number(DType::kInt64)}), DType::kInt64);
  EXPECT_EQ(ResultOf({Tensor(DType::kFloat64), Number(DType::kComplex128)}), DType::kComplex128);
  Given marked = ZeroDim(DType::kFloat64);
  marked.wrapped = true;
  EXPECT_EQ(ResultOf({ZeroDim(DType::kFloat32), marked}), DType::kFloat32);
}

TEST(Broadcasting, ShapesAndTheirError) {
  EXPECT_EQ(BroadcastShapes({{2, 1, 3}, {4, 1}, {}}), (Dims{2, 4, 3}));
  EXPECT_EQ(BroadcastShapes({{0, 1}, {1, 5}}), (Dims{0, 5}));
  try {
    BroadcastShapes({{2, 3}, {2, 4}});
    FAIL() << "dims 3 and 4 went together";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1");
  }
}

TEST(DimNumbers, WrapAndRefuse) {
  EXPECT_EQ(WrapDim(-1, 3), 2);
  EXPECT_EQ(WrapDim(0, 0), 0);
  EXPECT_EQ(WrapDims({-1, 0}, 3), (Dims{0, 2}));
  EXPECT_EQ(WrapDims({}, 2), (Dims{0, 1}));
  EXPECT_EQ(WrapDims({-1}, 0), Dims{});
  try {
    WrapDim(3, 2);
    FAIL() << "dim 3 of 2 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kOutOfRange);
    EXPECT_STREQ(error.what(), "Dimension out of range (expected to be in range of [-2, 1], but got 3)");
  }
}

TEST(Casting, FloatsTruncateAndWrapAsOnX86) {
  const std::vector<float> x = {-1.5f, 300.7f, -300.7f, 3e9f, 1e19f, kNan, kInf};
  EXPECT_EQ(CastTo<int8_t>(x, DType::kFloat32, DType::kInt8), (std::vector<int8_t>{-1, 44, -44, 0, 0, 0, 0}));
  EXPECT_EQ(CastTo<uint8_t>(x, DType::kFloat32, DType::kUInt8), (std::vector<uint8_t>{255, 44, 212, 0, 0, 0, 0}));
  const int32_t low = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(CastTo<int32_t>(x, DType::kFloat32, DType::kInt32),
            (std::vector<int32_t>{-1, 300, -300, low, low, low, low}));
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(CastTo<int64_t>(x, DType::kFloat32, DType::kInt64),
            (std::vector<int64_t>{-1, 300, -300, 3000000000, lowest, lowest, lowest}));
  EXPECT_EQ(CastTo<uint8_t>(x, DType::kFloat32, DType::kBool), (std::vector<uint8_t>{1, 1, 1, 1, 1, 1, 1}));
}

TEST(Casting, IntegersWrapAndComplexDropsItsImaginaryPart) {
  EXPECT_EQ(CastTo<int8_t>(std::vector<int32_t>{200, -129, 5}, DType::kInt32, DType::kInt8),
            (std::vector<int8_t>{-56, 127, 5}));
  const std::vector<float> pairs = {1.5f, 2.0f, 0.0f, 3.0f};
  auto results = RunOn(pairs, {DType::kComplex64, {2}}, [](Builder& b, Value x) -> Values {
    return {Cast(b, x, DType::kInt32), Cast(b, x, DType::kBool)};
  });
  EXPECT_EQ(ReadBack<int32_t>(*results[0]), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(ReadBack<uint8_t>(*results[1]), (std::vector<uint8_t>{1, 1}));
}

TEST(Reductions, NanWinsAndTheFirstOfEqualsIsTaken) {
  const std::vector<float> x = {1, 7, 7, -2, 3, kNan, 9, kNan, -kInf, -kInf, -kInf, -kInf};
  auto results = RunOn(x, {DType::kFloat32, {3, 4}}, [](Builder& b, Value v) -> Values {
    auto [largest, at] = ArgReduce(b, v, 1, true);
    auto [smallest, low] = ArgReduce(b, v, -1, false);
    return {largest, at, smallest, low, MaxNan(b, largest, smallest)};
  });
  const auto largest = ReadBack<float>(*results[0]), smallest = ReadBack<float>(*results[2]);
  EXPECT_EQ(largest[0], 7);
  EXPECT_TRUE(std::isnan(largest[1]) && std::isnan(smallest[1]));
  EXPECT_EQ(largest[2], -kInf);
  EXPECT_EQ(smallest[0], -2);
  EXPECT_EQ(ReadBack<int64_t>(*results[1]), (std::vector<int64_t>{1, 1, 0}));
  EXPECT_EQ(ReadBack<int64_t>(*results[3]), (std::vector<int64_t>{3, 1, 0}));
  const auto both = ReadBack<float>(*results[4]);
  EXPECT_EQ(both[0], 7);
  EXPECT_TRUE(std::isnan(both[1]));
}

TEST(Reductions, ShortFloatsAreSummedInFloat32) {
  const std::vector<uint16_t> ones(4096, 0x3f80);  // 4096 times bfloat16 1: a bfloat16 sum would stop at 256
  auto results =
      RunOn(ones, {DType::kBFloat16, {4096}}, [](Builder& b, Value x) -> Values { return {Sum(b, x, {0})}; });
  EXPECT_EQ(results[0]->type().dtype, DType::kBFloat16);
  EXPECT_EQ(ReadBack<uint16_t>(*results[0]), (std::vector<uint16_t>{0x4580}));
}

TEST(Contractions, IntegersAreExactAndBoolMeansAny) {
  const std::vector<int64_t> x = {int64_t{1} << 40, 3, 5, int64_t{1} << 41};
  auto results = RunOn(x, {DType::kInt64, {2, 2}}, [](Builder& b, Value v) -> Values {
    Value bits = Cast(b, AddC(b, v, -3), DType::kBool);
    return {MatMul2d(b, v, b.One(DType::kInt64, {2, 1})), MatMul2d(b, bits, bits)};
  });
  EXPECT_EQ(ReadBack<int64_t>(*results[0]), (std::vector<int64_t>{(int64_t{1} << 40) + 3, (int64_t{1} << 41) + 5}));
  EXPECT_EQ(ReadBack<uint8_t>(*results[1]), (std::vector<uint8_t>{1, 0, 1, 1}));
}

TEST(Targets, MaximumIsPlainWhereItKeepsNan) {
  for (Target target : {Target::kCpu, Target::kTpu}) {
    Builder b(target);
    Value x = b.Parameter({DType::kFloat32, {4}});
    const std::string text = b.Finish({MaxNan(b, x, x)});
    EXPECT_EQ(text.find("stablehlo.maximum") != std::string::npos, target == Target::kTpu) << text;
  }
}

}  // namespace
}  // namespace torch_tpu
