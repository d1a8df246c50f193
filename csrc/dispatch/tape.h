// Fused mode: ops are written on a tape, and run as one program when a value is needed.
//
// A step of the tape is an op's entry (types only, see entry.h) and references to its inputs. The tape's words are its
// fingerprint: a tape that comes again finds its executable without building anything. What nobody holds is not an
// output; what a dropped buffer held may be overwritten.
#pragma once

#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dispatch/entry.h"
#include "dispatch/pending.h"

namespace torch_tpu {

// One flush, as torch_tpu.explain() shows it.
struct FlushRecord {
  std::string reason;
  int64_t ops = 0, inputs = 0, outputs = 0, donated = 0;
  bool compiled = false;
  int64_t memory = 0;       // bytes: the program's inputs, outputs and temporaries; 0 where the plugin does not say
  double milliseconds = 0;  // on the host: lowering, compiling or loading, and the launch
};

class Tape {
 public:
  static Tape& Of(int device);
  // One of a capture's own: it is joined, never flushed.
  Tape(int device, uint64_t capture) : device_(device), capture_(capture) {}

  // A reference to an operand: a value of this tape, or (negative) ~index of a buffer, or kWords - index of a host
  // value's first word.
  using Ref = int32_t;
  static constexpr Ref kWords = -(1 << 30);
  // Buffers of storages are one input however often they are read; other buffers are one each, so that equal numbers
  // make no other program than different ones.
  Ref Input(const BufferPtr& buffer, bool shared);
  // A host value of 64-bit words: floats as float64, everything else as integers. All of a tape's are one or two
  // operands.
  Ref Words(const TensorType& type, const uint64_t* words);
  Ref Placeholder(const TensorType& type);  // an input whose buffer comes later
  Ref Reference(const Pending& pending) const { return pending.id; }
  // From here on the program says at which line of the user's each step was recorded, and each step of a backward at
  // which its forward was.
  void KeepLocations() { keep_locations_ = true; }
  // Appends a step; gives its outputs. `replaced[i]`: the value output i takes the place of, kNone when it replaces
  // none.
  static constexpr Ref kNone = INT32_MIN;
  using Values = c10::SmallVector<std::shared_ptr<Pending>, 4>;
  Values Add(const Entry& entry, c10::ArrayRef<Ref> refs, c10::ArrayRef<Ref> replaced);

  // After a step's outputs have found their storages: cuts a loop, bounds what is held.
  void EndStep();
  // Ops of two matmul precisions don't share a program.
  void SetPrecision(int precision);

  // Computes every value that somebody still holds. Throws what lowering, compiling or launching throws; the values
  // then keep it.
  void Flush(const char* reason);
  bool empty() const { return steps_.empty(); }
  std::vector<FlushRecord> TakeRecords();

  // The first `steps` steps as one graph that gives `outputs`. Inputs of the graph are the tape's, in order, where
  // `used` is set and there is no literal; a literal is a call without operands that takes an input's place.
  Graph Join(size_t steps, const std::vector<Ref>& outputs, const std::vector<bool>& used,
             const std::vector<std::optional<OpCall>>& literals) const;
  // Inputs that `outputs` depend on.
  std::vector<bool> UsedInputs(const std::vector<Ref>& outputs) const;
  size_t size() const { return steps_.size(); }
  size_t num_inputs() const { return inputs_.size(); }
  int precision() const { return precision_ < 0 ? static_cast<int>(Precision::kHighest) : precision_; }
  const BufferPtr& buffer(size_t input) const { return inputs_[input]; }  // nullptr: a placeholder
  const TensorType& TypeOf(Ref ref) const;

 private:
  explicit Tape(int device) : device_(device) {}
  struct Step {
    const Entry* entry;
    int32_t first_ref, first_value;
    int32_t location;  // in locations_; -1: not kept
    bool recomputed;   // recorded by a backward with gradients on: what checkpointing computes anew
  };
  struct Output {
    int32_t id;
    std::shared_ptr<Pending> pending;  // null: only a later step needs it
  };

  bool Repeats() const;
  void Cut(size_t steps);
  std::vector<BufferPtr> RunSteps(size_t steps, const std::vector<Output>& outputs, const char* reason);
  struct Loaded {
    std::shared_ptr<Executable> executable;
    int64_t memory = 0;
  };
  const Loaded& Program(size_t steps, const std::vector<Output>& outputs,
                        const std::vector<std::pair<int32_t, int32_t>>& aliases, bool* compiled);
  std::string NameOf(size_t steps) const;
  int32_t Location();
  size_t StepOf(Ref value) const;
  // Steps that say again what an earlier one said, and are to be computed again all the same.
  std::vector<bool> Repeated(size_t steps) const;
  BufferPtr Upload(size_t kind);
  int32_t OriginInput(int32_t id) const;  // the tape's input whose place value `id` took; -1: none
  void Clear();

  int device_;
  uint64_t capture_ = 0;
  std::vector<Step> steps_;
  std::vector<Ref> refs_;
  std::vector<BufferPtr> inputs_;
  std::vector<TensorType> input_types_;
  std::unordered_map<const Buffer*, int32_t> input_index_;
  std::array<std::vector<uint64_t>, 2> words_;  // of host values: float64, int64
  // The last flush's words and their buffers, for when the same come again.
  std::array<std::vector<uint64_t>, 2> uploaded_;
  std::array<BufferPtr, 2> uploads_;
  std::vector<std::weak_ptr<Pending>> values_;
  std::vector<Ref> origins_;  // per value: what it replaced
  int64_t bytes_ = 0;         // of recorded values
  bool keep_locations_ = false;
  std::vector<std::string> locations_;
  std::unordered_map<uint64_t, int32_t> location_of_;  // autograd's sequence number -> of the forward
  int precision_ = -1;
  std::unordered_map<std::string, Loaded> programs_;
  std::vector<FlushRecord> records_;
};

}  // namespace torch_tpu
