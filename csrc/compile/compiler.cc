#include "compile/compiler.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/env.h"
#include "base/error.h"
#include "compile/hash.h"
#include "compile/host_cpu.h"
#include "plugin/plugin.h"

namespace torch_tpu {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Size and time of the file: cheaper than reading hundreds of megabytes, and they change with every release.
std::string DescribePlugin(const Plugin& plugin) {
  std::error_code error;
  const auto size = std::filesystem::file_size(plugin.path(), error);
  const auto time = std::filesystem::last_write_time(plugin.path(), error);
  return Cat("API ", plugin.version_string(), ", ", error ? 0 : size, " bytes, written ",
             error ? 0 : time.time_since_epoch().count());
}

std::string DescribeOptions(const CompileOptions& options) {
  std::string text = Cat("replicas=", options.num_replicas, " partitions=", options.num_partitions,
                         " device=", options.device_ordinal);
  for (const auto& [name, value] : options.overrides) text += Cat(" ", name, "=", value);
  if (auto flags = env::Get(env::Var::kXlaFlags)) text += Cat(" XLA_FLAGS=", *flags);
  return text;
}

// A debugging aid: a folder that cannot be written is no reason to fail.
void Dump(const std::string& key, const Program& program) {
  const std::optional<std::string> folder = env::Get(env::Var::kDumpTo);
  if (!folder) return;
  std::error_code error;
  std::filesystem::create_directories(*folder, error);
  std::ofstream(*folder + "/" + HexOf(Hash64(key)) + ".mlir") << program.text;
}

}  // namespace

Compiler::Compiler(Client* client) : Compiler(client, DiskCache::FromEnv()) {}

Compiler::Compiler(Client* client, DiskCache disk) : client_(client), disk_(std::move(disk)) {
  platform_parts_ = {
      {"plugin", DescribePlugin(client->plugin())},
      {"platform", client->platform_name() + " " + client->platform_version()},
      {"device kind", client->devices().empty() ? "none" : client->devices().front()->kind()},
      {"host CPU", client->is_cpu() ? HostCpu() : "any"},
  };
}

std::vector<KeyPart> Compiler::KeyParts(const Program& program, const CompileOptions& options) const {
  std::string outputs;
  for (const TensorType& type : program.outputs) outputs += type.ToString() + " ";
  std::vector<KeyPart> parts = {{"program", program.text}, {"outputs", outputs}, {"options", DescribeOptions(options)}};
  parts.insert(parts.end(), platform_parts_.begin(), platform_parts_.end());
  return parts;
}

std::shared_ptr<Executable> Compiler::Compile(const Program& program, const CompileOptions& options) {
  const std::vector<KeyPart> parts = KeyParts(program, options);
  const std::string key = JoinParts(parts);
  std::promise<std::shared_ptr<Executable>> promise;
  Pending pending;
  {
    std::lock_guard lock(mutex_);
    ++stats_.requests;
    if (auto found = memory_.find(key); found != memory_.end()) {
      ++stats_.memory_hits;
      pending = found->second;
    } else {
      memory_.emplace(key, promise.get_future().share());
    }
  }
  if (pending.valid()) return pending.get();
  try {
    std::shared_ptr<Executable> executable = Make(parts, key, program, options);
    promise.set_value(executable);
    return executable;
  } catch (...) {
    {
      std::lock_guard lock(mutex_);
      memory_.erase(key);
    }
    promise.set_exception(std::current_exception());
    throw;
  }
}

std::shared_ptr<Executable> Compiler::Load(const std::string& key, const Program& program,
                                           const CompileOptions& options) {
  std::string bytes;
  if (!disk_.Read(key, &bytes)) return nullptr;
  const auto start = Clock::now();
  try {
    std::shared_ptr<Executable> executable = client_->Deserialize(bytes, options, program.outputs);
    std::lock_guard lock(mutex_);
    ++stats_.disk_hits;
    stats_.load_seconds += SecondsSince(start);
    return executable;
  } catch (const Error&) {
    // The plugin's own format has checks of its own; compiling again replaces the entry.
    disk_.Remove(key);
    std::lock_guard lock(mutex_);
    ++stats_.disk_errors;
    return nullptr;
  }
}

std::shared_ptr<Executable> Compiler::Make(const std::vector<KeyPart>& parts, const std::string& key,
                                           const Program& program, const CompileOptions& options) {
  Dump(key, program);
  if (auto executable = Load(key, program, options)) return executable;
  // Another process may be compiling the same: then its entry is there when it lets go.
  const DiskCache::Lock lock = disk_.LockFor(key);
  if (lock.held()) {
    if (auto executable = Load(key, program, options)) return executable;
  }
  const auto start = Clock::now();
  std::shared_ptr<Executable> executable = client_->Compile(program.text, options, program.outputs);
  {
    std::lock_guard lock(mutex_);
    ++stats_.compilations;
    stats_.compile_seconds += SecondsSince(start);
  }
  misses_.Note(parts, std::filesystem::path(disk_.PathOf(key)).filename().string(), SecondsSince(start));
  if (disk_.enabled()) {
    try {
      disk_.Write(key, executable->Serialize());
    } catch (const Error&) {  // a plugin, or a program, that cannot be serialized
      std::lock_guard lock(mutex_);
      ++stats_.disk_errors;
    }
  }
  return executable;
}

CacheStats Compiler::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void Compiler::ClearMemory() {
  std::lock_guard lock(mutex_);
  memory_.clear();
}

CompileOptions Compiler::DefaultOptions(int device_ordinal) const {
  CompileOptions options;
  options.device_ordinal = device_ordinal;
  if (client_->is_cpu()) {
    // Without the first, max(NaN, 1) can be 1. The others pin what must not follow a plugin's defaults: no fast math,
    // and float32 -> bfloat16 -> float32 inside one program rounds, so that a fused result is a strict one's.
    options.overrides = {{"xla_cpu_enable_fast_min_max", "false"},
                         {"xla_cpu_enable_fast_math", "false"},
                         {"xla_allow_excess_precision", "false"}};
  }
  return options;
}

}  // namespace torch_tpu
