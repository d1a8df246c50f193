#include "runtime/runtime.h"

#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "runtime/buffer_type.h"
#include "runtime/test_client.h"

namespace torch_tpu {
namespace {

const TensorType kF4{DType::kFloat32, {4}};

Device* FirstDevice() { return TestClient().devices()[0].get(); }
Device* SecondDevice() { return TestClient().devices()[1].get(); }

BufferPtr Upload(const std::vector<float>& values, Device* device = FirstDevice()) {
  return TestClient().FromHost(device, values.data(), {DType::kFloat32, {static_cast<int64_t>(values.size())}});
}

constexpr char kAdd[] = R"(module { func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32> } })";

constexpr char kDonatingAdd[] = R"(module {
func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32> } })";

// The text of the Error that `call` throws.
template <class F>
std::string ErrorOf(F call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::shared_ptr<Executable> CompileOn(int device, const char* text, std::vector<TensorType> outputs = {kF4}) {
  CompileOptions options;
  options.device_ordinal = device;
  return TestClient().Compile(text, options, std::move(outputs));
}

TEST(ClientTest, KnowsItsPlatformAndDevices) {
  Client& client = TestClient();
  EXPECT_TRUE(client.is_cpu());
  EXPECT_FALSE(client.platform_version().empty());
  ASSERT_EQ(client.devices().size(), 2u);
  EXPECT_EQ(FirstDevice()->index(), 0);
  EXPECT_EQ(SecondDevice()->index(), 1);
  EXPECT_NE(FirstDevice()->id(), SecondDevice()->id());
  EXPECT_FALSE(FirstDevice()->kind().empty());
  EXPECT_FALSE(FirstDevice()->debug_string().empty());
  EXPECT_FALSE(FirstDevice()->memory_stats().has_value());
}

TEST(ClientTest, NumberOfDevicesIsTheCallers) {
  for (int count : {1, 3}) {
    auto client = Client::Create(TestPlugin(), ClientOptions{count});
    EXPECT_EQ(client->devices().size(), static_cast<size_t>(count));
  }
  EXPECT_EQ(ErrorOf([] { Client::Create(TestPlugin(), ClientOptions{0}); }),
            "client: expected at least one device, got 0");
}

TEST(BufferTypeTest, MapsBothWays) {
  for (int i = 1; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(FromBufferType(ToBufferType(dtype)), dtype) << Name(dtype);
  }
  EXPECT_EQ(FromBufferType(PJRT_Buffer_Type_S4), DType::kInvalid);
  EXPECT_THROW(ToBufferType(DType::kInvalid), Error);
}

class TransferTest : public testing::TestWithParam<int> {};

TEST_P(TransferTest, RoundTripsBytesOfEveryType) {
  const auto dtype = static_cast<DType>(GetParam());
  for (const Dims& dims : {Dims{}, Dims{7}, Dims{2, 3, 5}, Dims{3, 0}}) {
    const TensorType type{dtype, dims};
    std::vector<uint8_t> sent(type.bytes()), back(type.bytes(), 0xEE);
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<uint8_t>(IsBool(dtype) ? i % 2 : i * 37 + 11);
    BufferPtr buffer = TestClient().FromHost(FirstDevice(), sent.data(), type);
    EXPECT_EQ(buffer->type(), type);
    buffer->ToHost(back.data());
    EXPECT_EQ(sent, back) << type.ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, TransferTest, testing::Range(1, kNumDTypes), [](const auto& info) {
  std::string name(Name(static_cast<DType>(info.param)));
  std::erase_if(name, [](char c) { return c == '<' || c == '>'; });
  return name;
});

TEST(BufferTest, HasTheValueAtTheTimeOfTheCall) {
  std::vector<float> values(1 << 18, 1.0f);
  BufferPtr buffer = Upload(values);
  std::fill(values.begin(), values.end(), 2.0f);
  for (float value : ReadBack<float>(*buffer)) ASSERT_EQ(value, 1.0f);
}

TEST(BufferTest, HostPointerShowsTheValue) {
  BufferPtr buffer = Upload({1, 2, 3, 4});
  buffer->Await();
  const auto* data = static_cast<const float*>(buffer->HostPointer());
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data[3], 4.0f);
}

// A flag other threads may raise.
class Flag {
 public:
  void Raise() {
    std::lock_guard lock(mutex_);
    ++raised_;
    changed_.notify_all();
  }
  bool WaitForIt() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [this] { return raised_ > 0; });
  }
  int raised() {
    std::lock_guard lock(mutex_);
    return raised_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int raised_ = 0;
};

