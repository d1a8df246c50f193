// The function itself and its constants.
#include "program/builder.h"

#include <limits>

#include "program/test_cases.h"

namespace torch_tpu {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Builder, Constants) {
  RunCases({
      {"floats",
       {},
       [](Builder& b, const Values&) {
         return Values{b.Constant(DType::kFloat32, 0.1),      b.Constant(DType::kFloat32, -0.0, {2}),
                       b.Constant(DType::kFloat32, kNan),     b.Constant(DType::kFloat64, -kInf),
                       b.Constant(DType::kFloat32, 1e300),    b.Constant(DType::kFloat64, 1e-310),
                       b.Constant(DType::kFloat32, 3, {0, 2})};
       },
       {F32({}, {0.1}), F32({2}, {-0.0, -0.0}), F32({}, {kNan}), Of(DType::kFloat64, {}, {-kInf}), F32({}, {kInf}),
        Of(DType::kFloat64, {}, {1e-310}), F32({0, 2}, {})}},
      {"integers",
       {},
       [](Builder& b, const Values&) {
         return Values{b.Constant(DType::kInt32, -2.9),          b.ConstantInt(DType::kInt64, -5, {2}),
                       b.ConstantInt(DType::kBool, 2),           b.Constant(DType::kUInt64, 0x1p63),
                       b.ConstantInt(DType::kFloat32, 16777217), b.Constant(DType::kBool, kNan)};
       },
       {I32({}, {-2}), I64({2}, {-5, -5}), Bools({}, {1}), Of(DType::kUInt64, {}, {0x1p63}), F32({}, {16777216}),
        Bools({}, {1})}},
      {"lists",
       {},
       [](Builder& b, const Values&) {
         return Values{b.ConstantInts(DType::kInt32, {1, -2}), b.ConstantInts(DType::kInt64, {}),
                       b.ConstantInts(DType::kBool, {0, 3}), b.ConstantFloats(DType::kFloat32, {0.1, kInf}),
                       b.ConstantFloats(DType::kFloat32, {})};
       },
       {I32({2}, {1, -2}), I64({0}, {}), Bools({2}, {0, 1}), F32({2}, {0.1, kInf}), F32({0}, {})}},
      {"complex",
       {},
       [](Builder& b, const Values&) {
         return Values{b.ConstantComplex(DType::kComplex64, {0.1, -0.0}, {2}), b.Constant(DType::kComplex128, 3),
                       b.Zero(DType::kComplex64, {0}), b.One(DType::kComplex64)};
       },
       {C64({2}, {0.1, -0.0, 0.1, -0.0}), Of(DType::kComplex128, {}, {3, 0}), C64({0}, {}), C64({}, {1, 0})}},
      {"extremes",
       {},
       [](Builder& b, const Values&) {
         return Values{b.MinOf(DType::kFloat32), b.MaxOf(DType::kFloat32, {1}), b.MinOf(DType::kInt8),
                       b.MaxOf(DType::kInt8),    b.MinOf(DType::kInt64),        b.MaxOf(DType::kUInt16),
                       b.MinOf(DType::kUInt8),   b.MinOf(DType::kBool),         b.MaxOf(DType::kBool)};
       },
       {F32({}, {-kInf}), F32({1}, {kInf}), Of(DType::kInt8, {}, {-128}), Of(DType::kInt8, {}, {127}),
        I64({}, {-0x1p63}), Of(DType::kUInt16, {}, {65535}), Of(DType::kUInt8, {}, {0}), Bools({}, {0}),
        Bools({}, {1})}},
  });
}

// Each small float's constant must be what rounding to nearest even gives.
TEST(Builder, SmallFloatConstants) {
  struct Row {
    DType dtype;
    double value, expected;
  };
  const std::vector<Row> rows = {
      {DType::kFloat16, 0.1, 0.0999755859375},
      {DType::kFloat16, 65519, 65504},
      {DType::kFloat16, 65520, kInf},
      {DType::kFloat16, 0x1p-24, 0x1p-24},
      {DType::kFloat16, 0x1p-25, 0},
      {DType::kFloat16, 0x1.8p-25, 0x1p-24},
      {DType::kFloat16, -2049, -2048},
      {DType::kFloat16, 2051, 2052},
      {DType::kFloat16, kNan, kNan},
      {DType::kBFloat16, 0.1, 0.10009765625},
      {DType::kBFloat16, 257, 256},
      {DType::kBFloat16, 1e39, kInf},
      {DType::kBFloat16, 0x1p-133, 0x1p-133},
      {DType::kBFloat16, -kInf, -kInf},
      {DType::kFloat8E5M2, 1.1, 1},
      {DType::kFloat8E5M2, 57344, 57344},
      {DType::kFloat8E5M2, 1e9, kInf},
      {DType::kFloat8E4M3FN, 1.1, 1.125},
      {DType::kFloat8E4M3FN, -448, -448},
      {DType::kFloat8E4M3FN, 1e9, kNan},
      {DType::kFloat8E4M3FN, 0x1p-9, 0x1p-9},
      {DType::kFloat8E4M3FNUZ, 240, 240},
      {DType::kFloat8E4M3FNUZ, 1e9, kNan},
      {DType::kFloat8E4M3FNUZ, -0.0, 0},
      {DType::kFloat8E5M2FNUZ, 57344, 57344},
      {DType::kFloat8E5M2FNUZ, -3, -3},
  };
  std::vector<Case> cases;
  for (const Row& row : rows) {
    cases.push_back({Cat(Name(row.dtype), " ", row.value),
                     {},
                     [row](Builder& b, const Values&) {
                       return Values{b.Convert(b.Constant(row.dtype, row.value), DType::kFloat32)};
                     },
                     {F32({}, {row.expected})}});
  }
  RunCases(cases);
}

