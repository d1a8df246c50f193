#include "dispatch/ctc_loss.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "dispatch/bound_op.h"

namespace torch_tpu {
namespace {

at::Tensor HostLengths(at::IntArrayRef lengths) {
  at::Tensor host = at::empty({static_cast<int64_t>(lengths.size())}, at::kLong);
  std::copy(lengths.begin(), lengths.end(), host.mutable_data_ptr<int64_t>());
  return host;
}

at::Tensor HostLengths(const at::Tensor& lengths) {
  TORCH_CHECK(at::isIntegralType(lengths.scalar_type(), /*includeBool=*/false), "lengths must be integral");
  return lengths.to(at::kCPU, at::kLong).contiguous();
}

int64_t Longest(const at::Tensor& lengths) {
  const int64_t* data = lengths.const_data_ptr<int64_t>();
  return lengths.numel() == 0 ? 0 : std::max<int64_t>(0, *std::max_element(data, data + lengths.numel()));
}

std::tuple<at::Tensor, at::Tensor> Forward(const at::Tensor& log_probs, const at::Tensor& targets,
                                           const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                                           int64_t blank) {
  TORCH_CHECK(log_probs.dim() == 3, "ctc_loss: expected log_probs of 3 dims, got ", log_probs.dim());
  const int64_t steps = log_probs.size(0), batch = log_probs.size(1), longest = Longest(target_lengths);
  TORCH_CHECK(0 <= blank && blank < log_probs.size(2), "blank must be in label range");
  TORCH_CHECK(input_lengths.numel() == batch, "input_lengths must be of size batch_size");
  TORCH_CHECK(target_lengths.numel() == batch, "target_lengths must be of size batch_size");
  TORCH_CHECK(Longest(input_lengths) <= steps, "Expected input_lengths to have value at most ", steps,
              ", but got value ", Longest(input_lengths));
  if (targets.dim() != 1) {
    TORCH_CHECK(targets.size(0) == batch && targets.size(1) >= longest, "Expected tensor to have size at least ",
                longest, " at dimension 1, but got size ", targets.size(1));
  }
  static InternalOp& op = *new InternalOp(
      "tpu::ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int longest, int "
      "blank) -> (Tensor, Tensor)");
  const at::Device device = log_probs.device();
  std::vector<at::Tensor> results =
      op.Run({log_probs, targets, input_lengths.to(device), target_lengths.to(device), longest, blank}, device.index());
  return {results[0], results[1]};
}

at::Tensor Backward(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                    const at::Tensor& input_lengths, const at::Tensor& target_lengths, const at::Tensor& loss,
                    const at::Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  static InternalOp& op = *new InternalOp(
      "tpu::ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
      "target_lengths, Tensor loss, Tensor log_alpha, int longest, int blank, bool zero_infinity) -> Tensor");
  const at::Device device = log_probs.device();
  return op.Run({grad, log_probs, targets, input_lengths.to(device), target_lengths.to(device), loss, log_alpha,
                 Longest(target_lengths), blank, zero_infinity},
                device.index())[0];
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> CtcLoss(const at::Tensor& log_probs, const at::Tensor& targets,
                                           at::IntArrayRef input_lengths, at::IntArrayRef target_lengths, int64_t blank,
                                           bool zero_infinity) {
  return Forward(log_probs, targets, HostLengths(input_lengths), HostLengths(target_lengths), blank);
}

std::tuple<at::Tensor, at::Tensor> CtcLossTensor(const at::Tensor& log_probs, const at::Tensor& targets,
                                                 const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                                                 int64_t blank, bool zero_infinity) {
  return Forward(log_probs, targets, HostLengths(input_lengths), HostLengths(target_lengths), blank);
}

at::Tensor CtcLossBackward(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                           at::IntArrayRef input_lengths, at::IntArrayRef target_lengths,
                           const at::Tensor& neg_log_likelihood, const at::Tensor& log_alpha, int64_t blank,
                           bool zero_infinity) {
  return Backward(grad, log_probs, targets, HostLengths(input_lengths), HostLengths(target_lengths), neg_log_likelihood,
                  log_alpha, blank, zero_infinity);
}

at::Tensor CtcLossBackwardTensor(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                                 const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                                 const at::Tensor& neg_log_likelihood, const at::Tensor& log_alpha, int64_t blank,
                                 bool zero_infinity) {
  return Backward(grad, log_probs, targets, HostLengths(input_lengths), HostLengths(target_lengths), neg_log_likelihood,
                  log_alpha, blank, zero_infinity);
}

}  // namespace torch_tpu
