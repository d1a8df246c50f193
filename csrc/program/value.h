// A handle on a value of the program under construction.
#pragma once

#include <memory>
#include <vector>

#include "base/tensor_type.h"

namespace torch_tpu {

// Cheap to copy. A default Value is "absent" (an undefined optional tensor).
class Value {
 public:
  Value() = default;
  Value(int64_t id, std::shared_ptr<const TensorType> type) : id_(id), type_(std::move(type)) {}
  explicit operator bool() const { return id_ >= 0; }
  int64_t id() const { return id_; }
  const TensorType& type() const { return *type_; }
  DType dtype() const { return type_->dtype; }
  const Dims& dims() const { return type_->dims; }
  int64_t dim(int64_t i) const { return type_->dims.at(i < 0 ? i + rank() : i); }
  int64_t rank() const { return type_->rank(); }
  int64_t numel() const { return type_->numel(); }

 private:
  int64_t id_ = -1;
  std::shared_ptr<const TensorType> type_;
};

using Values = std::vector<Value>;

}  // namespace torch_tpu
