// Program -> executable, through a memory cache and a disk cache. Keys are named parts, so that a miss can be
// explained.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compile/disk_cache.h"
#include "compile/misses.h"
#include "program/graph.h"
#include "runtime/runtime.h"

namespace torch_tpu {

struct CacheStats {
  int64_t requests = 0, memory_hits = 0, disk_hits = 0, compilations = 0, disk_errors = 0;
  double compile_seconds = 0, load_seconds = 0;
};

class Compiler {
 public:
  // The disk cache is the environment's (TORCH_TPU_CACHE...), or `disk`.
  explicit Compiler(Client* client);
  Compiler(Client* client, DiskCache disk);

  // Thread-safe. The same program, options and device ordinal give the same executable. Threads that ask for the same
  // one at the same time wait for one compilation; no lock is held meanwhile, and a failed compilation is not
  // remembered.
  std::shared_ptr<Executable> Compile(const Program& program, const CompileOptions& options);
  CacheStats stats() const;
  void ClearMemory();
  // Why programs were compiled since the last call.
  std::vector<MissExplanation> TakeMisses() { return misses_.Take(disk_); }
  const DiskCache& disk() const { return disk_; }
  // What this plugin's programs need by default (NaN-keeping min and max on CPU, ...).
  CompileOptions DefaultOptions(int device_ordinal) const;

  // Named parts of a program's key, in order: program, outputs, options, plugin, platform, device kind, host CPU
  // features.
  std::vector<KeyPart> KeyParts(const Program& program, const CompileOptions& options) const;

 private:
  using Pending = std::shared_future<std::shared_ptr<Executable>>;

  std::shared_ptr<Executable> Make(const std::vector<KeyPart>& parts, const std::string& key, const Program& program,
                                   const CompileOptions& options);
  std::shared_ptr<Executable> Load(const std::string& key, const Program& program, const CompileOptions& options);

  Client* client_;
  DiskCache disk_;
  std::vector<KeyPart> platform_parts_;  // the parts that do not depend on the program
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Pending> memory_;
  CacheStats stats_;
  MissLog misses_;
};

}  // namespace torch_tpu
