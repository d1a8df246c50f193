#include "dispatch/attention.h"

#include <ATen/Context.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>

#include "dispatch/bound_op.h"

#include <ATen/SDPBackend.h>
#include <ATen/ops/zeros.h>

namespace torch_tpu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// Whether heads lie behind positions in memory, as after a projection's view(b, s, h, d).transpose(1, 2). Results
// follow their tensor in this, as PyTorch's meta kernels say.
bool PositionsFirst(const at::Tensor& x) { return x.stride(1) < x.stride(2); }

at::Tensor Laid(const at::Tensor& result, bool positions_first) {
  return result.defined() && positions_first ? result.transpose(1, 2) : result;
}

c10::IValue OrNone(const at::Tensor& tensor) { return tensor.defined() ? c10::IValue(tensor) : c10::IValue(); }

c10::IValue OrNone(std::optional<double> number) { return number ? c10::IValue(*number) : c10::IValue(); }

bool Plain(const at::Tensor& x) {
  return x.dim() == 4 && x.layout() == at::kStrided && !x.is_nested() && x.sym_numel() > 0 &&
         !x.key_set().has_any(
             c10::DispatchKeySet({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::BatchedNestedTensor}));
}

// What CPU PyTorch gives to its fused kernel (which has no second derivative either), and a bias that learns; the rest
// is PyTorch's composite.
bool IsOneProgram(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const OptionalTensor& bias,
                  double dropout, bool grouped) {
  if (dropout != 0 || !Plain(query) || !Plain(key) || !Plain(value)) return false;
  if (!at::isFloatingType(query.scalar_type()) || query.scalar_type() != key.scalar_type() ||
      query.scalar_type() != value.scalar_type())
    return false;
  const auto q = query.sym_sizes(), k = key.sym_sizes(), v = value.sym_sizes();  // symbols while a graph is traced
  return k[0] == q[0] && v[0] == q[0] && v[1] == k[1] && (q[1] == k[1] || (grouped && q[1] % k[1] == 0)) &&
         k[3] == q[3] && k[2] == v[2] && (!bias || !bias->defined() || (bias->dim() <= 4 && !bias->is_nested()));
}

int64_t Choice(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const OptionalTensor& bias,
               double dropout, bool, std::optional<double>, bool grouped) {
  const at::Context& context = at::globalContext();
  const bool fused =
      context.userEnabledFlashSDP() || context.userEnabledMemEfficientSDP() || context.userEnabledOverrideableSDP();
  if (fused && IsOneProgram(query, key, value, bias, dropout, grouped))
    return static_cast<int64_t>(at::SDPBackend::overrideable);
  TORCH_CHECK(context.userEnabledMathSDP(), "No available kernel. Aborting execution.");
  return static_cast<int64_t>(at::SDPBackend::math);
}

}  // namespace

AttentionResults Attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const OptionalTensor& bias, double dropout, bool is_causal, bool return_debug_mask,
                           std::optional<double> scale) {
  TORCH_CHECK_NOT_IMPLEMENTED(dropout == 0 && !return_debug_mask,
                              "scaled_dot_product_attention: expected no dropout and no debug mask, got dropout_p ",
                              dropout, "; use SDPBackend.MATH for dropout");
  static InternalOp& op = *new InternalOp(
      "tpu::attention(Tensor query, Tensor key, Tensor value, Tensor? bias, bool causal, float? scale, bool "
      "positions_first) -> (Tensor, Tensor)");
  const bool positions_first = PositionsFirst(query);
  const std::vector<at::Tensor> results =
      op.Run({query, key, value, OrNone(bias.value_or(at::Tensor())), is_causal, OrNone(scale), positions_first},
             query.device().index());
  // A compiled graph's saved values have to be tensors.
  static const at::Tensor& no_seed = *new at::Tensor(at::zeros({}, at::kLong));
  return {Laid(results[0], positions_first),
          results[1],
          at::Tensor(),
          at::Tensor(),
          query.sym_size(2),
          key.sym_size(2),
          no_seed,
          no_seed,
          at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> AttentionBackward(
    const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& bias, std::array<bool, 4> mask, const at::Tensor& out, const at::Tensor& logsumexp,
    const at::Tensor&, const at::Tensor&, c10::SymInt, c10::SymInt, double, bool is_causal, const at::Tensor&,
    const at::Tensor&, std::optional<double> scale) {
  if (!grad.defined()) return {};
  static InternalOp& op = *new InternalOp(
      "tpu::attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor out, Tensor "
      "logsumexp, bool causal, float? scale, bool[4] mask, bool[3] positions_first) -> (Tensor, Tensor, Tensor, "
      "Tensor)");
  const std::array<bool, 3> positions_first = {PositionsFirst(query), PositionsFirst(key), PositionsFirst(value)};
  const std::vector<at::Tensor> results =
      op.Run({grad, query, key, value, OrNone(bias), out, logsumexp, is_causal, OrNone(scale),
              c10::List<bool>({mask[0], mask[1], mask[2], mask[3]}),
              c10::List<bool>({positions_first[0], positions_first[1], positions_first[2]})},
             query.device().index());
  return {Laid(results[0], positions_first[0]), Laid(results[1], positions_first[1]),
          Laid(results[2], positions_first[2]), results[3]};
}

}  // namespace torch_tpu

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &torch_tpu::Choice)
}  // namespace at::native
