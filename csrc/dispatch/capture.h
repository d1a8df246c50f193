// Ops recorded for a program that is made now and run later, on other tensors: compile, export, ahead of time.
//
// A capture owns a tape of its own and hands out abstract tensors: ordinary `tpu` tensors whose storages hold a type
// and no data (a Pending that no flush will ever compute). While a capture is this thread's current one, ops go on its
// tape as in fused mode, through the same walk, keys and entries; nothing is compiled or run. Reading an abstract value
// on the host throws kFailedPrecondition. What ends up in the inputs' storages is a mutation of that input; what the
// outputs share, they go on sharing.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/entry.h"
#include "dispatch/pending.h"
#include "dispatch/tape.h"
#include "program/graph.h"

namespace torch_tpu {

// How a tensor lies in its storage, and what the storage holds: all of a tensor that a program depends on.
struct TensorLayout {
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  Dims sizes, strides;
  int64_t offset = 0;
  size_t nbytes = 0;               // of the storage
  std::optional<TensorType> base;  // of the storage's value; absent: never written
  bool conjugate = false, negative = false;
  bool whole = false;  // reads exactly its storage's value (see IsWholeValue)

  bool operator==(const TensorLayout&) const = default;
};
// Caller holds the queue lock; the value may be pending.
TensorLayout LayoutOf(const at::Tensor& tensor);
// Of a tensor that was made with these sizes and strides and written as a whole: what a FakeTensor stands for.
TensorLayout LayoutFor(c10::ScalarType dtype, const Dims& sizes, const Dims& strides);

// A joined program and how its inputs and outputs meet tensors.
struct CapturedGraph {
  // Where a value comes from. All unset: a storage that nobody wrote.
  struct Source {
    int output = -1;     // of the program
    int argument = -1;   // the value that this argument's storage holds before the call
    BufferPtr constant;  // a buffer that the capture met
    bool unwritten() const { return output < 0 && argument < 0 && constant == nullptr; }
  };
  struct Input {
    int argument = -1;   // the value of this argument's storage
    int random = -1;     // the state of this use of a generator
    BufferPtr constant;  // otherwise
  };
  struct Output {
    bool defined = false;
    int argument = -1;  // shares this argument's storage; -1: has storage `storage` of the new ones
    int storage = -1;
    TensorLayout layout;
  };
  struct Storage {
    size_t nbytes = 0;
    Source value;
  };
  struct Store {  // argument's storage gets a new value
    int argument = -1;
    Source value;
  };
  struct RandomUse {
    std::optional<at::Generator> generator;  // absent: the device's default
    uint64_t words = 0;
  };

  int device = 0;
  Precision precision = Precision::kHighest;
  Graph graph;  // with aliases: which arguments' memory may be reused
  std::vector<Input> inputs;
  std::vector<TensorLayout> arguments;
  std::vector<Output> outputs;
  std::vector<Storage> storages;
  std::vector<Store> stores;
  std::vector<RandomUse> random;
  int64_t ops = 0;
};

class Capture {
 public:
  explicit Capture(int device);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // The next argument. One without a dtype stands for an argument that is no tensor: an undefined tensor.
  at::Tensor Argument(const TensorLayout& layout);
  // A body of control flow: a graph whose inputs are the capture's arguments, then `constants`.
  struct Region {
    std::shared_ptr<const Graph> graph;
    std::vector<BufferPtr> constants;
  };
  // Ends this capture as a region. `outputs` are given as dense values; mutations are an error.
  Region FinishRegion(const std::vector<at::Tensor>& outputs);
  // Records an internal row with regions ("tpu::cond"): its arguments are `lists` (a list of one is a tensor argument
  // where `single` says so) and the regions' constants. Gives its results.
  std::vector<at::Tensor> ControlFlow(const char* row, const std::vector<std::vector<at::Tensor>>& lists,
                                      const std::vector<bool>& single, std::vector<Region> regions);

  // Joins what was recorded. Undefined outputs stay undefined. The capture is done with afterwards.
  CapturedGraph Finish(const std::vector<at::Tensor>& outputs);

  // The capture of this thread, which autograd's threads inherit with the rest of its settings; nullptr: none.
  static Capture* Current();
  // Makes `capture` (nullptr: none) the thread's while it lives.
  class Scope {
   public:
    explicit Scope(Capture* capture);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Capture* before_;
  };

  int device() const { return device_; }
  uint64_t id() const { return id_; }
  Tape& tape() { return tape_; }
  // For recomputation: the state that the next draw of the default generator has, as a tensor of two words; and draws
  // that begin at such a state (undefined: the generator's own again).
  at::Tensor SaveRandomState();
  void UseRandomState(const at::Tensor& state);
  // The state with which an op draws `words` 32-bit words next, in eager's order.
  Tape::Ref RandomState(const at::Generator* generator, uint64_t words);

 private:
  struct Random {
    std::optional<at::Generator> generator;
    Tape::Ref state;
    uint64_t words;
  };

  Tape::Ref RefOf(const StorageContext& context);
  Tape::Ref StateAt(Random& use, uint64_t words);

  int device_;
  uint64_t id_;
  Tape tape_;
  std::vector<at::Tensor> arguments_;
  std::vector<std::shared_ptr<Pending>> values_;  // of the arguments, null where never written
  std::vector<TensorLayout> layouts_;
  std::vector<Random> random_;
  std::optional<Random> replayed_;
  std::deque<Entry> entries_;  // of the capture's own steps: tapes refer to entries
};

}  // namespace torch_tpu