TEST(BufferTest, ZeroCopySharesAlignedMemoryUntilDestroyed) {
  auto* data = static_cast<float*>(std::aligned_alloc(64, 64));
  for (int i = 0; i < 16; ++i) data[i] = static_cast<float>(i);
  Flag released;
  BufferPtr buffer =
      TestClient().FromHostZeroCopy(FirstDevice(), data, {DType::kFloat32, {16}}, [&] { released.Raise(); });
  buffer->Await();
  EXPECT_EQ(buffer->HostPointer(), data);
  EXPECT_EQ(released.raised(), 0);
  EXPECT_EQ(ReadBack<float>(*buffer)[15], 15.0f);
  buffer.reset();
  EXPECT_TRUE(released.WaitForIt());
  EXPECT_EQ(released.raised(), 1);
  std::free(data);
}

TEST(BufferTest, ZeroCopyCopiesUnalignedMemory) {
  auto* data = static_cast<float*>(std::aligned_alloc(64, 128));
  for (int i = 0; i < 32; ++i) data[i] = static_cast<float>(i);
  int released = 0;
  BufferPtr buffer =
      TestClient().FromHostZeroCopy(FirstDevice(), data + 1, {DType::kFloat32, {4}}, [&] { ++released; });
  EXPECT_EQ(released, 1);
  data[1] = 100;
  EXPECT_EQ(ReadBack<float>(*buffer), (std::vector<float>{1, 2, 3, 4}));
  std::free(data);
}

TEST(BufferTest, ZeroCopyReleasesAlsoWhenItThrows) {
  alignas(64) float data[4] = {};
  int released = 0;
  EXPECT_THROW(TestClient().FromHostZeroCopy(FirstDevice(), data, {DType::kInvalid, {4}}, [&] { ++released; }), Error);
  EXPECT_EQ(released, 1);
}

TEST(BufferTest, CopiesBetweenDevices) {
  BufferPtr first = Upload({1, 2, 3, 4});
  BufferPtr second = first->CopyTo(SecondDevice());
  EXPECT_EQ(second->device(), SecondDevice());
  EXPECT_EQ(ReadBack<float>(*second), (std::vector<float>{1, 2, 3, 4}));
  first.reset();
  EXPECT_EQ(ReadBack<float>(*second->CopyTo(FirstDevice())), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(ErrorOf([&] { second->CopyTo(SecondDevice()); }),
            "copy: expected another device, got the buffer's own (1)");
}

TEST(BufferTest, MayBeDestroyedWhileAProgramReadsIt) {
  constexpr int64_t kSize = 512;
  constexpr char kMatmul[] = R"(module { func.func public @main(%a: tensor<512x512xf32>) -> tensor<512x512xf32> {
    %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
    : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    return %0 : tensor<512x512xf32> } })";
  const TensorType type{DType::kFloat32, {kSize, kSize}};
  const std::vector<float> ones(kSize * kSize, 1.0f);
  BufferPtr argument = TestClient().FromHost(FirstDevice(), ones.data(), type);
  std::vector<BufferPtr> results = RunProgram(kMatmul, {type}, {argument});
  argument.reset();
  EXPECT_EQ(ReadBack<float>(*results[0])[12345], static_cast<float>(kSize));
}

TEST(ExecutableTest, Computes) {
  auto results = RunProgram(kAdd, {kF4}, {Upload({1, 2, 3, 4}), Upload({10, 20, 30, 40})});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0]->type(), kF4);
  EXPECT_EQ(ReadBack<float>(*results[0]), (std::vector<float>{11, 22, 33, 44}));
  EXPECT_TRUE(results[0]->Ready().IsReady());
}

