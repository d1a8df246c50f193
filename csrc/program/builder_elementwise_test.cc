#include <limits>

#include "program/test_cases.h"

namespace torch_tpu {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using UnaryFn = Value (Builder::*)(Value);
using BinaryFn = Value (Builder::*)(Value, Value);

Case One(std::string name, UnaryFn fn, Array x, Array expected) {
  return {std::move(name),
          {std::move(x)},
          [fn](Builder& b, const Values& v) { return Values{(b.*fn)(v[0])}; },
          {std::move(expected)}};
}

Case Two(std::string name, BinaryFn fn, Array x, Array y, Array expected) {
  return {std::move(name),
          {std::move(x), std::move(y)},
          [fn](Builder& b, const Values& v) { return Values{(b.*fn)(v[0], v[1])}; },
          {std::move(expected)}};
}

TEST(BuilderElementwise, OneOperand) {
  RunCases({
      One("abs", &Builder::Abs, F32({3}, {-2, 3, -kInf}), F32({3}, {2, 3, kInf})),
      One("abs int", &Builder::Abs, I32({2}, {-2, 3}), I32({2}, {2, 3})),
      One("abs unsigned", &Builder::Abs, Of(DType::kUInt8, {2}, {200, 3}), Of(DType::kUInt8, {2}, {200, 3})),
      One("abs complex", &Builder::Abs, C64({1}, {3, 4}), F32({1}, {5})),
      One("negate", &Builder::Negate, F32({2}, {1, -2}), F32({2}, {-1, 2})),
      One("sign", &Builder::Sign, F32({3}, {-5, 0, 7}), F32({3}, {-1, 0, 1})),
      One("exp", &Builder::Exp, F32({2}, {0, 1}), F32({2}, {1, 2.718281828})),
      One("expm1", &Builder::Expm1, F32({2}, {1e-6, 1}), F32({2}, {1.0000005e-6, 1.718281828})),
      One("log", &Builder::Log, F32({3}, {1, 0, -1}), F32({3}, {0, -kInf, kNan})),
      One("log1p", &Builder::Log1p, F32({2}, {0, 1}), F32({2}, {0, 0.6931471806})),
      One("sqrt", &Builder::Sqrt, F32({3}, {4, 9, -1}), F32({3}, {2, 3, kNan})),
      One("rsqrt", &Builder::Rsqrt, F32({2}, {4, 0.25}), F32({2}, {0.5, 2})),
      One("cbrt", &Builder::Cbrt, F32({2}, {8, -27}), F32({2}, {2, -3})),
      One("logistic", &Builder::Logistic, F32({2}, {0, 2}), F32({2}, {0.5, 0.880797078})),
      One("sine", &Builder::Sine, F32({2}, {0, 1}), F32({2}, {0, 0.8414709848})),
      One("cosine", &Builder::Cosine, F32({2}, {0, 1}), F32({2}, {1, 0.5403023059})),
      One("tan", &Builder::Tan, F32({1}, {1}), F32({1}, {1.5574077247})),
      One("tanh", &Builder::Tanh, F32({2}, {0, 1}), F32({2}, {0, 0.761594156})),
      One("tanh complex", &Builder::Tanh, C64({1}, {0.5, 0}), C64({1}, {0.4621171573, 0})),
      One("ceil", &Builder::Ceil, F32({2}, {1.2, -1.2}), F32({2}, {2, -1})),
      One("floor", &Builder::Floor, F32({2}, {1.2, -1.2}), F32({2}, {1, -2})),
      One("round even", &Builder::RoundNearestEven, F32({3}, {0.5, 1.5, -2.5}), F32({3}, {0, 2, -2})),
      One("round away", &Builder::RoundNearestAfz, F32({3}, {0.5, 1.5, -2.5}), F32({3}, {1, 2, -3})),
      One("is_finite", &Builder::IsFinite, F32({3}, {1, kInf, kNan}), Bools({3}, {1, 0, 0})),
      One("not bool", &Builder::Not, Bools({2}, {1, 0}), Bools({2}, {0, 1})),
      One("not int", &Builder::Not, I32({2}, {0, 5}), I32({2}, {-1, -6})),
      One("popcnt", &Builder::Popcnt, I32({2}, {7, -1}), I32({2}, {3, 32})),
      One("clz", &Builder::CountLeadingZeros, I32({2}, {1, 0}), I32({2}, {31, 32})),
      One("real", &Builder::Real, C64({1}, {3, 4}), F32({1}, {3})),
      One("real of float", &Builder::Real, F32({1}, {3}), F32({1}, {3})),
      One("imag", &Builder::Imag, C64({1}, {3, 4}), F32({1}, {4})),
      One("imag of float", &Builder::Imag, F32({1}, {3}), F32({1}, {0})),
      One("empty", &Builder::Exp, F32({0, 3}, {}), F32({0, 3}, {})),
      {"reduce_precision",
       {F32({1}, {1.001})},
       [](Builder& b, const Values& v) { return Values{b.ReducePrecision(v[0], 8, 7)}; },
       {F32({1}, {1})}},
  });
}

TEST(BuilderElementwise, TwoOperands) {
  RunCases({
      Two("add", &Builder::Add, F32({2}, {1, 2}), F32({2}, {3, -2}), F32({2}, {4, 0})),
      Two("add wraps", &Builder::Add, Of(DType::kInt8, {1}, {127}), Of(DType::kInt8, {1}, {1}),
          Of(DType::kInt8, {1}, {-128})),
      Two("add bool is or", &Builder::Add, Bools({3}, {1, 1, 0}), Bools({3}, {1, 0, 0}), Bools({3}, {1, 1, 0})),
      Two("subtract", &Builder::Subtract, F32({2}, {1, 2}), F32({2}, {3, -2}), F32({2}, {-2, 4})),
      Two("multiply", &Builder::Multiply, F32({2}, {1, 2}), F32({2}, {3, -2}), F32({2}, {3, -4})),
      Two("multiply bool is and", &Builder::Multiply, Bools({2}, {1, 1}), Bools({2}, {1, 0}), Bools({2}, {1, 0})),
      Two("multiply complex", &Builder::Multiply, C64({1}, {1, 2}), C64({1}, {3, 4}), C64({1}, {-5, 10})),
      Two("divide", &Builder::Divide, F32({2}, {1, -1}), F32({2}, {4, 0}), F32({2}, {0.25, -kInf})),
      Two("divide truncates", &Builder::Divide, I32({2}, {-7, 7}), I32({2}, {2, 2}), I32({2}, {-3, 3})),
      Two("remainder", &Builder::Remainder, I32({2}, {-7, 7}), I32({2}, {4, -4}), I32({2}, {-3, 3})),
      Two("remainder float", &Builder::Remainder, F32({1}, {-7.5}), F32({1}, {2}), F32({1}, {-1.5})),
      Two("maximum", &Builder::Maximum, F32({2}, {1, kNan}), F32({2}, {3, 1}), F32({2}, {3, kNan})),
      Two("minimum", &Builder::Minimum, F32({2}, {1, 5}), F32({2}, {3, kNan}), F32({2}, {1, kNan})),
      Two("maximum bool", &Builder::Maximum, Bools({2}, {1, 0}), Bools({2}, {0, 0}), Bools({2}, {1, 0})),
      Two("power", &Builder::Power, F32({1}, {2}), F32({1}, {10}), F32({1}, {1024})),
      Two("power int", &Builder::Power, I32({1}, {3}), I32({1}, {4}), I32({1}, {81})),
      Two("atan2", &Builder::Atan2, F32({1}, {1}), F32({1}, {-1}), F32({1}, {2.3561944902})),
      Two("and", &Builder::And, I32({1}, {12}), I32({1}, {10}), I32({1}, {8})),
      Two("or", &Builder::Or, I32({1}, {12}), I32({1}, {10}), I32({1}, {14})),
      Two("xor", &Builder::Xor, Bools({2}, {1, 0}), Bools({2}, {1, 1}), Bools({2}, {0, 1})),
      Two("shift_left", &Builder::ShiftLeft, I32({1}, {3}), I32({1}, {4}), I32({1}, {48})),
      Two("shift_right_arithmetic", &Builder::ShiftRightArithmetic, I32({1}, {-8}), I32({1}, {1}), I32({1}, {-4})),
      Two("shift_right_logical", &Builder::ShiftRightLogical, I32({1}, {-1}), I32({1}, {28}), I32({1}, {15})),
      Two("complex", &Builder::Complex, F32({1}, {3}), F32({1}, {4}), C64({1}, {3, 4})),
  });
}

TEST(BuilderElementwise, Comparisons) {
  const auto compare = [](std::string name, Direction direction, Array x, Array y, std::vector<double> expected,
                          bool total = false) {
    const Dims dims = x.type.dims;
    return Case{std::move(name),
                {std::move(x), std::move(y)},
                [direction, total](Builder& b, const Values& v) {
                  return Values{total ? b.CompareTotalOrder(v[0], v[1], direction) : b.Compare(v[0], v[1], direction)};
                },
                {Bools(dims, std::move(expected))}};
  };
  const Array x = F32({3}, {1, 2, kNan}), y = F32({3}, {2, 2, kNan});
  const DType u8 = DType::kUInt8;
  RunCases({
      compare("eq", Direction::kEq, x, y, {0, 1, 0}),
      compare("ne", Direction::kNe, x, y, {1, 0, 1}),
      compare("lt", Direction::kLt, x, y, {1, 0, 0}),
      compare("le", Direction::kLe, x, y, {1, 1, 0}),
      compare("gt", Direction::kGt, x, y, {0, 0, 0}),
      compare("ge", Direction::kGe, x, y, {0, 1, 0}),
      compare("signed", Direction::kLt, I32({1}, {-1}), I32({1}, {1}), {1}),
      compare("unsigned", Direction::kGt, Of(u8, {1}, {255}), Of(u8, {1}, {1}), {1}),
      compare("bool", Direction::kLt, Bools({2}, {0, 1}), Bools({2}, {1, 1}), {1, 0}),
      compare("complex", Direction::kEq, C64({2}, {1, 2, 1, 2}), C64({2}, {1, 2, 1, 3}), {1, 0}),
      compare("total order", Direction::kLt, F32({3}, {-0.0, kInf, -kInf}), F32({3}, {0.0, kNan, -kNan}), {1, 1, 0},
              true),
  });
}

Case Cast(std::string name, DType dtype, Array x, Array expected) {
  return {std::move(name),
          {std::move(x)},
          [dtype](Builder& b, const Values& v) { return Values{b.Convert(v[0], dtype)}; },
          {std::move(expected)}};
}

Case Bits(std::string name, DType dtype, Array x, Array expected) {
  return {std::move(name),
          {std::move(x)},
          [dtype](Builder& b, const Values& v) { return Values{b.BitcastConvert(v[0], dtype)}; },
          {std::move(expected)}};
}

TEST(BuilderElementwise, SelectClampConvert) {
  RunCases({
      {"select",
       {Bools({2}, {1, 0}), F32({2}, {1, 2}), F32({2}, {3, 4})},
       [](Builder& b, const Values& v) { return Values{b.Select(v[0], v[1], v[2])}; },
       {F32({2}, {1, 4})}},
      {"select scalar",
       {Bools({}, {0}), F32({2}, {1, 2}), F32({2}, {3, 4})},
       [](Builder& b, const Values& v) { return Values{b.Select(v[0], v[1], v[2])}; },
       {F32({2}, {3, 4})}},
      {"clamp",
       {F32({3}, {-5, 0.5, 5})},
       [](Builder& b, const Values& v) {
         return Values{b.Clamp(b.Zero(DType::kFloat32), v[0], b.One(DType::kFloat32)),
                       b.Clamp(b.Zero(DType::kFloat32, {3}), v[0], b.One(DType::kFloat32))};
       },
       {F32({3}, {0, 0.5, 1}), F32({3}, {0, 0.5, 1})}},
      Cast("to bool", DType::kBool, F32({4}, {0, -0.0, 0.25, kNan}), Bools({4}, {0, 0, 1, 1})),
      Cast("wide int to bool", DType::kBool, I64({2}, {256, 0}), Bools({2}, {1, 0})),
      Cast("complex to bool", DType::kBool, C64({2}, {0, 1, 0, 0}), Bools({2}, {1, 0})),
      Cast("bool to float", DType::kFloat32, Bools({2}, {0, 1}), F32({2}, {0, 1})),
      Cast("float to int", DType::kInt32, F32({2}, {2.7, -2.7}), I32({2}, {2, -2})),
      Cast("narrowing int", DType::kInt8, I32({1}, {300}), Of(DType::kInt8, {1}, {44})),
      Cast("complex to real", DType::kFloat32, C64({1}, {3, 4}), F32({1}, {3})),
      Cast("real to complex", DType::kComplex128, F32({1}, {3}), Of(DType::kComplex128, {1}, {3, 0})),
      Cast("complex to complex", DType::kComplex128, C64({1}, {3, 4}), Of(DType::kComplex128, {1}, {3, 4})),
      Bits("same width", DType::kInt32, F32({1}, {1}), I32({1}, {0x3F800000})),
      Bits("to narrow", DType::kUInt8, I32({1}, {0x04030201}), Of(DType::kUInt8, {1, 4}, {1, 2, 3, 4})),
      Bits("to wide", DType::kInt32, Of(DType::kUInt8, {1, 4}, {1, 2, 3, 4}), I32({1}, {0x04030201})),
      Bits("bool to byte", DType::kUInt8, Bools({2}, {1, 0}), Of(DType::kUInt8, {2}, {1, 0})),
      Bits("byte to bool", DType::kBool, Of(DType::kUInt8, {2}, {1, 0}), Bools({2}, {1, 0})),
      Bits("complex to float", DType::kFloat32, C64({2}, {1, 2, 3, 4}), F32({2, 2}, {1, 2, 3, 4})),
      Bits("float to complex", DType::kComplex64, F32({2, 2}, {1, 2, 3, 4}), C64({2}, {1, 2, 3, 4})),
      Bits("complex to int64", DType::kInt64, C64({1}, {0, 1}), I64({1}, {0x3F80000000000000})),
      Bits("complex to bytes", DType::kUInt8, C64({1}, {1, 0}), Of(DType::kUInt8, {1, 8}, {0, 0, 128, 63, 0, 0, 0, 0})),
      Bits("bytes to complex", DType::kComplex64, Of(DType::kUInt8, {1, 8}, {0, 0, 128, 63, 0, 0, 0, 64}),
           C64({1}, {1, 2})),
      {"float8 and halves through f32",
       {F32({3}, {1.1, -448, 0.3})},
       [](Builder& b, const Values& v) {
         Values out;
         for (DType d : {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3FN, DType::kFloat8E5M2}) {
           out.push_back(b.Convert(b.Convert(v[0], d), DType::kFloat32));
         }
         return out;
       },
       {F32({3}, {1.099609375, -448, 0.300048828}), F32({3}, {1.1015625, -448, 0.30078125}),
        F32({3}, {1.125, -448, 0.3125}), F32({3}, {1.0, -448, 0.3125})}},
  });
}

TEST(BuilderElementwise, IdentitiesAreTheValueItself) {
  Builder b;
  const Value x = b.Parameter({DType::kFloat32, {2, 3}});
  EXPECT_EQ(b.Convert(x, DType::kFloat32).id(), x.id());
  EXPECT_EQ(b.BitcastConvert(x, DType::kFloat32).id(), x.id());
  EXPECT_EQ(b.Reshape(x, {2, 3}).id(), x.id());
  EXPECT_EQ(b.Transpose(x, {0, 1}).id(), x.id());
  EXPECT_EQ(b.BroadcastTo(x, {2, 3}).id(), x.id());
  EXPECT_EQ(b.Slice(x, {0, 0}, {2, 3}).id(), x.id());
  EXPECT_EQ(b.Reverse(x, {}).id(), x.id());
  EXPECT_EQ(b.Concatenate({x}, 0).id(), x.id());
  EXPECT_EQ(b.Pad(x, b.Zero(DType::kFloat32), {0, 0}, {0, 0}).id(), x.id());
  EXPECT_EQ(b.Reduce(x, Builder::Reducer::kAdd, {}).id(), x.id());
}

TEST(BuilderElementwise, Refusals) {
  const TensorType f{DType::kFloat32, {2}}, g{DType::kFloat32, {3}}, i{DType::kInt32, {2}}, c{DType::kComplex64, {2}},
      p{DType::kBool, {2}};
  ExpectRefusals({
      {"add: expected operands of one type, got tensor<2xf32> and tensor<3xf32>",
       [=](Builder& b) { b.Add(b.Parameter(f), b.Parameter(g)); }},
      {"add: expected operands of one type, got tensor<2xf32> and tensor<2xi32>",
       [=](Builder& b) { b.Add(b.Parameter(f), b.Parameter(i)); }},
      {"add: expected a value, got an absent one", [=](Builder& b) { b.Add(b.Parameter(f), Value()); }},
      {"exponential: expected float or complex, got tensor<2xi32>", [=](Builder& b) { b.Exp(b.Parameter(i)); }},
      {"not: expected bool or integer, got tensor<2xf32>", [=](Builder& b) { b.Not(b.Parameter(f)); }},
      {"sign: expected signed integer, float or complex, got tensor<2xi1>",
       [=](Builder& b) { b.Sign(b.Parameter(p)); }},
      {"subtract: expected integer, float or complex, got tensor<2xi1>",
       [=](Builder& b) { b.Subtract(b.Parameter(p), b.Parameter(p)); }},
      {"maximum: expected bool, integer or float, got tensor<2xcomplex<f32>>",
       [=](Builder& b) { b.Maximum(b.Parameter(c), b.Parameter(c)); }},
      {"compare: expected bool, integer or float, got tensor<2xcomplex<f32>>",
       [=](Builder& b) { b.Compare(b.Parameter(c), b.Parameter(c), Direction::kLt); }},
      {"compare: expected float, got tensor<2xi32>",
       [=](Builder& b) { b.CompareTotalOrder(b.Parameter(i), b.Parameter(i), Direction::kLt); }},
      {"complex: expected f32 or f64, got tensor<2xi32>",
       [=](Builder& b) { b.Complex(b.Parameter(i), b.Parameter(i)); }},
      {"select: expected a condition with dims [] or [3], got [2]",
       [=](Builder& b) { b.Select(b.Parameter(p), b.Parameter(g), b.Parameter(g)); }},
      {"select: expected bool, got tensor<2xf32>",
       [=](Builder& b) { b.Select(b.Parameter(f), b.Parameter(f), b.Parameter(f)); }},
      {"clamp: expected bounds of f32 with dims [] or [2], got tensor<3xf32>",
       [=](Builder& b) { b.Clamp(b.Parameter(g), b.Parameter(f), b.Parameter(f)); }},
      {"bitcast_convert: expected a last dim of 2 to make f64, got tensor<3xf32>",
       [=](Builder& b) { b.BitcastConvert(b.Parameter(g), DType::kFloat64); }},
      {"reduce_precision: expected exponent bits of 1 or more and mantissa bits of 0 or more, got 0 and 3",
       [=](Builder& b) { b.ReducePrecision(b.Parameter(f), 0, 3); }},
      {"convert: expected a valid element type, got none",
       [=](Builder& b) { b.Convert(b.Parameter(f), DType::kInvalid); }},
  });
}

}  // namespace
}  // namespace torch_tpu
