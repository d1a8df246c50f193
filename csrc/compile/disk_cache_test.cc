#include "compile/disk_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/error.h"

namespace torch_tpu {
namespace {

namespace fs = std::filesystem;

class DiskCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / ("torch_tpu_disk_" + std::to_string(::getpid()) + "_" +
                                            testing::UnitTest::GetInstance()->current_test_info()->name()))
                  .string();
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string Content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }
  static void SetContent(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  }
  static void SetAge(const std::string& path, int minutes) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
  }

  std::string folder_;
};

TEST_F(DiskCacheTest, KeepsWhatItIsGiven) {
  DiskCache cache(folder_ + "/deep/er", 1 << 20);
  std::string bytes = "untouched";
  EXPECT_FALSE(cache.Read("key", &bytes));
  EXPECT_EQ(bytes, "untouched");
  const std::string payload("with\0zero", 9);
  cache.Write("key", payload);
  ASSERT_TRUE(cache.Read("key", &bytes));
  EXPECT_EQ(bytes, payload);
  cache.Write("key", "");
  ASSERT_TRUE(cache.Read("key", &bytes));
  EXPECT_EQ(bytes, "");
  EXPECT_FALSE(cache.Read("other", &bytes));
  EXPECT_EQ(cache.usage().files, 1);
  EXPECT_EQ(cache.Clear(), 1);
  EXPECT_EQ(cache.usage().bytes, 0);
}

TEST_F(DiskCacheTest, AFlippedByteAnywhereIsAMiss) {
  DiskCache cache(folder_, 1 << 20);
  cache.Write("some key", "some payload that is longer");
  const std::string path = cache.PathOf("some key"), good = Content(path);
  std::string bytes;
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit : {0, 7}) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      SetContent(path, damaged);
      EXPECT_FALSE(cache.Read("some key", &bytes)) << "byte " << i;
    }
  }
  SetContent(path, good);
  EXPECT_TRUE(cache.Read("some key", &bytes));
}

TEST_F(DiskCacheTest, TruncatedOrExtendedIsAMiss) {
  DiskCache cache(folder_, 1 << 20);
  cache.Write("some key", "some payload");
  const std::string path = cache.PathOf("some key"), good = Content(path);
  std::string bytes;
  for (size_t size = 0; size < good.size(); ++size) {
    SetContent(path, good.substr(0, size));
    EXPECT_FALSE(cache.Read("some key", &bytes)) << size << " bytes";
  }
  SetContent(path, good + "x");
  EXPECT_FALSE(cache.Read("some key", &bytes));
  cache.Write("some key", "again");
  EXPECT_TRUE(cache.Read("some key", &bytes));
}

TEST_F(DiskCacheTest, AForeignKeyIsAMiss) {
  DiskCache cache(folder_, 1 << 20);
  cache.Write("mine", "payload");
  // As if the two keys had the same hash.
  fs::rename(cache.PathOf("mine"), cache.PathOf("yours"));
  std::string bytes;
  EXPECT_FALSE(cache.Read("yours", &bytes));
}

TEST_F(DiskCacheTest, TheLeastRecentlyUsedGoFirst) {
  const std::string payload(1000, 'x');
  DiskCache cache(folder_, 4800);
  for (const char* key : {"a", "b", "c", "d"}) {
    cache.Write(key, payload);
    EXPECT_LE(cache.usage().bytes, 4800);
  }
  SetAge(cache.PathOf("a"), 40);
  SetAge(cache.PathOf("b"), 30);
  SetAge(cache.PathOf("c"), 20);
  SetAge(cache.PathOf("d"), 10);
  std::string bytes;
  EXPECT_TRUE(cache.Read("a", &bytes));  // a read makes it young again
  cache.Write("e", payload);
  EXPECT_LE(cache.usage().bytes, 4800);
  EXPECT_FALSE(cache.Read("b", &bytes));
  for (const char* key : {"a", "c", "d", "e"}) EXPECT_TRUE(cache.Read(key, &bytes)) << key;
  cache.Write("big", std::string(5000, 'x'));
  EXPECT_FALSE(cache.Read("big", &bytes));
  EXPECT_TRUE(cache.Read("e", &bytes));
}

TEST_F(DiskCacheTest, LeftoversOfKilledProcessesGo) {
  DiskCache cache(folder_, 1 << 20);
  fs::create_directories(folder_);
  const std::string old_one = folder_ + "/.writing-1-0", young = folder_ + "/.writing-2-0",
                    foreign = folder_ + "/notes.txt";
  for (const std::string& path : {old_one, young, foreign}) SetContent(path, "half");
  SetAge(old_one, 120);
  SetAge(foreign, 120);
  cache.Write("key", "payload");
  EXPECT_FALSE(fs::exists(old_one));
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_EQ(cache.Clear(), 1);
  EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(DiskCacheTest, AFolderThatCannotBeUsedIsAnEmptyCache) {
  fs::create_directories(folder_);
  SetContent(folder_ + "/file", "not a folder");
  for (const std::string& folder : {folder_ + "/file", folder_ + "/file/below", std::string("/proc/no/such")}) {
    DiskCache cache(folder, 1 << 20);
    std::string bytes;
    cache.Write("key", "payload");
    EXPECT_FALSE(cache.Read("key", &bytes));
    EXPECT_EQ(cache.usage().files, 0);
    EXPECT_EQ(cache.Clear(), 0);
  }
  // An entry that cannot be read as a file.
  DiskCache cache(folder_, 1 << 20);
  fs::create_directories(cache.PathOf("key"));
  std::string bytes;
  EXPECT_FALSE(cache.Read("key", &bytes));
  cache.Write("key", "payload");
  EXPECT_FALSE(cache.Read("key", &bytes));
}

TEST_F(DiskCacheTest, ManyWritersOfOneKey) {
  const std::string payload(100000, 'p');
  std::vector<std::thread> threads;
  std::atomic<int> damaged{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      DiskCache cache(folder_, 1 << 30);
      std::string bytes;
      for (int i = 0; i < 20; ++i) {
        cache.Write("key", payload);
        if (!cache.Read("key", &bytes) || bytes != payload) ++damaged;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(DiskCache(folder_, 1 << 30).usage().files, 1);
}

TEST_F(DiskCacheTest, TheEnvironmentSaysWhere) {
  ::unsetenv("TORCH_TPU_CACHE");
  ::setenv("TORCH_TPU_CACHE_DIR", "/somewhere/else", 1);
  EXPECT_EQ(DiskCache::FromEnv().folder(), "/somewhere/else");
  ::unsetenv("TORCH_TPU_CACHE_DIR");
  ::setenv("XDG_CACHE_HOME", "/cache/home", 1);
  EXPECT_EQ(DiskCache::FromEnv().folder(), "/cache/home/torch_tpu");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(DiskCache::FromEnv().folder(), "/home/someone/.cache/torch_tpu");
  ::setenv("TORCH_TPU_CACHE", "0", 1);
  EXPECT_FALSE(DiskCache::FromEnv().enabled());
  ::unsetenv("TORCH_TPU_CACHE");
  ::setenv("TORCH_TPU_CACHE_MAX_BYTES", "much", 1);
  EXPECT_THROW(DiskCache::FromEnv(), Error);
  ::unsetenv("TORCH_TPU_CACHE_MAX_BYTES");
}

}  // namespace
}  // namespace torch_tpu
