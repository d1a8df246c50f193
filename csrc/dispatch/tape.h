// Fused mode: ops are written on a tape, and run as one program when a value is needed.
//
// A step of the tape is an op's entry (types only, see entry.h) and references to its inputs. The tape's words are its
// fingerprint: a tape that comes again finds its executable without building anything. What nobody holds is not an
// output; what a dropped buffer held may be overwritten.
#pragma once

#include <cstdint>
#include <memory>
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
  double milliseconds = 0;  // on the host: lowering, compiling or loading, and the launch
};

class Tape {
 public:
  static Tape& Of(int device);

  // A reference to an operand: a value of this tape, or (negative, ~index) a buffer.
  using Ref = int32_t;
  // Buffers of storages are one input however often they are read; host values are one each, so that equal numbers make
  // no other program than different ones.
  Ref Input(const BufferPtr& buffer, bool shared);
  Ref Reference(const Pending& pending) const { return pending.id; }
  // Appends a step; gives its outputs. `replaced[i]`: the value output i takes the place of, kNone when it replaces
  // none.
  static constexpr Ref kNone = INT32_MIN;
  std::vector<std::shared_ptr<Pending>> Add(const Entry& entry, const std::vector<Ref>& refs,
                                            const std::vector<Ref>& replaced);

  // After a step's outputs have found their storages: cuts a loop, bounds what is held.
  void EndStep();
  // Ops of two matmul precisions don't share a program.
  void SetPrecision(int precision);

  // Computes every value that somebody still holds. Throws what lowering, compiling or launching throws; the values
  // then keep it.
  void Flush(const char* reason);
  bool empty() const { return steps_.empty(); }
  std::vector<FlushRecord> TakeRecords();

 private:
  explicit Tape(int device) : device_(device) {}
  struct Step {
    const Entry* entry;
    int32_t first_ref, first_value;
  };
  struct Output {
    int32_t id;
    std::shared_ptr<Pending> pending;  // null: only a later step needs it
  };

  bool Repeats() const;
  void Cut(size_t steps);
  std::vector<BufferPtr> RunSteps(size_t steps, const std::vector<Output>& outputs, const char* reason);
  std::shared_ptr<Executable> Program(size_t steps, const std::vector<Output>& outputs,
                                      const std::vector<std::pair<int32_t, int32_t>>& aliases, bool* compiled);
  int32_t OriginInput(int32_t id) const;  // the tape's input whose place value `id` took; -1: none
  void Clear();

  int device_;
  std::vector<Step> steps_;
  std::vector<Ref> refs_;
  std::vector<BufferPtr> inputs_;
  std::unordered_map<const Buffer*, int32_t> input_index_;
  std::vector<std::weak_ptr<Pending>> values_;
  std::vector<Ref> origins_;  // per value: what it replaced
  int64_t bytes_ = 0;         // of recorded values
  int precision_ = -1;
  std::unordered_map<std::string, std::shared_ptr<Executable>> programs_;
  std::vector<FlushRecord> records_;
};

}  // namespace torch_tpu