TEST(ExecutableTest, ManyOutputs) {
  std::string types, values;
  for (int i = 0; i < 20; ++i) {
    types += std::string(i > 0 ? ", " : "") + "tensor<4xf32>";
    values += std::string(i > 0 ? ", " : "") + "%a";
  }
  const std::string text = "module { func.func public @main(%a: tensor<4xf32>) -> (" + types + ") { return " + values +
                           " : " + types + " } }";
  auto results = RunProgram(text, std::vector<TensorType>(20, kF4), {Upload({1, 2, 3, 4})});
  ASSERT_EQ(results.size(), 20u);
  EXPECT_EQ(ReadBack<float>(*results[19])[2], 3.0f);
}

TEST(ExecutableTest, RunsOnTheDeviceItWasCompiledFor) {
  auto executable = CompileOn(1, kAdd);
  BufferPtr a = Upload({1, 2, 3, 4}, SecondDevice()), b = Upload({1, 1, 1, 1}, SecondDevice());
  const PJRT_Buffer* arguments[] = {a->raw(), b->raw()};
  std::vector<BufferPtr> results;
  executable->Execute(SecondDevice(), arguments, 2, nullptr, 0, &results);
  EXPECT_EQ(ReadBack<float>(*results[0]), (std::vector<float>{2, 3, 4, 5}));
  // The plugin agrees about where the result is: a copy to that device is refused, one to the other works.
  EXPECT_EQ(ReadBack<float>(*results[0]->CopyTo(FirstDevice())), (std::vector<float>{2, 3, 4, 5}));

  EXPECT_EQ(ErrorOf([&] { executable->Execute(FirstDevice(), arguments, 2, nullptr, 0, &results); }),
            "execute: expected the device the program was compiled for, got device 0");
  BufferPtr elsewhere = Upload({1, 2, 3, 4});
  const PJRT_Buffer* mixed[] = {a->raw(), elsewhere->raw()};
  const std::string text = ErrorOf([&] { executable->Execute(SecondDevice(), mixed, 2, nullptr, 0, &results); });
  EXPECT_TRUE(text.starts_with("execute: ")) << text;
}

