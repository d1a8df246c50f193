// PyTorch's `x[i, :, j]`: a list of optional integer index tensors, one per dim.
#pragma once

#include "program/builder.h"

namespace torch_tpu {

struct IndexList {
  Dims dims;             // indexed dims of self, in order; empty: nothing is indexed
  Dims shape;            // common shape of the index tensors
  Dims kept;             // sizes of the dims that are not indexed
  int64_t position = 0;  // where `shape` goes among `kept`
  Value starts;          // int64 shape + [dims.size()], wrapped; out-of-range ones stay so
  Value in_range;        // bool of `shape`

  Dims ResultDims() const;  // kept with shape inserted
  Dims WindowDims() const;  // where the kept dims are in ResultDims()
};

// indices may be shorter than self's rank and have absent entries. Masks must have become integers before.
IndexList ResolveIndexList(Builder& b, const Values& indices, const Dims& self);

}  // namespace torch_tpu
