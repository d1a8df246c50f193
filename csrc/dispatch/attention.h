// Scaled dot-product attention: which calls are one program, and its forward and backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

namespace torch_tpu {

using AttentionResults = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt,
                                    at::Tensor, at::Tensor, at::Tensor>;

// _scaled_dot_product_fused_attention_overrideable without dropout: the output, the log-sum-exp of each row, the
// lengths; the other results are absent.
AttentionResults Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const std::optional<at::Tensor>& bias, double dropout, bool is_causal,
                           bool return_debug_mask, std::optional<double> scale);

// Gradients of query, key, value and bias, where `mask` asks for them.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> AttentionBackward(
    const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& bias, std::array<bool, 4> mask, const at::Tensor& out, const at::Tensor& logsumexp,
    const at::Tensor& cum_seq_q, const at::Tensor& cum_seq_k, c10::SymInt max_q, c10::SymInt max_k, double dropout,
    bool is_causal, const at::Tensor& philox_seed, const at::Tensor& philox_offset, std::optional<double> scale);

}  // namespace torch_tpu