TEST(ExecutableTest, DonationKeepsTheAddress) {
  auto executable = CompileOn(0, kDonatingAdd);
  BufferPtr a = Upload({1, 2, 3, 4}), b = Upload({1, 1, 1, 1});
  a->Await();
  const void* address = a->HostPointer();
  const PJRT_Buffer* arguments[] = {a->raw(), b->raw()};
  std::vector<BufferPtr> results;
  executable->Execute(FirstDevice(), arguments, 2, nullptr, 0, &results);
  EXPECT_EQ(ReadBack<float>(*results[0]), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(results[0]->HostPointer(), address);
  EXPECT_TRUE(a->IsDeleted());
  EXPECT_FALSE(b->IsDeleted());
  EXPECT_THROW(a->Await(), Error);
  EXPECT_THROW(ReadBack<float>(*a), Error);
  EXPECT_THROW(executable->Execute(FirstDevice(), arguments, 2, nullptr, 0, &results), Error);
}

TEST(ExecutableTest, KeptArgumentsAreNotDonated) {
  auto executable = CompileOn(0, kDonatingAdd);
  BufferPtr a = Upload({1, 2, 3, 4}), b = Upload({1, 1, 1, 1});
  const PJRT_Buffer* arguments[] = {a->raw(), b->raw()};
  const int64_t keep[] = {0};
  std::vector<BufferPtr> results;
  executable->Execute(FirstDevice(), arguments, 2, keep, 1, &results);
  EXPECT_FALSE(a->IsDeleted());
  EXPECT_EQ(ReadBack<float>(*results[0]), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(ReadBack<float>(*a), (std::vector<float>{1, 2, 3, 4}));
}

TEST(ExecutableTest, BadProgramTextGivesThePluginsText) {
  const std::string text = ErrorOf([] { CompileOn(0, "module { func.func public @main() { stablehlo.nonsense } }"); });
  EXPECT_TRUE(text.starts_with("compile: ")) << text;
  EXPECT_TRUE(Contains(text, "nonsense")) << text;
}

TEST(ExecutableTest, WrongExpectationsAreRefused) {
  EXPECT_EQ(ErrorOf([] { CompileOn(0, kAdd, {kF4, kF4}); }), "executable: expected 2 outputs, got 1");
  EXPECT_EQ(ErrorOf([] { CompileOn(0, kAdd, {TensorType{DType::kFloat64, {4}}}); }),
            "executable: expected output 0 to be tensor<4xf64>, got tensor<4xf32>");
  EXPECT_EQ(ErrorOf([] { CompileOn(7, kAdd); }), "compile: expected a device below 2, got 7");
  auto executable = CompileOn(0, kAdd);
  BufferPtr a = Upload({1, 2, 3, 4});
  const PJRT_Buffer* arguments[] = {a->raw()};
  std::vector<BufferPtr> results;
  EXPECT_TRUE(ErrorOf([&] {
                executable->Execute(FirstDevice(), arguments, 1, nullptr, 0, &results);
              }).starts_with("execute: "));
  EXPECT_TRUE(results.empty());
}

TEST(ExecutableTest, SerializesAndLoads) {
  for (int device : {0, 1}) {
    const std::string bytes = CompileOn(device, kAdd)->Serialize();
    CompileOptions options;
    options.device_ordinal = device;
    auto loaded = TestClient().Deserialize(bytes, options, {kF4});
    Device* where = TestClient().devices()[static_cast<size_t>(device)].get();
    BufferPtr a = Upload({1, 2, 3, 4}, where);
    const PJRT_Buffer* arguments[] = {a->raw(), a->raw()};
    std::vector<BufferPtr> results;
    loaded->Execute(where, arguments, 2, nullptr, 0, &results);
    EXPECT_EQ(ReadBack<float>(*results[0]), (std::vector<float>{2, 4, 6, 8}));
  }
  EXPECT_THROW(TestClient().Deserialize("not an executable", {}, {kF4}), Error);
}

TEST(OptionsTest, OverridesReachTheCompiler) {
  constexpr char kMaximum[] =
      R"(module { func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.maximum %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32> } })";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto values = ReadBack<float>(*RunProgram(kMaximum, {kF4}, {Upload({nan, 1, 2, nan}), Upload({1, nan, 1, nan})})[0]);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_TRUE(std::isnan(values[1]));
  EXPECT_EQ(values[2], 2.0f);
  CompileOptions unknown;
  unknown.overrides = {{"xla_no_such_option", "true"}};
  EXPECT_TRUE(Contains(ErrorOf([&] { TestClient().Compile(kMaximum, unknown, {kF4}); }), "xla_no_such_option"));
}

TEST(OptionsTest, RoundingInsideAProgramIsKept) {
  constexpr char kRound[] = R"(module { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xbf16>
    %1 = stablehlo.convert %0 : (tensor<4xbf16>) -> tensor<4xf32>
    return %1 : tensor<4xf32> } })";
  auto values = ReadBack<float>(*RunProgram(kRound, {kF4}, {Upload({1.0f + 1.0f / 1024, 3, 0, -1})})[0]);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], 3.0f);
}

TEST(ThreadsTest, OneExecutableFromManyThreads) {
  auto executable = CompileOn(0, kAdd);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const float base = static_cast<float>(t);
      for (int i = 0; i < 200; ++i) {
        BufferPtr a = Upload({base, base, base, base}), b = Upload({1, 2, 3, 4});
        const PJRT_Buffer* arguments[] = {a->raw(), b->raw()};
        std::vector<BufferPtr> results;
        executable->Execute(FirstDevice(), arguments, 2, nullptr, 0, &results);
        if (ReadBack<float>(*results[0])[3] != base + 4) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace torch_tpu
