#include "plugin/plugin.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "pjrt_c_api.h"
#include "runtime/runtime.h"

namespace torch_tpu {
namespace {

// The code and text of what opening `path` throws.
std::pair<Code, std::string> FailureOf(const std::string& path) {
  try {
    Plugin::Open({"candidate", path});
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {Code::kUnknown, "opened"};
}

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(PluginTest, OpensOnceAndKnowsItself) {
  auto plugin = Plugin::Open({"test", TORCH_TPU_TEST_PLUGIN});
  EXPECT_EQ(plugin->name(), "test");
  EXPECT_EQ(plugin->path(), TORCH_TPU_TEST_PLUGIN);
  EXPECT_EQ(plugin->major_version(), 0);
  EXPECT_GE(plugin->minor_version(), 81);
  EXPECT_EQ(plugin->version_string(), "0." + std::to_string(plugin->minor_version()));
  EXPECT_EQ(Plugin::Open({"again", TORCH_TPU_TEST_PLUGIN}), plugin);
}

TEST(PluginTest, NegotiatesByStructSize) {
  auto plugin = Plugin::Open({"test", TORCH_TPU_TEST_PLUGIN});
  EXPECT_TRUE(plugin->Has(offsetof(PJRT_Api, PJRT_Client_Create)));
  EXPECT_FALSE(plugin->Has(plugin->api()->struct_size));
  EXPECT_NE(plugin->Extension(PJRT_Extension_Type_FFI), nullptr);
  EXPECT_EQ(plugin->Extension(9999), nullptr);
}

TEST(PluginTest, NoFile) {
  auto [code, text] = FailureOf("/no/such/plugin.so");
  EXPECT_EQ(code, Code::kNotFound);
  EXPECT_TRUE(Contains(text, "/no/such/plugin.so: cannot open shared object file")) << text;
}

TEST(PluginTest, NotASharedObject) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("torch_tpu_not_elf_" + std::to_string(::getpid()))).string();
  std::ofstream(path) << "plain text";
  auto [code, text] = FailureOf(path);
  std::filesystem::remove(path);
  EXPECT_EQ(code, Code::kNotFound);
  EXPECT_TRUE(Contains(text, "cannot open")) << text;
}

TEST(PluginTest, ASharedObjectThatIsNoPlugin) {
  auto [code, text] = FailureOf("libm.so.6");
  EXPECT_EQ(code, Code::kNotFound);
  EXPECT_TRUE(Contains(text, "is not a PJRT plugin (no GetPjrtApi)")) << text;
}

TEST(PluginTest, TooOld) {
  auto [code, text] = FailureOf(FAKE_PLUGIN_OLD_API);
  EXPECT_EQ(code, Code::kFailedPrecondition);
  EXPECT_TRUE(Contains(text, "expected PJRT API 0.40 or newer within major version 0, got 0.12")) << text;
  EXPECT_TRUE(Contains(text, "pip install")) << text;
}

TEST(PluginTest, AnotherMajorVersion) {
  auto [code, text] = FailureOf(FAKE_PLUGIN_OTHER_MAJOR);
  EXPECT_EQ(code, Code::kFailedPrecondition);
  EXPECT_TRUE(Contains(text, "got 1.81")) << text;
}

TEST(PluginTest, TableTooShort) {
  auto [code, text] = FailureOf(FAKE_PLUGIN_SHORT_TABLE);
  EXPECT_EQ(code, Code::kFailedPrecondition);
  EXPECT_TRUE(Contains(text, "function table is too short")) << text;
}

TEST(PluginTest, NoTable) {
  auto [code, text] = FailureOf(FAKE_PLUGIN_NO_TABLE);
  EXPECT_EQ(code, Code::kFailedPrecondition);
  EXPECT_TRUE(Contains(text, "gave no PJRT API")) << text;
}

TEST(PluginTest, FailsToInitialise) {
  auto [code, text] = FailureOf(FAKE_PLUGIN_NO_INITIALIZE);
  EXPECT_EQ(code, Code::kUnavailable);
  EXPECT_TRUE(Contains(text, "initialisation failed: the accelerator is on fire")) << text;
}

TEST(PluginTest, FailsToStartAClient) {
  auto plugin = Plugin::Open({"burning", FAKE_PLUGIN_NO_CLIENT});
  try {
    Client::Create(plugin, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnavailable);
    EXPECT_TRUE(Contains(error.what(), "plugin burning (")) << error.what();
    EXPECT_TRUE(Contains(error.what(), "the accelerator is on fire")) << error.what();
    EXPECT_TRUE(Contains(error.what(), "TORCH_TPU_PLUGIN")) << error.what();
  }
}

TEST(PluginTest, LibtpuIsKeptFromTheNetworkWithoutAChip) {
  if (CountTpuChips() > 0) GTEST_SKIP() << "this host has a TPU chip";
  ::unsetenv("TPU_SKIP_MDS_QUERY");
  EXPECT_THROW(Plugin::Open({"libtpu", "/no/such/libtpu.so"}), Error);
  ASSERT_NE(std::getenv("TPU_SKIP_MDS_QUERY"), nullptr);
  EXPECT_STREQ(std::getenv("TPU_SKIP_MDS_QUERY"), "1");
}

}  // namespace
}  // namespace torch_tpu
