#include "runtime/compile_options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace torch_tpu {
namespace {

TEST(CompileOptionsTest, OneReplicaOnePartition) {
  EXPECT_EQ(SerializeOptions({}, std::nullopt), std::string("\x1a\x04\x20\x01\x28\x01"));
}

TEST(CompileOptionsTest, ADeviceBecomesAnAssignment) {
  const std::string assignment("\x4a\x08\x08\x01\x10\x01\x1a\x02\x08\x03");
  EXPECT_EQ(SerializeOptions({}, 3), "\x1a\x0e\x20\x01\x28\x01" + assignment);
  CompileOptions two;
  two.num_replicas = 2;
  EXPECT_EQ(SerializeOptions(two, std::nullopt), std::string("\x1a\x04\x20\x02\x28\x01"));
  EXPECT_THROW(SerializeOptions(two, 0), Error);
  two.num_replicas = 0;
  EXPECT_THROW(SerializeOptions(two, std::nullopt), Error);
}

TEST(CompileOptionsTest, OverridesCarryTheTypeTheirTextHas) {
  auto override_of = [](const std::string& value) {
    CompileOptions options;
    options.overrides = {{"o", value}};
    return SerializeOptions(options, std::nullopt)
        .substr(6 + 2 + 3 + 2);  // past the build options, the entry's head and its key
  };
  EXPECT_EQ(override_of("true"), std::string("\x10\x01"));
  EXPECT_EQ(override_of("false"), std::string("\x10\x00", 2));
  EXPECT_EQ(override_of("300"), std::string("\x18\xac\x02"));
  EXPECT_EQ(override_of("-1"), std::string("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  EXPECT_EQ(override_of("0.5"), std::string("\x21\x00\x00\x00\x00\x00\x00\xe0\x3f", 9));
  EXPECT_EQ(override_of("avx2"), std::string("\x0a\x04"
                                             "avx2"));
  EXPECT_EQ(override_of(""), std::string("\x0a\x00", 2));
}

}  // namespace
}  // namespace torch_tpu
