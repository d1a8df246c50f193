#include "runtime/topology.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/test_client.h"

namespace torch_tpu {
namespace {

constexpr char kMatmul[] = R"(module @square { func.func public @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32> } })";
const TensorType kSquare{DType::kFloat32, {64, 64}};

TEST(TopologyTest, OfAClient) {
  auto topology = Topology::Of(TestClient());
  EXPECT_EQ(topology->platform_name(), TestClient().platform_name());
  EXPECT_FALSE(topology->platform_version().empty());
  ASSERT_EQ(topology->device_kinds().size(), 2u);
  EXPECT_EQ(topology->device_kinds()[0], TestClient().devices()[0]->kind());
}

TEST(TopologyTest, WhatThePluginCannotCompileIsAnError) {
  auto topology = Topology::Of(TestClient());
  try {
    // The CPU plugins compile for their client only; the text must say so, not crash.
    topology->Compile("module { nonsense }", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("compile: ", 0), 0u) << error.what();
  }
  CompileOptions placed;
  placed.device_ordinal = 0;
  try {
    topology->Compile(kMatmul, placed);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "compile: expected no device ordinal for a topology, got 0");
  }
}

TEST(TopologyTest, AnUnknownNameIsThePluginsError) {
  try {
    Topology::Create(TestPlugin(), "no:such:topology");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("topology no:such:topology: ", 0), 0u) << error.what();
  }
}

TEST(CompiledTest, Facts) {
  auto executable = TestClient().Compile(kMatmul, {}, {kSquare});
  Compiled compiled = Compiled::Of(TestClient(), executable->raw());
  EXPECT_NE(compiled.name().find("square"), std::string::npos) << compiled.name();
  EXPECT_EQ(compiled.num_replicas(), 1);
  EXPECT_EQ(compiled.num_partitions(), 1);
  const CompiledMemory memory = compiled.memory();
  EXPECT_EQ(memory.arguments, 64 * 64 * 4);
  EXPECT_EQ(memory.outputs, 64 * 64 * 4);
  EXPECT_NO_THROW(compiled.CheckOutputs({kSquare}));
  EXPECT_THROW(compiled.CheckOutputs({kSquare, kSquare}), Error);
  try {
    EXPECT_EQ(compiled.cost_analysis()["flops"], 2.0 * 64 * 64 * 64);
  } catch (const Error& error) {  // the CPU plugins' answer
    EXPECT_EQ(error.code(), Code::kUnimplemented) << error.what();
  }
  const Compiled::Optimized optimized = compiled.optimized_program();
  EXPECT_FALSE(optimized.format.empty());
  EXPECT_NE(optimized.code.find("square"), std::string::npos);
}

}  // namespace
}  // namespace torch_tpu
