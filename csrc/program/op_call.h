// One call of an op, as plain data: what `emit` reads, what fingerprints are made of.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/tensor_type.h"
#include "program/builder.h"
#include "program/value.h"

namespace torch_tpu {

struct OpRow;  // lowering/table.h
struct Graph;  // program/graph.h

// How a tensor operand takes part in type promotion (PyTorch's result_type): python numbers weigh less than 0-d
// tensors, these less than tensors with dims. Dims are known from the value, so only the number's mark is data.
struct Operand {
  int32_t value = -1;    // id of a value of the Graph; -1: absent
  bool wrapped = false;  // came from a Python number
};

// One argument of the schema, in schema order. Which fields count depends on `kind`.
struct Arg {
  enum class Kind : uint8_t {
    kNone,        // None, or an undefined tensor
    kTensor,      // operands[first]
    kTensorList,  // operands[first .. first + count), entries may be absent
    kScalar,      // a number that is an operand: operands[first], 0-d f64, i64, bool or complex128 by its category
    kConstant,    // a number that is part of the program: `number`, `category`
    kScalarList,  // operands[first .. first + count), each like kScalar
    kInt,         // ints[0]
    kBool,        // ints[0]
    kInts,        // int[], bool[]
    kFloats,      // float[]
    kString,
    kDType,  // dtype
  };
  Kind kind = Kind::kNone;
  DType dtype = DType::kInvalid;  // kDType; category of kConstant and kScalar: kBool, kInt64, kFloat64 or kComplex128
  int32_t first = 0, count = 0;
  Dims ints;
  std::vector<double> floats;  // kFloats; kConstant: floats[0] (and [1], imaginary)
  std::string text;
};

struct OpCall {
  const OpRow* row = nullptr;
  std::vector<Arg> args;
  std::vector<Operand> operands;
  std::vector<std::shared_ptr<const Graph>> regions;  // of control flow: graphs that the op runs
};

// What emit functions read: the call's arguments by position, with operand ids resolved to the builder's values.
class Args {
 public:
  Args(const OpCall& call, Values operands) : call_(call), operands_(std::move(operands)) {}

  size_t size() const { return call_.args.size(); }
  const OpCall& call() const { return call_; }
  bool has(size_t i) const { return i < call_.args.size() && arg(i).kind != Arg::Kind::kNone; }
  Arg::Kind kind(size_t i) const { return arg(i).kind; }

  Value tensor(size_t i) const;            // throws when absent
  Value tensor_or_absent(size_t i) const;  // default Value when absent
  bool wrapped(size_t i) const;            // tensor i stands for a Python number (also true for kScalar, kConstant)
  Values tensors(size_t i) const;          // entries may be absent (optional lists)
  // The k-th entry of the call's operand list (Arg::first counts in it), as it is: numbers in their category.
  Value operand(size_t k) const { return operands_.at(k); }

  // A number (Scalar, float, or a constant) as a 0-d value of `dtype`, by PyTorch's cast.
  Value scalar(Builder& b, size_t i, DType dtype) const;
  std::vector<Value> scalars(Builder& b, size_t i, DType dtype) const;
  // Its category: kBool, kInt64, kFloat64 or kComplex128.
  DType category(size_t i) const;
  // Its value when it is part of the program.
  std::optional<double> constant(size_t i) const;

  int64_t integer(size_t i) const;
  int64_t integer_or(size_t i, int64_t otherwise) const;
  bool flag(size_t i) const;  // absent: false
  const Dims& ints(size_t i) const;
  Dims ints_or(size_t i, Dims otherwise) const;
  const std::vector<double>& floats(size_t i) const;
  DType dtype_or(size_t i, DType otherwise) const;
  std::string text(size_t i) const;  // absent: ""
  // Random ops (rows with kRandom): the ui64[2] state {seed, offset}, appended as the last operand.
  Value rng_state() const { return operands_.back(); }

 private:
  const Arg& arg(size_t i) const;
  const OpCall& call_;
  Values operands_;
};

}  // namespace torch_tpu
