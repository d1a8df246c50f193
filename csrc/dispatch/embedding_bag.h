// The gradient of embedding_bag's table.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace torch_tpu {

at::Tensor EmbeddingBagBackward(const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offsets,
                                const at::Tensor& offset2bag, const at::Tensor& bag_size,
                                const at::Tensor& maximum_indices, c10::SymInt num_weights, bool scale_grad_by_freq,
                                int64_t mode, bool sparse, const std::optional<at::Tensor>& per_sample_weights,
                                int64_t padding_idx);

}  // namespace torch_tpu
