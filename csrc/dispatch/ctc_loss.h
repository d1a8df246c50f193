// ctc_loss: its lengths are lists or tensors; the longest target decides sizes and is read on the host, as on CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace torch_tpu {

std::tuple<at::Tensor, at::Tensor> CtcLoss(const at::Tensor& log_probs, const at::Tensor& targets,
                                           at::IntArrayRef input_lengths, at::IntArrayRef target_lengths, int64_t blank,
                                           bool zero_infinity);
std::tuple<at::Tensor, at::Tensor> CtcLossTensor(const at::Tensor& log_probs, const at::Tensor& targets,
                                                 const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                                                 int64_t blank, bool zero_infinity);
at::Tensor CtcLossBackward(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                           at::IntArrayRef input_lengths, at::IntArrayRef target_lengths,
                           const at::Tensor& neg_log_likelihood, const at::Tensor& log_alpha, int64_t blank,
                           bool zero_infinity);
at::Tensor CtcLossBackwardTensor(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                                 const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                                 const at::Tensor& neg_log_likelihood, const at::Tensor& log_alpha, int64_t blank,
                                 bool zero_infinity);

}  // namespace torch_tpu
