// Views over an immutable base value: solving (sizes, strides, offset) into slices and transposes, reading and writing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tensor_type.h"
#include "program/builder.h"

namespace torch_tpu {

// A strided view of a storage, in elements of `dtype`.
struct ViewSpec {
  DType dtype = DType::kInvalid;
  Dims sizes, strides;
  int64_t offset = 0;
};

// How a view is read from (and written to) a base value of a given type. Static parts decide the program; `starts` are
// operands.
struct ViewPlan {
  enum class Kind : uint8_t {
    kIdentity,  // the base itself (perhaps reshaped)
    kBox,       // a strided box of the base reshaped to `box_dims`, its dims permuted
    kGather,    // element by element, by flat index
    kEmpty,     // no elements
  };
  Kind kind = Kind::kIdentity;
  DType dtype = DType::kInvalid;  // of the view; the base is bitcast first where it differs
  Dims box_dims;                  // base reshaped to this (row-major)
  Dims sizes, steps;              // of the box, per box dim
  std::vector<bool> dynamic;      // which box dims have an operand as start (others start at 0)
  Dims order;                     // view dims (without ones and broadcast) in box-dim order
  Dims view_sizes, view_strides;  // the whole view; strides count for kGather and broadcasts (stride 0)
  Dims starts;  // values of the operands, in box-dim order; kGather: {offset}. Not part of the program

  // Static parts as numbers, and back: what an OpCall carries.
  Dims Encode() const;
  static ViewPlan Decode(const Dims& data);
};

// `base` is the type of the base value. Throws Error when the view reaches outside of it.
ViewPlan SolveView(const TensorType& base, const ViewSpec& view);

// starts: i64[n] value with plan.starts (absent when empty).
Value ReadView(Builder& b, Value base, const ViewPlan& plan, Value starts);
// The base with the view's elements replaced by `update` (dims of the view, dtype of the view).
Value WriteView(Builder& b, Value base, const ViewPlan& plan, Value starts, Value update);

}  // namespace torch_tpu
