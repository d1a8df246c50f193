#include "runtime/compiled.h"

#include <utility>

#include "plugin/call.h"
#include "runtime/buffer_type.h"

namespace torch_tpu {
namespace {

constexpr char kReading[] = "reading an executable";

}  // namespace

Compiled Compiled::Of(const Client& client, PJRT_LoadedExecutable* loaded) {
  auto args = PJRT_ARGS(PJRT_LoadedExecutable_GetExecutable);
  args.loaded_executable = loaded;
  Call(client.plugin(), &PJRT_Api::PJRT_LoadedExecutable_GetExecutable, args, kReading);
  return Compiled(client.shared_plugin(), args.executable);
}

Compiled::~Compiled() {
  if (raw_ == nullptr) return;
  auto args = PJRT_ARGS(PJRT_Executable_Destroy);
  args.executable = raw_;
  CallQuietly(*plugin_, &PJRT_Api::PJRT_Executable_Destroy, args);
}

Compiled::Compiled(Compiled&& other) noexcept
    : plugin_(std::move(other.plugin_)), raw_(std::exchange(other.raw_, nullptr)) {}

std::string Compiled::name() const {
  auto args = PJRT_ARGS(PJRT_Executable_Name);
  args.executable = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Executable_Name, args, kReading);
  return std::string(args.executable_name, args.executable_name_size);
}

int64_t Compiled::num_replicas() const {
  auto args = PJRT_ARGS(PJRT_Executable_NumReplicas);
  args.executable = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Executable_NumReplicas, args, kReading);
  return static_cast<int64_t>(args.num_replicas);
}

int64_t Compiled::num_partitions() const {
  auto args = PJRT_ARGS(PJRT_Executable_NumPartitions);
  args.executable = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Executable_NumPartitions, args, kReading);
  return static_cast<int64_t>(args.num_partitions);
}

void Compiled::CheckOutputs(const std::vector<TensorType>& expected) const {
  auto count = PJRT_ARGS(PJRT_Executable_NumOutputs);
  count.executable = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Executable_NumOutputs, count, kReading);
  Check(count.num_outputs == expected.size(), "executable: expected ", expected.size(), " outputs, got ",
        count.num_outputs);
  if (expected.empty() || !Has(*plugin_, &PJRT_Api::PJRT_Executable_OutputElementTypes) ||
      !Has(*plugin_, &PJRT_Api::PJRT_Executable_OutputDimensions)) {
    return;
  }
  auto types = PJRT_ARGS(PJRT_Executable_OutputElementTypes);
  types.executable = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Executable_OutputElementTypes, types, kReading);
  auto shapes = PJRT_ARGS(PJRT_Executable_OutputDimensions);
  shapes.executable = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Executable_OutputDimensions, shapes, kReading);
  Check(types.num_output_types == expected.size() && shapes.num_outputs == expected.size(), "executable: expected ",
        expected.size(), " output types, got ", types.num_output_types, " types and ", shapes.num_outputs, " shapes");
  const int64_t* dims = shapes.dims;
  for (size_t i = 0; i < expected.size(); ++i) {
    TensorType got{FromBufferType(types.output_types[i]), Dims(dims, dims + shapes.dim_sizes[i])};
    dims += shapes.dim_sizes[i];
    Check(got == expected[i], "executable: expected output ", i, " to be ", expected[i].ToString(), ", got ",
          got.ToString());
  }
}

CompiledMemory Compiled::memory() const {
  auto args = PJRT_ARGS(PJRT_Executable_GetCompiledMemoryStats);
  args.executable = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Executable_GetCompiledMemoryStats, args, "memory of an executable");
  return {args.generated_code_size_in_bytes, args.argument_size_in_bytes, args.output_size_in_bytes,
          args.alias_size_in_bytes,          args.temp_size_in_bytes,     args.peak_memory_in_bytes};
}

std::map<std::string, double> Compiled::cost_analysis() const {
  auto args = PJRT_ARGS(PJRT_Executable_GetCostAnalysis);
  args.executable = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Executable_GetCostAnalysis, args, "cost of an executable");
  std::map<std::string, double> costs;
  for (size_t i = 0; i < args.num_properties; ++i) {
    const PJRT_NamedValue& value = args.properties[i];
    const std::string name(value.name, value.name_size);
    if (value.type == PJRT_NamedValue_kFloat) costs[name] = static_cast<double>(value.float_value);
    if (value.type == PJRT_NamedValue_kInt64) costs[name] = static_cast<double>(value.int64_value);
  }
  return costs;
}

std::string Compiled::Serialize() const {
  auto args = PJRT_ARGS(PJRT_Executable_Serialize);
  args.executable = raw_;
  Call(*plugin_, &PJRT_Api::PJRT_Executable_Serialize, args, "serializing an executable");
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

Compiled::Optimized Compiled::optimized_program() const {
  // Called twice: for the size, then for the bytes.
  auto program = PJRT_STRUCT(PJRT_Program);
  auto args = PJRT_ARGS(PJRT_Executable_OptimizedProgram);
  args.executable = raw_;
  args.program = &program;
  Call(*plugin_, &PJRT_Api::PJRT_Executable_OptimizedProgram, args, "optimized program of an executable");
  Optimized optimized;
  optimized.code.resize(program.code_size);
  program.code = optimized.code.data();
  Call(*plugin_, &PJRT_Api::PJRT_Executable_OptimizedProgram, args, "optimized program of an executable");
  optimized.format.assign(program.format, program.format_size);
  return optimized;
}

}  // namespace torch_tpu
