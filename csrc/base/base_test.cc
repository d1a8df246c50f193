#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "base/dtype.h"
#include "base/env.h"
#include "base/error.h"
#include "base/tensor_type.h"

namespace torch_tpu {
namespace {

TEST(DTypeTest, EveryTypeHasItsOwnNameOneKindAndASize) {
  std::set<std::string_view> names;
  for (int i = 1; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    names.insert(Name(dtype));
    EXPECT_EQ(IsBool(dtype) + IsSignedInt(dtype) + IsUnsignedInt(dtype) + IsFloat(dtype) + IsComplex(dtype), 1)
        << Name(dtype);
    EXPECT_GT(ItemSize(dtype), 0u);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumDTypes - 1));
}

TEST(DTypeTest, Conversions) {
  EXPECT_EQ(RealOf(DType::kComplex128), DType::kFloat64);
  EXPECT_EQ(RealOf(DType::kInt32), DType::kInt32);
  EXPECT_EQ(ComplexOf(DType::kFloat64), DType::kComplex128);
  EXPECT_EQ(ComplexOf(DType::kBFloat16), DType::kComplex64);
  EXPECT_EQ(ComputeType(DType::kBFloat16), DType::kFloat32);
  EXPECT_EQ(ComputeType(DType::kFloat8E5M2), DType::kFloat32);
  EXPECT_EQ(ComputeType(DType::kFloat64), DType::kFloat64);
  EXPECT_EQ(ComputeType(DType::kInt8), DType::kInt8);
  EXPECT_EQ(BitWidth(DType::kBool), 1);
  EXPECT_EQ(BitWidth(DType::kComplex64), 32);
  EXPECT_EQ(BitWidth(DType::kUInt16), 16);
}

TEST(DTypeTest, NoComplexOfAnInteger) {
  try {
    ComplexOf(DType::kInt32);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("got i32"), std::string::npos);
  }
}

TEST(TensorTypeTest, TextSizesAndStrides) {
  const TensorType type{DType::kBFloat16, {2, 3, 4}};
  EXPECT_EQ(type.ToString(), "tensor<2x3x4xbf16>");
  EXPECT_EQ(type.bytes(), 48u);
  EXPECT_EQ((TensorType{DType::kComplex64, {}}).ToString(), "tensor<complex<f32>>");
  EXPECT_EQ((TensorType{DType::kFloat32, {}}).numel(), 1);
  EXPECT_EQ((TensorType{DType::kFloat32, {3, 0}}).bytes(), 0u);
  EXPECT_EQ(ContiguousStrides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(ContiguousStrides({2, 0, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(ToString(Dims{2, 3}), "[2, 3]");
  EXPECT_EQ(ToString(Dims{}), "[]");
}

TEST(EnvTest, DefaultsValuesAndMistakes) {
  ::unsetenv("TORCH_TPU_NUM_DEVICES");
  EXPECT_EQ(env::Int(env::Var::kNumDevices), 1);
  ::setenv("TORCH_TPU_NUM_DEVICES", "", 1);
  EXPECT_EQ(env::Int(env::Var::kNumDevices), 1);
  ::setenv("TORCH_TPU_NUM_DEVICES", "3", 1);
  EXPECT_EQ(env::Int(env::Var::kNumDevices), 3);
  ::setenv("TORCH_TPU_NUM_DEVICES", "3 or so", 1);
  try {
    env::Int(env::Var::kNumDevices);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "TORCH_TPU_NUM_DEVICES: expected an integer, got \"3 or so\"");
  }
  ::unsetenv("TORCH_TPU_NUM_DEVICES");

  ::unsetenv("TORCH_TPU_LAUNCH_BLOCKING");
  EXPECT_FALSE(env::Flag(env::Var::kLaunchBlocking));
  EXPECT_FALSE(env::Get(env::Var::kLaunchBlocking).has_value());
  ::setenv("TORCH_TPU_LAUNCH_BLOCKING", "True", 1);
  EXPECT_TRUE(env::Flag(env::Var::kLaunchBlocking));
  ::setenv("TORCH_TPU_LAUNCH_BLOCKING", "0", 1);
  EXPECT_FALSE(env::Flag(env::Var::kLaunchBlocking));
  ::unsetenv("TORCH_TPU_LAUNCH_BLOCKING");
}

TEST(EnvTest, SetDefaultLeavesTheUsersChoice) {
  ::setenv("TORCH_TPU_TEST_ONLY", "mine", 1);
  env::SetDefault("TORCH_TPU_TEST_ONLY", "ours");
  EXPECT_STREQ(std::getenv("TORCH_TPU_TEST_ONLY"), "mine");
  ::unsetenv("TORCH_TPU_TEST_ONLY");
  env::SetDefault("TORCH_TPU_TEST_ONLY", "ours");
  EXPECT_STREQ(std::getenv("TORCH_TPU_TEST_ONLY"), "ours");
  ::unsetenv("TORCH_TPU_TEST_ONLY");
}

TEST(EnvTest, TableIsComplete) {
  EXPECT_EQ(env::Table().size(), static_cast<size_t>(env::Var::kCount));
  for (const env::Row& row : env::Table()) EXPECT_GT(std::string(row.meaning).size(), 10u) << row.name;
}

TEST(ErrorTest, CheckFormatsOnlyOnFailure) {
  EXPECT_NO_THROW(Check(true, "never"));
  try {
    Check(false, "add: expected ", 1, ", got ", 2.5);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "add: expected 1, got 2.5");
  }
}

}  // namespace
}  // namespace torch_tpu
