#include "base/tensor_type.h"

namespace torch_tpu {

int64_t Product(const Dims& dims) {
  int64_t product = 1;
  for (int64_t dim : dims) product *= dim;
  return product;
}

int64_t TensorType::numel() const { return Product(dims); }

std::string TensorType::ToString() const {
  std::string text = "tensor<";
  for (int64_t dim : dims) {
    text += std::to_string(dim);
    text += 'x';
  }
  text += Name(dtype);
  text += '>';
  return text;
}

Dims ContiguousStrides(const Dims& dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    // As PyTorch does: an empty dimension counts as one, so that strides stay positive.
    stride *= dims[i] > 1 ? dims[i] : 1;
  }
  return strides;
}

std::string ToString(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(dims[i]);
  }
  text += ']';
  return text;
}

}  // namespace torch_tpu
