// One overload of a row, bound to its schema: how its arguments become key, operands and results.
//
// A call walks its arguments once, writing the key and the operands. A hit runs the entry's executable. A miss runs
// PyTorch's meta kernel (errors and result strides are CPU's), builds the graph, compiles, and walks again.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/storage.h"
#include "dispatch/entry.h"
#include "dispatch/scalar_checks.h"
#include "lowering/table.h"
#include "program/view.h"

namespace torch_tpu {

class GraphMaker;
class Walk;
struct MetaResult;
struct Plan;

class BoundOp {
 public:
  enum class Form : uint8_t { kFunctional, kInplace, kOut };

  // `handle`: the dispatcher's operator, for its meta kernel; absent for internal ops.
  BoundOp(const OpRow& row, c10::FunctionSchema schema, Form form, std::optional<c10::OperatorHandle> handle);

  // Takes the arguments off the stack and puts the results on it, as a boxed kernel does. `device`: for ops with no
  // tensor argument; otherwise the first tpu tensor's.
  void Call(torch::jit::Stack* stack, int device = -1);

  const c10::FunctionSchema& schema() const { return schema_; }
  const OpRow& row() const { return row_; }
  Form form() const { return form_; }
  std::string name() const;  // "aten::add.Tensor"
  // Some program of this op holds products, so that their precision is part of its keys.
  bool precise() const { return precise_.load(std::memory_order_relaxed); }

  enum class Kind : uint8_t {
    kTensor,
    kTensorList,
    kScalar,
    kScalarList,
    kInt,
    kBool,
    kInts,
    kBools,
    kFloats,
    kString,
    kDType,
    kGenerator,
    kKeyOnly,  // memory_format, layout: matters to the meta kernel's strides, not to emit
    kIgnored,  // device, pin_memory
    kUnsupported,
  };
  struct Param {
    Kind kind = Kind::kUnsupported;
    bool is_out = false;             // an out= argument: written, not read, not an argument of emit
    bool written = false;            // in-place or out=
    bool one_is_constant = false;    // alpha, beta: 1 is worth a program of its own
    bool zero_is_constant = false;   // beta: 0 too
    bool small_is_constant = false;  // exponents
    bool always_constant = false;    // rows with kKeyScalars
  };
  const std::vector<Param>& params() const { return params_; }

 private:
  // A new entry for the call, and its key. Holds no lock while it compiles.
  std::unique_ptr<Entry> Miss(const torch::jit::Stack& stack, size_t begin, int device, std::string* key) const;
  Plan Snapshot(const torch::jit::Stack& stack, size_t begin, int device) const;
  // Tensor uses that results go to, in order; out= arguments of another size than the meta kernel's go to
  // entry->resizes.
  std::vector<size_t> WrittenUses(const Plan& plan, const torch::jit::Stack& stack, size_t begin,
                                  const std::optional<MetaResult>& meta, Entry* entry) const;
  bool AddResizes(const Plan& plan, const torch::jit::Stack& stack, size_t begin, const std::vector<TensorType>& types,
                  Entry* entry) const;
  static Dims ColumnMajor(const Dims& sizes, const Plan& plan);
  Dims OutStrides(const Dims& sizes, const Plan& plan) const;
  void ResolveMarks(torch::jit::Stack& stack, size_t begin) const;
  size_t CountResults(const torch::jit::Stack& stack, size_t begin) const;
  Entry::Result ResultOf(const TensorType& type, const at::Tensor* like, int32_t& value, GraphMaker& maker,
                         const Plan& plan) const;
  Dims StatedStrides(const Dims& sizes, const Plan& plan) const;
  void AddStores(const Plan& plan, const std::vector<size_t>& written, const std::vector<TensorType>& types,
                 int32_t first, GraphMaker& maker, Entry* entry) const;
  static void RefuseAsInput(const at::Tensor& out, const torch::jit::Stack& stack, size_t begin, size_t argument);
  static void ResizeOut(const at::Tensor& out, const Entry::Resize& resize);
  uint64_t RandomWords(const Walk& walk, const torch::jit::Stack& stack, size_t begin) const;
  int64_t LargestNumel(const Walk& walk, const torch::jit::Stack& stack, size_t begin) const;
  void Execute(const Entry& entry, Walk& walk, torch::jit::Stack* stack, size_t begin);
  // Fused mode: the op goes on the tape.
  void Record(const Entry& entry, Walk& walk, torch::jit::Stack* stack, size_t begin);
  void AddRandomState(Walk& walk, const torch::jit::Stack& stack, size_t begin) const;
  template <class Assign>  // assign(context, output): gives a new tensor's storage its value
  void PushResults(const Entry& entry, int device, torch::jit::Stack* stack, size_t begin, const Assign& assign);

  const OpRow& row_;
  c10::FunctionSchema schema_;
  Form form_;
  std::optional<c10::OperatorHandle> handle_;
  std::vector<Param> params_;
  ScalarCheck check_ = nullptr;
  mutable std::atomic<bool> precise_{false};
  std::mutex mutex_;  // of entries_
  std::unordered_map<std::string, std::unique_ptr<Entry>, KeyHash, std::equal_to<>> entries_;
};

// An op of ours, by schema text: "tpu::iota(Scalar start, ...) -> Tensor". With an out= argument ("..., *, Tensor(a!)
// out) -> Tensor(a!)") it writes where it is told.
class InternalOp {
 public:
  explicit InternalOp(const char* schema);
  std::vector<at::Tensor> Run(torch::jit::Stack arguments, int device);

 private:
  std::unique_ptr<BoundOp> op_;
};

}  // namespace torch_tpu
