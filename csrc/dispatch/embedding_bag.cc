#include "dispatch/embedding_bag.h"

#include <ATen/ops/_embedding_bag_dense_backward.h>
#include <ATen/ops/_embedding_bag_sparse_backward.h>

namespace torch_tpu {

at::Tensor EmbeddingBagBackward(const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offsets,
                                const at::Tensor& offset2bag, const at::Tensor& bag_size,
                                const at::Tensor& maximum_indices, c10::SymInt num_weights, bool scale_grad_by_freq,
                                int64_t mode, bool sparse, const std::optional<at::Tensor>& per_sample_weights,
                                int64_t padding_idx) {
  if (sparse) {
    return at::_embedding_bag_sparse_backward_symint(grad, indices, offsets, offset2bag, bag_size,
                                                     std::move(num_weights), scale_grad_by_freq, mode,
                                                     per_sample_weights, padding_idx);
  }
  return at::_embedding_bag_dense_backward_symint(grad, indices, offset2bag, bag_size, maximum_indices,
                                                  std::move(num_weights), scale_grad_by_freq, mode, per_sample_weights,
                                                  padding_idx);
}

}  // namespace torch_tpu
