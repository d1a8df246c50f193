#include "compile/compiler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/error.h"
#include "compile/hash.h"
#include "compile/host_cpu.h"
#include "runtime/test_client.h"

namespace torch_tpu {
namespace {

namespace fs = std::filesystem;

class CompilerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / ("torch_tpu_compiler_" + std::to_string(::getpid()) + "_" +
                                            testing::UnitTest::GetInstance()->current_test_info()->name()))
                  .string();
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  DiskCache Disk(int64_t max_bytes = 1 << 30) { return DiskCache(folder_, max_bytes); }

  std::string folder_;
};

Program Multiply(float factor) {
  Program program;
  program.text =
      "module { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
      "%c = stablehlo.constant dense<" +
      std::to_string(factor) +
      "> : tensor<4xf32>\n"
      "%0 = stablehlo.multiply %a, %c : tensor<4xf32>\nreturn %0 : tensor<4xf32> } }";
  program.inputs = program.outputs = {TensorType{DType::kFloat32, {4}}};
  return program;
}

float RunOnOnes(const Executable& executable, int device = 0) {
  Client& client = TestClient();
  Device* where = client.devices()[static_cast<size_t>(device)].get();
  const float ones[4] = {1, 1, 1, 1};
  BufferPtr argument = client.FromHost(where, ones, executable.outputs()[0]);
  const PJRT_Buffer* arguments[] = {argument->raw()};
  std::vector<BufferPtr> results;
  executable.Execute(where, arguments, 1, nullptr, 0, &results);
  return ReadBack<float>(*results[0])[0];
}

TEST_F(CompilerTest, MemoryThenDisk) {
  {
    Compiler compiler(&TestClient(), Disk());
    auto first = compiler.Compile(Multiply(3), compiler.DefaultOptions(0));
    EXPECT_EQ(RunOnOnes(*first), 3.0f);
    EXPECT_EQ(compiler.Compile(Multiply(3), compiler.DefaultOptions(0)), first);
    EXPECT_NE(compiler.Compile(Multiply(4), compiler.DefaultOptions(0)), first);
    EXPECT_NE(compiler.Compile(Multiply(3), compiler.DefaultOptions(1)), first);
    const CacheStats stats = compiler.stats();
    EXPECT_EQ(stats.requests, 4);
    EXPECT_EQ(stats.memory_hits, 1);
    EXPECT_EQ(stats.disk_hits, 0);
    EXPECT_EQ(stats.compilations, 3);
    EXPECT_GT(stats.compile_seconds, 0);
    EXPECT_EQ(compiler.disk().usage().files, 3);
  }
  Compiler another(&TestClient(), Disk());
  EXPECT_EQ(RunOnOnes(*another.Compile(Multiply(3), another.DefaultOptions(0))), 3.0f);
  EXPECT_EQ(RunOnOnes(*another.Compile(Multiply(3), another.DefaultOptions(1)), 1), 3.0f);
  another.ClearMemory();
  EXPECT_EQ(RunOnOnes(*another.Compile(Multiply(3), another.DefaultOptions(0))), 3.0f);
  EXPECT_EQ(another.stats().disk_hits, 3);
  EXPECT_EQ(another.stats().compilations, 0);
  EXPECT_GT(another.stats().load_seconds, 0);
}

