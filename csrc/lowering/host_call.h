// Calls of host kernels, where the builder says that there are some (dispatch/host_kernels). Such a call stands beside
// a pure form of the same op, which is what other targets, export and ahead of time use.
#pragma once

#include <string_view>
#include <vector>

#include "program/builder.h"

namespace torch_tpu {

// `numbers` decide what the kernel does; each kernel says which it wants.
Values CallHost(Builder& b, std::string_view kernel, const Values& operands, const std::vector<TensorType>& results,
                const Dims& numbers);

}  // namespace torch_tpu
