// The walk over a call's arguments: key, operands, and where results go. Lives on the caller's stack, under the queue
// lock.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <string_view>
#include <vector>

#include "device/storage.h"
#include "dispatch/bound_op.h"
#include "dispatch/pending.h"
#include "program/view.h"

namespace torch_tpu {

class Capture;

// How one tensor argument (or list element) enters the program.
struct TensorUse {
  const c10::TensorImpl* impl = nullptr;
  StorageContext* context = nullptr;  // null for a host number
  int input = -1;   // program input of its base value; -1: the storage was never written (or it is not read)
  int starts = -1;  // program input of its slice starts
  int plan = -1;    // index into plans; -1: the base itself
  bool wrapped = false;
  bool fills = false;  // written: replaces the storage's value
  bool undefined = false;
};

struct ScalarUse {
  int input = -1;  // -1: part of the program
  DType category = DType::kInvalid;
  double constant = 0;
};

// An operand of the program: a buffer, or a value that fused mode has recorded.
struct InputRef {
  Buffer* buffer = nullptr;
  Pending* pending = nullptr;
  StorageContext* owner = nullptr;   // null for host values
  int kept = -1;                     // index into the walk's own references
  const TensorType* host = nullptr;  // of a host value that goes on a tape as it is
  int first_word = -1;               // of that value
  const TensorType& type() const {
    return buffer != nullptr ? buffer->type() : pending != nullptr ? *pending->type : *host;
  }
};

class Walk {
 public:
  Walk(const BoundOp& op, int device);

  // Finds the call's device: `otherwise` when no argument is a tpu tensor. Throws on tensors of two devices.
  static int FindDevice(const BoundOp& op, const torch::jit::Stack& stack, size_t begin, int otherwise);
  // Caller holds the device's queue lock.
  void Run(const torch::jit::Stack& stack, size_t begin);

  std::string_view key() const { return {reinterpret_cast<const char*>(key_.data()), key_.size() * sizeof(uint64_t)}; }
  int device() const { return device_; }
  bool fused() const { return fused_; }
  const c10::SmallVectorImpl<InputRef>& inputs() const { return inputs_; }
  const BufferPtr& reference(const InputRef& input) const {
    return input.owner ? input.owner->value : kept_[input.kept];
  }
  const c10::SmallVectorImpl<TensorUse>& tensors() const { return tensors_; }
  const c10::SmallVectorImpl<ScalarUse>& scalars() const { return scalars_; }
  const std::vector<ViewPlan>& plans() const { return plans_; }
  int64_t largest_numel() const { return largest_; }
  const at::Generator* generator() const { return generator_.defined() ? &generator_ : nullptr; }
  Capture* capture() const { return capture_; }
  // A random op's state, the last input.
  void AddState(const uint64_t (&words)[2]);
  const uint64_t* words(const InputRef& input) const { return words_.data() + input.first_word; }

 private:
  void Tensor(const at::Tensor& tensor, const BoundOp::Param& param);
  void HostNumber(const at::Tensor& tensor, TensorUse use);
  void Number(const c10::IValue& value, const BoundOp::Param& param);
  void Ints(const c10::IValue& value);
  int Input(StorageContext& owner);
  int Kept(BufferPtr buffer);
  int Starts(const Dims& starts);
  // Host values are words of their own on a tape (Tape::Words), and buffers in strict mode and in captures.
  bool packs() const { return fused_ && capture_ == nullptr; }
  int Words(const TensorType& type, std::initializer_list<uint64_t> words);
  void Push(uint64_t word) { key_.push_back(word); }
  void PushAll(c10::IntArrayRef words);

  const BoundOp& op_;
  int device_;
  bool fused_;
  Capture* capture_;  // that records; nullptr: none
  int64_t largest_ = 1;
  at::Generator generator_;
  c10::SmallVector<uint64_t, 96> key_;
  c10::SmallVector<InputRef, 8> inputs_;
  c10::SmallVector<BufferPtr, 6> kept_;
  c10::SmallVector<uint64_t, 8> words_;
  c10::SmallVector<TensorUse, 8> tensors_;
  c10::SmallVector<ScalarUse, 4> scalars_;
  std::vector<ViewPlan> plans_;
};

}  // namespace torch_tpu
