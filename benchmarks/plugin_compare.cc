// Compares PJRT plugins on this host: plugin_compare PATH...
//
// Prints a Markdown table, a column a plugin: best time of several runs. Each plugin runs in a process of its own, so
// that their thread pools do not meet, and takes its turn in each of several rounds, so that a busy minute hits all of
// them; the parent only keeps the best and puts the columns together.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plugin/plugin.h"
#include "runtime/runtime.h"

namespace torch_tpu {
namespace {

using Clock = std::chrono::steady_clock;
using Row = std::pair<std::string, double>;  // what, milliseconds or microseconds

double Milliseconds(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

CompileOptions Options() {
  CompileOptions options;
  options.overrides = {{"xla_cpu_enable_fast_min_max", "false"},
                       {"xla_cpu_enable_fast_math", "false"},
                       {"xla_allow_excess_precision", "false"}};
  return options;
}

struct Work {
  std::string name, text;
  std::vector<TensorType> inputs;
  TensorType output;
};

std::string Function(const std::vector<TensorType>& inputs, const TensorType& output, const std::string& body) {
  std::string arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    arguments += (i > 0 ? ", %a" : "%a") + std::to_string(i) + ": " + inputs[i].ToString();
  }
  return "module { func.func public @main(" + arguments + ") -> " + output.ToString() + " {\n" + body +
         "return %r : " + output.ToString() + "\n} }";
}

Work Matmul(DType dtype) {
  const TensorType type{dtype, {1024, 1024}};
  const std::string t = type.ToString();
  return {"matmul 1024^3 " + std::string(Name(dtype)),
          Function({type, type}, type,
                   "%r = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : (" + t + ", " + t + ") -> " +
                       t + "\n"),
          {type, type},
          type};
}

Work Convolution() {
  const TensorType image{DType::kFloat32, {8, 64, 56, 56}}, filter{DType::kFloat32, {64, 64, 3, 3}};
  return {"convolution 8x64x56x56, 64 3x3 filters",
          Function({image, filter}, image,
                   "%r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
                   "window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
                   "feature_group_count = 1 : i64} : (" +
                       image.ToString() + ", " + filter.ToString() + ") -> " + image.ToString() + "\n"),
          {image, filter},
          image};
}

Work Softmax() {
  const TensorType type{DType::kFloat32, {512, 4096}};
  const std::string t = type.ToString(), row = "tensor<512xf32>", scalar = "tensor<f32>";
  const std::string reduced = " across dimensions = [1] : (" + t + ", " + scalar + ") -> " + row + "\n";
  const std::string spread = ", dims = [0] : (" + row + ") -> " + t + "\n";
  return {"softmax 512x4096",
          Function({type}, type,
                   "%low = stablehlo.constant dense<0xFF800000> : " + scalar +
                       "\n%zero = stablehlo.constant dense<0.0> : " + scalar +
                       "\n%max = stablehlo.reduce(%a0 init: %low) applies stablehlo.maximum" + reduced +
                       "%m = stablehlo.broadcast_in_dim %max" + spread + "%d = stablehlo.subtract %a0, %m : " + t +
                       "\n%e = stablehlo.exponential %d : " + t +
                       "\n%sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add" + reduced +
                       "%s = stablehlo.broadcast_in_dim %sum" + spread + "%r = stablehlo.divide %e, %s : " + t + "\n"),
          {type},
          type};
}

Work Sort() {
  const TensorType type{DType::kFloat32, {1 << 20}};
  const std::string t = type.ToString();
  return {"sort 1M f32",
          Function({type}, type,
                   "%r = \"stablehlo.sort\"(%a0) ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n"
                   "%c = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\nstablehlo.return %c "
                   ": tensor<i1>\n"
                   "}) {dimension = 0 : i64, is_stable = true} : (" +
                       t + ") -> " + t + "\n"),
          {type},
          type};
}

Work Chain(int64_t size) {
  const TensorType type{DType::kFloat32, {size}};
  const std::string t = type.ToString() + "\n";
  return {"tanh, multiply, exp, add on " + (size == 1 << 20 ? "1M" : std::to_string(size)),
          Function({type}, type,
                   "%0 = stablehlo.tanh %a0 : " + t + "%1 = stablehlo.multiply %0, %a0 : " + t +
                       "%2 = stablehlo.exponential %1 : " + t + "%r = stablehlo.add %2, %a0 : " + t),
          {type},
          type};
}

Work SmallAdd() {
  const TensorType type{DType::kFloat32, {16, 16}};
  return {"add 16x16",
          Function({type, type}, type, "%r = stablehlo.add %a0, %a1 : " + type.ToString() + "\n"),
          {type, type},
          type};
}

std::vector<BufferPtr> Inputs(Client& client, const Work& work) {
  std::vector<BufferPtr> buffers;
  for (const TensorType& type : work.inputs) {
    std::vector<char> bytes(type.bytes());
    uint64_t state = 1;
    for (int64_t i = 0; i < type.numel(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const float value = static_cast<float>(state >> 40) / (1 << 24) - 0.5f;
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      if (type.dtype == DType::kBFloat16) bits >>= 16;
      std::memcpy(bytes.data() + static_cast<size_t>(i) * ItemSize(type.dtype), &bits, ItemSize(type.dtype));
    }
    buffers.push_back(client.FromHost(client.devices()[0].get(), bytes.data(), type));
  }
  return buffers;
}

// Best time of one launch with its wait.
double RunTime(Client& client, const Work& work, const Executable& executable, int runs) {
  const std::vector<BufferPtr> inputs = Inputs(client, work);
  std::vector<const PJRT_Buffer*> raw;
  for (const BufferPtr& input : inputs) raw.push_back(input->raw());
  std::vector<BufferPtr> results;
  double best = 1e30;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    executable.Execute(client.devices()[0].get(), raw.data(), raw.size(), nullptr, 0, &results);
    results[0]->Await();
    best = std::min(best, Milliseconds(start));
  }
  return best;
}

// Best of several batches, per launch, in microseconds: creation and destruction of the result included, no wait.
double DispatchTime(Client& client, const Work& work, const Executable& executable) {
  const std::vector<BufferPtr> inputs = Inputs(client, work);
  const PJRT_Buffer* raw[] = {inputs[0]->raw(), inputs[1]->raw()};
  std::vector<BufferPtr> results;
  constexpr int kBatch = 2000;
  double best = 1e30;
  for (int batch = 0; batch < 20; ++batch) {
    const auto start = Clock::now();
    for (int i = 0; i < kBatch; ++i) {
      executable.Execute(client.devices()[0].get(), raw, 2, nullptr, 0, &results);
    }
    results[0]->Await();
    best = std::min(best, Milliseconds(start) * 1000 / kBatch);
  }
  return best;
}

template <class F>
double Best(int runs, F f) {
  double best = 1e30;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    f();
    best = std::min(best, Milliseconds(start));
  }
  return best;
}

std::vector<Row> Measure(const std::string& path) {
  std::vector<Row> rows;
  auto plugin = Plugin::Open({path, path});
  rows.emplace_back("PJRT API minor version", plugin->minor_version());
  rows.emplace_back("create a client, ms", Best(3, [&] { Client::Create(plugin, {1}); }));
  auto client = Client::Create(plugin, {1});
  for (const Work& work :
       {Matmul(DType::kFloat32), Matmul(DType::kBFloat16), Convolution(), Softmax(), Sort(), Chain(1 << 20)}) {
    auto executable = client->Compile(work.text, Options(), {work.output});
    rows.emplace_back(work.name + ", ms", RunTime(*client, work, *executable, 15));
  }
  for (const Work& work : {SmallAdd(), Chain(1024), Softmax()}) {
    rows.emplace_back("compile " + work.name + ", ms",
                      Best(8, [&] { client->Compile(work.text, Options(), {work.output}); }));
  }
  const Work small = Chain(1024);
  const std::string bytes = client->Compile(small.text, Options(), {small.output})->Serialize();
  rows.emplace_back("load " + small.name + ", serialized, ms",
                    Best(20, [&] { client->Deserialize(bytes, Options(), {small.output}); }));
  const Work add = SmallAdd();
  rows.emplace_back("launch " + add.name + ", us",
                    DispatchTime(*client, add, *client->Compile(add.text, Options(), {add.output})));
  return rows;
}

// Runs Measure in a child and reads its lines.
std::vector<Row> MeasureInChild(const std::string& path) {
  int ends[2];
  if (::pipe(ends) != 0) Fail(Code::kInternal, "pipe: ", std::strerror(errno));
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    std::string text;
    try {
      for (const auto& [what, value] : Measure(path)) text += what + "\t" + std::to_string(value) + "\n";
    } catch (const Error& error) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), error.what());
    }
    const ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char block[4096];
  for (ssize_t got; (got = ::read(ends[0], block, sizeof(block))) > 0;) text.append(block, static_cast<size_t>(got));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  std::vector<Row> rows;
  for (size_t at = 0; at < text.size();) {
    const size_t tab = text.find('\t', at), end = text.find('\n', at);
    rows.emplace_back(text.substr(at, tab - at), std::stod(text.substr(tab + 1, end - tab - 1)));
    at = end + 1;
  }
  return rows;
}

}  // namespace
}  // namespace torch_tpu

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: plugin_compare PLUGIN.so...\n");
    return 2;
  }
  std::vector<std::vector<torch_tpu::Row>> columns;
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 1; i < argc; ++i) {
      std::vector<torch_tpu::Row> rows = torch_tpu::MeasureInChild(argv[i]);
      if (round == 0) {
        columns.push_back(std::move(rows));
        continue;
      }
      std::vector<torch_tpu::Row>& best = columns[static_cast<size_t>(i - 1)];
      for (size_t row = 0; row < std::min(best.size(), rows.size()); ++row) {
        best[row].second = std::min(best[row].second, rows[row].second);
      }
    }
  }
  std::printf("| work |");
  for (size_t i = 0; i < columns.size(); ++i) std::printf(" plugin %zu |", i + 1);
  std::printf("\n|---|");
  for (size_t i = 0; i < columns.size(); ++i) std::printf("---|");
  std::printf("\n");
  size_t longest = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].size() > columns[longest].size()) longest = i;
  }
  for (size_t row = 0; row < columns[longest].size(); ++row) {
    std::printf("| %s |", columns[longest][row].first.c_str());
    for (const auto& column : columns) {
      if (row < column.size()) {
        std::printf(" %.4g |", column[row].second);
      } else {
        std::printf(" - |");
      }
    }
    std::printf("\n");
  }
  return 0;
}
