// The three maps of a convolution, for any number of spatial dims, in PyTorch's layout: input [n, c, ...], weight
// [out, c / groups, ...], output [n, out, ...]. A transposed convolution is the same three with other roles.
#pragma once

#include "program/builder.h"

namespace torch_tpu {

struct ConvGeometry {
  Dims stride, padding, dilation;  // one per spatial dim
  int64_t groups = 1;
  int64_t rank() const { return static_cast<int64_t>(stride.size()); }
  // Spatial size of the output.
  Dims OutputSize(const Dims& input, const Dims& kernel) const;
};

Dims SpatialOf(const Value& x);
ConvDims DefaultConvDims(int64_t spatial);

// Results are in the accumulation type: float32 for halves.
// `output_spatial` is the geometry's output size, or less: a transposed convolution's output_padding is cut off again.
Value ConvForward(Builder& b, Value input, Value weight, const ConvGeometry& geometry, const Dims& output_spatial);
Value ConvInputGradient(Builder& b, Value grad, Value weight, const ConvGeometry& geometry, const Dims& input_spatial);
Value ConvWeightGradient(Builder& b, Value input, Value grad, const ConvGeometry& geometry, const Dims& kernel_spatial);

// convolution_dot.cc: forms as matrix products, where the CPU plugin runs these faster than its convolutions. A default
// Value: the plain form is the better one.
Value DotForward(Builder& b, Value input, Value weight, const ConvGeometry& geometry, const Dims& output_spatial);
Value DotInputGradient(Builder& b, Value grad, Value weight, const ConvGeometry& geometry, const Dims& input_spatial);
Value DotWeightGradient(Builder& b, Value input, Value grad, const ConvGeometry& geometry, const Dims& kernel_spatial);

}  // namespace torch_tpu
