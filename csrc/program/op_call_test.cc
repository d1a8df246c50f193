#include "program/op_call.h"

#include <limits>

#include "program/op_row.h"
#include "program/test_cases.h"

namespace torch_tpu {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const OpRow kRow{"test.op", nullptr, kNoTraits};

OpCall Call(std::vector<Arg> args, std::vector<Operand> operands = {}) {
  return {&kRow, std::move(args), std::move(operands)};
}

Arg Number(DType category, double real, double imag = 0) {
  Arg arg;
  arg.kind = Arg::Kind::kConstant;
  arg.dtype = category;
  arg.floats = {real, imag};
  return arg;
}

Arg Operands(Arg::Kind kind, int32_t first, int32_t count = 1) {
  Arg arg;
  arg.kind = kind;
  arg.first = first;
  arg.count = count;
  return arg;
}

Arg Plain(Arg::Kind kind, Dims ints) {
  Arg arg;
  arg.kind = kind;
  arg.ints = std::move(ints);
  return arg;
}

// The same number, once as an operand and once as a part of the program, in another type.
struct CastRow {
  DType from;
  std::vector<double> number;  // complex: two
  DType to;
  std::vector<double> expected;
};

const std::vector<CastRow>& CastRows() {
  static const std::vector<CastRow> rows = {
      {DType::kFloat64, {0.1}, DType::kFloat32, {0.1}},
      {DType::kFloat64, {2.7}, DType::kInt64, {2}},
      {DType::kFloat64, {-2.7}, DType::kInt32, {-2}},
      {DType::kFloat64, {300.5}, DType::kInt8, {44}},
      {DType::kFloat64, {-1.0}, DType::kUInt8, {255}},
      {DType::kFloat64, {kNan}, DType::kInt64, {-0x1p63}},
      {DType::kFloat64, {kInf}, DType::kInt64, {-0x1p63}},
      {DType::kFloat64, {0x1p63}, DType::kInt64, {-0x1p63}},
      {DType::kFloat64, {kNan}, DType::kInt32, {-0x1p31}},
      {DType::kFloat64, {3000000001}, DType::kInt32, {-0x1p31}},
      {DType::kFloat64, {2147483647.5}, DType::kInt32, {2147483647}},
      {DType::kFloat64, {3000000001}, DType::kInt8, {0}},
      {DType::kFloat64, {70000}, DType::kInt16, {4464}},
      {DType::kFloat64, {4294967295}, DType::kUInt32, {4294967295}},
      {DType::kFloat64, {0x1.8p63}, DType::kUInt64, {0x1.8p63}},
      {DType::kFloat64, {0.5}, DType::kBool, {1}},
      {DType::kFloat64, {kNan}, DType::kBool, {1}},
      {DType::kFloat64, {-0.0}, DType::kBool, {0}},
      {DType::kFloat64, {-0.0}, DType::kFloat32, {-0.0}},
      {DType::kFloat64, {1e300}, DType::kFloat32, {kInf}},
      {DType::kFloat64, {1.5}, DType::kComplex64, {1.5, 0}},
      {DType::kInt64, {3}, DType::kFloat32, {3}},
      {DType::kInt64, {-1}, DType::kUInt8, {255}},
      {DType::kInt64, {1000}, DType::kInt8, {-24}},
      {DType::kInt64, {256}, DType::kBool, {1}},
      {DType::kInt64, {3}, DType::kComplex128, {3, 0}},
      {DType::kBool, {1}, DType::kFloat32, {1}},
      {DType::kBool, {1}, DType::kInt64, {1}},
      {DType::kComplex128, {3, 4}, DType::kFloat32, {3}},
      {DType::kComplex128, {3, 4}, DType::kInt32, {3}},
      {DType::kComplex128, {0, 4}, DType::kBool, {1}},
      {DType::kComplex128, {3, 4}, DType::kComplex64, {3, 4}},
  };
  return rows;
}

TEST(Args, NumbersFollowPyTorchsCast) {
  std::vector<Case> cases;
  for (const CastRow& row : CastRows()) {
    const std::string name = Cat(Name(row.from), " ", row.number[0], " as ", Name(row.to));
    cases.push_back({name + ", operand",
                     {Of(row.from, {}, row.number)},
                     [row](Builder& b, const Values& v) {
                       Arg arg = Operands(Arg::Kind::kScalar, 0);
                       arg.dtype = row.from;
                       const OpCall call = Call({arg}, {{0, true}});
                       return Values{Args(call, v).scalar(b, 0, row.to)};
                     },
                     {Of(row.to, {}, row.expected)}});
    cases.push_back({name + ", constant",
                     {},
                     [row](Builder& b, const Values&) {
                       const OpCall call =
                           Call({Number(row.from, row.number[0], row.number.size() > 1 ? row.number[1] : 0)});
                       return Values{Args(call, {}).scalar(b, 0, row.to)};
                     },
                     {Of(row.to, {}, row.expected)}});
  }
  RunCases(cases);
}

// 1 + 2^-11 + 2^-40 is just above the middle of two float16: rounded to float32 first it is the middle, which goes to
// the even one.
TEST(Args, HalvesAreRoundedByWayOfFloat32) {
  const double number = 1 + 0x1p-11 + 0x1p-40;
  RunCases({{"both",
             {Of(DType::kFloat64, {}, {number})},
             [=](Builder& b, const Values& v) {
               const OpCall call =
                   Call({Operands(Arg::Kind::kScalar, 0), Number(DType::kFloat64, number)}, {{0, true}});
               const Args args(call, v);
               return Values{b.Convert(args.scalar(b, 0, DType::kFloat16), DType::kFloat64),
                             b.Convert(args.scalar(b, 1, DType::kFloat16), DType::kFloat64)};
             },
             {Of(DType::kFloat64, {}, {1}), Of(DType::kFloat64, {}, {1})}}});
}

TEST(Args, ExactIntegerBesideTheDouble) {
  Arg arg = Number(DType::kInt64, 9007199254740992.0);
  arg.ints = {9007199254740993};
  const OpCall call = Call({arg});
  Builder b;
  const std::string text = b.Finish({Args(call, {}).scalar(b, 0, DType::kInt64)});
  EXPECT_NE(text.find("dense<9007199254740993>"), std::string::npos) << text;
  EXPECT_EQ(Args(call, {}).integer(0), 9007199254740993);
}

TEST(Args, Readers) {
  Builder b;
  const Value x = b.Parameter({DType::kFloat32, {2}}), s = b.Parameter({DType::kInt64, {}});
  Arg number = Operands(Arg::Kind::kScalar, 1);
  number.dtype = DType::kInt64;
  Arg text;
  text.kind = Arg::Kind::kString;
  text.text = "mean";
  Arg dtype;
  dtype.kind = Arg::Kind::kDType;
  dtype.dtype = DType::kBFloat16;
  Arg floats;
  floats.kind = Arg::Kind::kFloats;
  floats.floats = {0.5, 2};
  const OpCall call =
      Call({Operands(Arg::Kind::kTensor, 0), number, Operands(Arg::Kind::kTensorList, 0, 3), Arg(),
            Plain(Arg::Kind::kInt, {4}), Plain(Arg::Kind::kBool, {1}), Plain(Arg::Kind::kInts, {1, 2}), text, dtype,
            floats, Number(DType::kBool, 1), Operands(Arg::Kind::kScalarList, 1, 1), Operands(Arg::Kind::kTensor, 2)},
           {{0, false}, {1, true}, {-1, false}});
  const Args args(call, {x, s, Value()});
  EXPECT_EQ(args.size(), 13u);
  EXPECT_EQ(args.tensor(0).id(), x.id());
  EXPECT_FALSE(args.wrapped(0));
  EXPECT_TRUE(args.wrapped(1));
  EXPECT_EQ(args.category(1), DType::kInt64);
  EXPECT_EQ(args.constant(1), std::nullopt);
  ASSERT_EQ(args.tensors(2).size(), 3u);
  EXPECT_FALSE(args.tensors(2)[2]);
  EXPECT_FALSE(args.has(3));
  EXPECT_FALSE(args.has(99));
  EXPECT_FALSE(args.tensor_or_absent(3));
  EXPECT_FALSE(args.tensor_or_absent(12));
  EXPECT_EQ(args.integer(4), 4);
  EXPECT_EQ(args.integer_or(3, 7), 7);
  EXPECT_TRUE(args.flag(5));
  EXPECT_FALSE(args.flag(3));
  EXPECT_EQ(args.ints(6), (Dims{1, 2}));
  EXPECT_EQ(args.ints_or(3, {9}), (Dims{9}));
  EXPECT_EQ(args.text(7), "mean");
  EXPECT_EQ(args.text(3), "");
  EXPECT_EQ(args.dtype_or(8, DType::kFloat32), DType::kBFloat16);
  EXPECT_EQ(args.dtype_or(3, DType::kFloat32), DType::kFloat32);
  EXPECT_EQ(args.floats(9), (std::vector<double>{0.5, 2}));
  EXPECT_EQ(args.constant(10), 1.0);
  EXPECT_EQ(args.category(10), DType::kBool);
  ASSERT_EQ(args.scalars(b, 11, DType::kFloat32).size(), 1u);
  EXPECT_EQ(args.scalars(b, 11, DType::kFloat32)[0].dtype(), DType::kFloat32);
}

TEST(Args, Refusals) {
  const auto with = [](Builder& b, auto read) {
    const OpCall call = Call({Operands(Arg::Kind::kTensor, 0), Arg(), Number(DType::kFloat64, 0.5)}, {{0, false}});
    read(b, Args(call, {b.Parameter({DType::kFloat32, {2}})}));
  };
  ExpectRefusals({
      {"test.op: expected a tensor as argument 1, got none",
       [=](Builder& b) { with(b, [](Builder&, const Args& a) { a.tensor(1); }); }},
      {"test.op: expected a tensor as argument 2, got a constant number",
       [=](Builder& b) { with(b, [](Builder&, const Args& a) { a.tensor(2); }); }},
      {"test.op: expected at least 6 arguments, got 3",
       [=](Builder& b) { with(b, [](Builder&, const Args& a) { a.integer(5); }); }},
      {"test.op: expected an integer as argument 0, got a tensor",
       [=](Builder& b) { with(b, [](Builder&, const Args& a) { a.integer(0); }); }},
      {"test.op: expected an integer as argument 2, got 0.5",
       [=](Builder& b) { with(b, [](Builder&, const Args& a) { a.integer(2); }); }},
      {"test.op: expected a number as argument 1, got none",
       [=](Builder& b) { with(b, [](Builder& c, const Args& a) { a.scalar(c, 1, DType::kFloat32); }); }},
      {"test.op: expected a 0-d value as argument 0, got tensor<2xf32>",
       [=](Builder& b) { with(b, [](Builder& c, const Args& a) { a.scalar(c, 0, DType::kFloat32); }); }},
      {"test.op: expected a list of integers as argument 0, got a tensor",
       [=](Builder& b) { with(b, [](Builder&, const Args& a) { a.ints(0); }); }},
      {"test.op: expected an element type as argument 0, got a tensor",
       [=](Builder& b) { with(b, [](Builder&, const Args& a) { a.dtype_or(0, DType::kBool); }); }},
      {"test.op: expected a string as argument 0, got a tensor",
       [=](Builder& b) { with(b, [](Builder&, const Args& a) { a.text(0); }); }},
  });
}

}  // namespace
}  // namespace torch_tpu
