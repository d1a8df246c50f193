// A dense, row-major value's type: element type and dims.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace torch_tpu {

using Dims = std::vector<int64_t>;

struct TensorType {
  DType dtype = DType::kInvalid;
  Dims dims;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t numel() const;
  size_t bytes() const { return static_cast<size_t>(numel()) * ItemSize(dtype); }
  bool operator==(const TensorType& other) const = default;
  // MLIR's spelling: "tensor<2x3xf32>", "tensor<f32>".
  std::string ToString() const;
};

int64_t Product(const Dims& dims);
// Strides, in elements, of a row-major dense array.
Dims ContiguousStrides(const Dims& dims);
std::string ToString(const Dims& dims);  // "[2, 3]"

}  // namespace torch_tpu
