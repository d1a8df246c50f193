// Windows along single dims, shared by the pooling files: pools are done one dim at a time.
#pragma once

#include <vector>

#include "lowering/table.h"

namespace torch_tpu {

// The window of one dim.
struct PoolDim {
  int64_t dim;  // position in the tensor
  int64_t size, kernel, stride, padding, dilation, out;
};

// The last kernel.size() (2 or 3) dims of x. Lists of one number stand for all dims; an empty stride is the kernel.
std::vector<PoolDim> PoolDims(const Value& x, int spatial, const Dims& kernel, const Dims& stride, const Dims& padding,
                              const Dims& dilation, bool ceil_mode);

// Entry o of the result is entry o * stride + k * dilation - padding of x, `fill` outside of x.
Value WindowTap(Builder& b, Value x, const PoolDim& p, int64_t k, Value fill);
// Its transpose: entries go back to where they came from, zero elsewhere.
Value WindowTapBackward(Builder& b, Value grad, const PoolDim& p, int64_t k);
Value WindowSum(Builder& b, Value x, const PoolDim& p);
Value WindowSumBackward(Builder& b, Value grad, const PoolDim& p);

// (values, int64 positions within the plane of the pooled dims): the first largest, or the last NaN, of each window.
Values MaxPool(Builder& b, Value x, const std::vector<PoolDim>& dims);
// Sends grad to the positions that MaxPool gave. dims may be empty: then by scatter.
Value MaxPoolBackward(Builder& b, Value grad, Value indices, Value self, int spatial, const std::vector<PoolDim>& dims);

// Running (value, position) pairs of a max pool: takes the candidate where it is larger, NaN or the first.
struct BestSoFar {
  Value value, position;
  void Offer(Builder& b, Value candidate, Value at);  // at < 0: not a candidate
};

// sum_i x[.., i, ..] * weights[o, i] along dim.
Value ContractDim(Builder& b, Value x, Value weights, int64_t dim);

std::vector<OpRow> AveragePoolRows();     // pooling_average.cc
std::vector<OpRow> AdaptivePoolRows();    // pooling_adaptive.cc
std::vector<OpRow> FractionalPoolRows();  // pooling_fractional.cc
std::vector<OpRow> UpsamplingRows();      // upsampling.cc
std::vector<OpRow> AntialiasRows();       // upsampling_antialias.cc

}  // namespace torch_tpu
