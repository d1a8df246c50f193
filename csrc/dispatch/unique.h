// unique in all its forms: computed on the device, padded; one number is read, and the results are cut to it.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace torch_tpu {

// values, inverse, counts
using UniqueResults = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

UniqueResults Unique2(const at::Tensor& self, bool sorted, bool return_inverse, bool return_counts);
std::tuple<at::Tensor, at::Tensor> UniqueInverse(const at::Tensor& self, bool sorted, bool return_inverse);
UniqueResults UniqueConsecutive(const at::Tensor& self, bool return_inverse, bool return_counts,
                                std::optional<int64_t> dim);
UniqueResults UniqueDim(const at::Tensor& self, int64_t dim, bool sorted, bool return_inverse, bool return_counts);
UniqueResults UniqueDimConsecutive(const at::Tensor& self, int64_t dim, bool return_inverse, bool return_counts);

}  // namespace torch_tpu