TEST(Builder, EqualConstantsAreOneValueWithinARegion) {
  Builder b;
  const Value one = b.One(DType::kFloat32);
  EXPECT_EQ(b.Constant(DType::kFloat32, 1).id(), one.id());
  EXPECT_NE(b.Constant(DType::kFloat64, 1).id(), one.id());
  EXPECT_NE(b.One(DType::kFloat32, {1}).id(), one.id());
  Value inner;
  b.If(
      b.Parameter({DType::kBool, {}}), [&] { return Values{inner = b.Constant(DType::kFloat32, 7)}; },
      [&] { return Values{b.Constant(DType::kFloat32, 7)}; });
  EXPECT_NE(b.Constant(DType::kFloat32, 7).id(), inner.id());
}

TEST(Builder, IdenticalProgramsGiveIdenticalText) {
  const auto make = [] {
    Builder b;
    const Value x = b.Parameter({DType::kFloat32, {2}});
    return b.Finish({b.Add(x, b.Constant(DType::kFloat32, 2, {2})), b.Reduce(x, Builder::Reducer::kAdd, {0})});
  };
  const std::string text = make();
  EXPECT_EQ(text, make());
  EXPECT_EQ(text, R"(module @main {
  func.func @main(%0: tensor<2xf32>) -> (tensor<2xf32>, tensor<f32>) {
    %1 = "stablehlo.constant"() <{value = dense<2.0> : tensor<2xf32>}> : () -> tensor<2xf32>
    %2 = "stablehlo.add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %3 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
    %7 = "stablehlo.reduce"(%0, %3) <{dimensions = array<i64: 0>}> ({
    ^bb0(%4: tensor<f32>, %5: tensor<f32>):
      %6 = "stablehlo.add"(%4, %5) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%6) : (tensor<f32>) -> ()
    }) : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    return %2, %7 : tensor<2xf32>, tensor<f32>
  }
}
)");
}

TEST(Builder, AliasedParameterIsDonated) {
  Builder b;
  const TensorType type{DType::kFloat32, {2}};
  const Value x = b.Parameter(type), y = b.Parameter(type);
  b.Alias(1, 0);
  const BufferPtr kept = Upload(F32({2}, {1, 2})), given = Upload(F32({2}, {10, 20}));
  const std::vector<BufferPtr> results = RunProgram(b.Finish({b.Add(x, y)}), {type}, {kept, given});
  ExpectArrayEq(Download(*results[0]), F32({2}, {11, 22}));
  EXPECT_TRUE(given->IsDeleted());
  EXPECT_FALSE(kept->IsDeleted());
}

TEST(Builder, ParametersAndNothingAsResults) {
  const std::vector<Array> got =
      Evaluate({F32({1}, {5})}, [](Builder&, const Values& v) { return Values{v[0], v[0]}; });
  ASSERT_EQ(got.size(), 2u);
  ExpectArrayEq(got[1], F32({1}, {5}));
  EXPECT_TRUE(Evaluate({}, [](Builder&, const Values&) { return Values{}; }).empty());
}

TEST(Builder, FailedRegionLeavesTheBuilderUsable) {
  Builder b;
  const Value x = b.Parameter({DType::kFloat32, {2}});
  EXPECT_THROW(
      b.ReduceMany({x}, {b.Zero(DType::kFloat32)}, {0}, [&](const Values&) -> Values { Fail(Code::kUnknown, "no"); }),
      Error);
  EXPECT_EQ(b.Finish({x}).find("reduce"), std::string::npos);
}

TEST(Builder, Refusals) {
  const TensorType f{DType::kFloat32, {2}}, g{DType::kFloat32, {3}};
  ExpectRefusals({
      {"constant: expected a value of i8 in [-128, 127], got 200",
       [](Builder& b) { b.ConstantInt(DType::kInt8, 200); }},
      {"constant: expected a value of ui8 in [0, 255], got -1", [](Builder& b) { b.Constant(DType::kUInt8, -1); }},
      {"constant: expected a value of i32, got nan", [](Builder& b) { b.Constant(DType::kInt32, kNan); }},
      {"constant: expected a complex type, got f32", [](Builder& b) { b.ConstantComplex(DType::kFloat32, {1, 2}); }},
      {"constant: expected sizes of 0 or more, got [-1]", [](Builder& b) { b.Zero(DType::kFloat32, {-1}); }},
      {"constant: expected a type with an order, got complex<f32>", [](Builder& b) { b.MinOf(DType::kComplex64); }},
      {"parameter: expected a valid element type, got none", [](Builder& b) { b.Parameter({DType::kInvalid, {}}); }},
      {"negate: expected a value of this builder, got one of another",
       [=](Builder& b) {
         Builder other;
         b.Parameter(f);
         b.Negate(other.Parameter(f));
       }},
      {"negate: expected a function under construction, got a finished one",
       [=](Builder& b) {
         const Value x = b.Parameter(f);
         b.Finish({x});
         b.Negate(x);
       }},
      {"alias: expected a parameter below 0, got 0", [](Builder& b) { b.Alias(0, 0); }},
      {"alias: expected a result without alias, got 0",
       [=](Builder& b) {
         b.Parameter(f);
         b.Parameter(f);
         b.Alias(0, 0);
         b.Alias(1, 0);
       }},
      {"alias: expected result 0 of type tensor<2xf32>, got tensor<3xf32>",
       [=](Builder& b) {
         b.Parameter(f);
         b.Alias(0, 0);
         b.Finish({b.Parameter(g)});
       }},
      {"alias: expected a result below 0, got 0",
       [=](Builder& b) {
         b.Parameter(f);
         b.Alias(0, 0);
         b.Finish({});
       }},
  });
}

}  // namespace
}  // namespace torch_tpu
