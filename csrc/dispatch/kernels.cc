// Kernels that are not rows: storage and view ops, copies, and ops that decide sizes or write more than their schema
// says.
#include <torch/library.h>

#include "dispatch/attention.h"
#include "dispatch/copy.h"
#include "dispatch/ctc_loss.h"
#include "dispatch/determinants.h"
#include "dispatch/dynamic.h"
#include "dispatch/embedding_bag.h"
#include "dispatch/factories.h"
#include "dispatch/histogram.h"
#include "dispatch/lstsq.h"
#include "dispatch/normalization.h"
#include "dispatch/out_variants.h"
#include "dispatch/rrelu.h"
#include "dispatch/unique.h"
#include "dispatch/views.h"

#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

namespace torch_tpu {
namespace {

void RecordStream(at::Tensor& self, c10::Stream stream) {}  // programs keep what they use alive

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(Empty));
  m.impl("empty_strided", TORCH_FN(EmptyStrided));
  m.impl("resize_", TORCH_FN(Resize));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(SetStorage));
  m.impl("set_.source_Storage", TORCH_FN(SetFromStorage));
  m.impl("set_.source_Tensor", TORCH_FN(SetFromTensor));
  m.impl("set_", TORCH_FN(SetEmpty));
  m.impl("is_set_to", TORCH_FN(IsSetTo));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("_reshape_alias", TORCH_FN(ReshapeAlias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("record_stream", TORCH_FN(RecordStream));

  m.impl("copy_", TORCH_FN(Copy));
  m.impl("_copy_from", TORCH_FN(CopyFrom));
  m.impl("_copy_from_and_resize", TORCH_FN(CopyFromAndResize));
  m.impl("_local_scalar_dense", TORCH_FN(LocalScalarDense));

  m.impl("nonzero", TORCH_FN(Nonzero));
  m.impl("masked_select", TORCH_FN(MaskedSelect));
  m.impl("_unique2", TORCH_FN(Unique2));
  m.impl("_unique", TORCH_FN(UniqueInverse));
  m.impl("unique_consecutive", TORCH_FN(UniqueConsecutive));
  m.impl("unique_dim", TORCH_FN(UniqueDim));
  m.impl("unique_dim_consecutive", TORCH_FN(UniqueDimConsecutive));
  m.impl("repeat_interleave.Tensor", TORCH_FN(RepeatInterleave));
  m.impl("bincount", TORCH_FN(Bincount));
  m.impl("equal", TORCH_FN(Equal));
  m.impl("_assert_async", TORCH_FN(AssertAsync));
  m.impl("_assert_async.msg", TORCH_FN(AssertAsyncMessage));

  m.impl("arange.start_out", TORCH_FN(ArangeOut));
  m.impl("linspace.out", TORCH_FN(LinspaceOut));
  m.impl("logspace.out", TORCH_FN(LogspaceOut));
  m.impl("eye.m_out", TORCH_FN(EyeOut));
  m.impl("randperm.generator_out", TORCH_FN(RandpermOut));
  m.impl("_efficientzerotensor", TORCH_FN(EfficientZeroTensor));
  m.impl("tril_indices", TORCH_FN(TrilIndices));
  m.impl("triu_indices", TORCH_FN(TriuIndices));

  m.impl("_linalg_det", TORCH_FN(LinalgDet));
  m.impl("_linalg_slogdet", TORCH_FN(LinalgSlogdet));
  m.impl("linalg_lstsq", TORCH_FN(Lstsq));
  m.impl("linalg_lstsq.out", TORCH_FN(LstsqOut));

  m.impl("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(Attention));
  m.impl("_scaled_dot_product_fused_attention_overrideable_backward", TORCH_FN(AttentionBackward));

  m.impl("_ctc_loss", TORCH_FN(CtcLoss));
  m.impl("_ctc_loss.Tensor", TORCH_FN(CtcLossTensor));
  m.impl("_ctc_loss_backward", TORCH_FN(CtcLossBackward));
  m.impl("_ctc_loss_backward.Tensor", TORCH_FN(CtcLossBackwardTensor));
  m.impl("_histogramdd_bin_edges", TORCH_FN(HistogramddBinEdges));
  m.impl("_embedding_bag_backward", TORCH_FN(EmbeddingBagBackward));
  m.impl("rrelu_with_noise", TORCH_FN(RReluWithNoise));
  m.impl("rrelu_with_noise_", TORCH_FN(RReluWithNoiseInplace));
  m.impl("rrelu_with_noise.out", TORCH_FN(RReluWithNoiseOut));

  m.impl("eye.out", TORCH_FN(SquareEyeOut));
  m.impl("nonzero.out", TORCH_FN(NonzeroOut));
  m.impl("masked_select.out", TORCH_FN(MaskedSelectOut));
  m.impl("narrow_copy", TORCH_FN(NarrowCopy));
  m.impl("narrow_copy.out", TORCH_FN(NarrowCopyOut));
  m.impl("mvlgamma.out", TORCH_FN(MvLGammaOut));
  m.impl("native_batch_norm.out", TORCH_FN(NativeBatchNormOut));
  m.impl("_native_batch_norm_legit.out", TORCH_FN(NativeBatchNormLegitOut));
  m.impl("_native_batch_norm_legit.no_stats_out", TORCH_FN(NativeBatchNormNoStatsOut));

  m.impl("native_batch_norm", TORCH_FN(NativeBatchNorm));
  m.impl("_native_batch_norm_legit", TORCH_FN(NativeBatchNormLegit));
  m.impl("_native_batch_norm_legit.no_stats", TORCH_FN(NativeBatchNormNoStats));
  m.impl("_batch_norm_with_update", TORCH_FN(BatchNormWithUpdate));
}

}  // namespace torch_tpu
