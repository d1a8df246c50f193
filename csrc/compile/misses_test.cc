#include "compile/misses.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace torch_tpu {
namespace {

namespace fs = std::filesystem;

std::vector<KeyPart> Parts(const std::string& program, const std::string& options, const std::string& cpu) {
  return {{"program", program}, {"options", options}, {"host CPU", cpu}};
}

TEST(MissesTest, PartsComeBackFromAKey) {
  const auto parts = Parts("line\nline 7\n", "", "with spaces 12\nx");
  EXPECT_EQ(SplitParts(JoinParts(parts)), parts);
  const std::string key = JoinParts(parts);
  for (size_t cut : {size_t{1}, key.size() / 2, key.size() - 1}) EXPECT_TRUE(SplitParts(key.substr(0, cut)).empty());
  EXPECT_TRUE(SplitParts("program 99999999999999999999\nx\n").empty());
}

TEST(MissesTest, AMissIsExplainedByTheEntryMostLikeIt) {
  const std::string folder = (fs::temp_directory_path() / ("torch_tpu_misses_" + std::to_string(::getpid()))).string();
  fs::remove_all(folder);
  const DiskCache disk(folder, 1 << 20);
  MissLog log;
  auto name = [&](const std::vector<KeyPart>& parts) {
    return fs::path(disk.PathOf(JoinParts(parts))).filename().string();
  };
  const auto first = Parts("p", "a", "avx2");
  log.Note(first, name(first), 0.5);
  disk.Write(JoinParts(first), "x");
  auto told = log.Take(disk);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_FALSE(told[0].any);  // nothing to compare with but itself
  EXPECT_EQ(told[0].seconds, 0.5);

  const auto near = Parts("p", "b", "avx2"), other = Parts("q", "a", "avx2");
  for (const auto& parts : {near, other}) {
    log.Note(parts, name(parts), 0);
    disk.Write(JoinParts(parts), "x");
  }
  told = log.Take(disk);
  ASSERT_EQ(told.size(), 2u);
  ASSERT_EQ(told[0].differences.size(), 1u);
  EXPECT_EQ(told[0].differences[0].part, "options");
  EXPECT_EQ(told[0].differences[0].here, "b");
  EXPECT_EQ(told[0].differences[0].there, "a");
  ASSERT_EQ(told[1].differences.size(), 1u);
  EXPECT_EQ(told[1].differences[0].part, "program");
  EXPECT_TRUE(log.Take(disk).empty());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace torch_tpu
