// A graph that compile, or a loaded artifact, calls with tensors: one program per layout of its arguments.
//
// A call compares its arguments with the layouts of the programs it has (sizes, strides, what their storages hold,
// plain numbers), and launches the one that fits. What the graph mutates is donated where nobody else holds the memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "dispatch/capture.h"
#include "runtime/runtime.h"

namespace torch_tpu {

class CompiledGraph {
 public:
  // A tensor on the device or on the CPU (then its value is uploaded at each call), or, with `tensor` null, a word that
  // is part of the key: a plain number, or whatever else decides the program.
  struct Argument {
    const at::Tensor* tensor = nullptr;
    uint64_t word = 0;
  };
  struct Variant {
    CapturedGraph graph;
    std::vector<uint64_t> words;  // of arguments that are no tensors
    std::vector<bool> is_tensor, on_host;
    std::vector<bool> host_outputs;  // to be read back to the CPU
    std::shared_ptr<Executable> executable;
    std::vector<std::pair<int, int>> donations;  // (input of the program, argument): may be given away
    std::string text;                            // StableHLO
    int64_t id = 0;
  };

  CompiledGraph(std::string name, int device) : name_(std::move(name)), device_(device) {}

  int device() const { return device_; }
  const std::string& name() const { return name_; }
  // The layouts that a capture for these arguments is made with. Entries of arguments without a tensor are empty.
  std::vector<TensorLayout> Layouts(std::span<const Argument> arguments) const;
  // nullptr: no program for such arguments yet. Variants stay where they are.
  const Variant* Find(std::span<const Argument> arguments);
  // Lowers and compiles. Holds no lock meanwhile. `host_outputs`: outputs that belong on the CPU.
  const Variant* Add(CapturedGraph graph, std::span<const Argument> arguments, std::vector<bool> host_outputs);
  // A program that was compiled elsewhere: `variant` complete but for its id.
  const Variant* Add(std::unique_ptr<Variant> variant);
  // Seconds per launch of the program alone, for benchmarks: the same inputs `repeats` times, nothing donated.
  double TimeLaunches(const Variant& variant, std::span<const Argument> arguments, int repeats);
  // Undefined tensors for outputs that are absent. Takes the queue lock; `arguments` must fit.
  std::vector<at::Tensor> Run(const Variant& variant, std::span<const Argument> arguments);
  std::vector<const Variant*> variants() const;

 private:
  bool Fits(const Variant& variant, std::span<const Argument> arguments) const;

  std::string name_;
  int device_;
  mutable std::mutex mutex_;  // of variants_
  std::vector<std::unique_ptr<Variant>> variants_;
  const Variant* last_ = nullptr;
};

}  // namespace torch_tpu
