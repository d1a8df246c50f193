#include "lowering/host_call.h"

#include "base/error.h"

namespace torch_tpu {

Values CallHost(Builder& b, std::string_view kernel, const Values& operands, const std::vector<TensorType>& results,
                const Dims& numbers) {
  Check(b.host_kernels(), kernel, ": expected a target with host kernels, got one without");
  std::string text = "{numbers = array<i64";
  for (size_t i = 0; i < numbers.size(); ++i) text += Cat(i == 0 ? ": " : ", ", numbers[i]);
  return b.CustomCall(Cat("torch_tpu.", kernel), operands, results, text + ">}");
}

}  // namespace torch_tpu