TEST_F(CompilerTest, ThreadsThatAskTogetherCompileOnce) {
  Compiler compiler(&TestClient(), DiskCache("", 0));
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<Executable>> got(6);
  for (size_t i = 0; i < got.size(); ++i) {
    threads.emplace_back([&, i] { got[i] = compiler.Compile(Multiply(7), compiler.DefaultOptions(0)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& executable : got) EXPECT_EQ(executable, got[0]);
  EXPECT_EQ(compiler.stats().compilations, 1);
  EXPECT_EQ(compiler.stats().requests, 6);
}

TEST_F(CompilerTest, AFailureIsReportedEachTimeAndNotRemembered) {
  Compiler compiler(&TestClient(), Disk());
  Program bad = Multiply(1);
  bad.text = "module { nonsense }";
  for (int i = 0; i < 2; ++i) EXPECT_THROW(compiler.Compile(bad, compiler.DefaultOptions(0)), Error);
  EXPECT_EQ(compiler.stats().memory_hits, 0);
  EXPECT_EQ(compiler.disk().usage().files, 0);
}

TEST_F(CompilerTest, AnEntryThePluginRefusesIsCompiledAgain) {
  Compiler compiler(&TestClient(), Disk());
  compiler.Compile(Multiply(5), compiler.DefaultOptions(0));
  // The entry's own checks pass, but what is inside is no executable.
  std::string key;
  for (const auto& [name, value] : compiler.KeyParts(Multiply(5), compiler.DefaultOptions(0))) {
    key += name + " " + std::to_string(value.size()) + "\n" + value + "\n";
  }
  ASSERT_TRUE(fs::exists(compiler.disk().PathOf(key)));
  compiler.disk().Write(key, "not an executable");
  compiler.ClearMemory();
  EXPECT_EQ(RunOnOnes(*compiler.Compile(Multiply(5), compiler.DefaultOptions(0))), 5.0f);
  EXPECT_EQ(compiler.stats().disk_errors, 1);
  EXPECT_EQ(compiler.stats().compilations, 2);
  compiler.ClearMemory();
  EXPECT_EQ(RunOnOnes(*compiler.Compile(Multiply(5), compiler.DefaultOptions(0))), 5.0f);
  EXPECT_EQ(compiler.stats().disk_hits, 1);
}

TEST_F(CompilerTest, KeyPartsAreNamedAndOptionsCount) {
  Compiler compiler(&TestClient(), DiskCache("", 0));
  const CompileOptions options = compiler.DefaultOptions(0);
  const auto parts = compiler.KeyParts(Multiply(1), options);
  std::vector<std::string> names;
  for (const auto& [name, value] : parts) {
    names.push_back(name);
    EXPECT_FALSE(value.empty()) << name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"program", "outputs", "options", "plugin", "platform", "device kind",
                                             "host CPU"}));
  EXPECT_EQ(parts, compiler.KeyParts(Multiply(1), options));

  CompileOptions other = options;
  other.overrides.emplace_back("xla_cpu_enable_fast_math", "true");
  EXPECT_NE(compiler.KeyParts(Multiply(1), other)[2], parts[2]);
  ::setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true", 1);
  EXPECT_NE(compiler.KeyParts(Multiply(1), options)[2], parts[2]);
  ::unsetenv("XLA_FLAGS");
}

TEST_F(CompilerTest, DumpsTheText) {
  ::setenv("TORCH_TPU_DUMP_TO", (folder_ + "/dump").c_str(), 1);
  Compiler compiler(&TestClient(), DiskCache("", 0));
  compiler.Compile(Multiply(9), compiler.DefaultOptions(0));
  ::unsetenv("TORCH_TPU_DUMP_TO");
  int files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ + "/dump")) {
    ++files;
    EXPECT_EQ(entry.path().extension(), ".mlir");
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    EXPECT_EQ(text, Multiply(9).text);
  }
  EXPECT_EQ(files, 1);
}

TEST(HostCpuTest, IsTheSameEachTimeAndSaysSomething) {
  EXPECT_EQ(&HostCpu(), &HostCpu());
  EXPECT_GT(HostCpu().size(), 17u);
}

TEST(HashTest, AnyFlippedByteChangesIt) {
  const std::string text = "the quick brown fox jumps over";
  std::set<uint64_t> seen = {Hash64(text)};
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_TRUE(seen.insert(Hash64(changed)).second) << i;
  }
  EXPECT_NE(Hash64(std::string(3, '\0')), Hash64(std::string(4, '\0')));
  EXPECT_EQ(HexOf(0x0123456789abcdef), "0123456789abcdef");
}

}  // namespace
}  // namespace torch_tpu
