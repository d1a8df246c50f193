// The lowering table: one row per ATen op, the same for every mode.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "program/builder.h"
#include "program/op_call.h"
#include "program/op_row.h"

namespace torch_tpu {

// One function per family file; AllRows() concatenates them.
std::span<const OpRow>
PointwiseRows();  // pointwise.cc: unary and binary arithmetic, comparison, logic, where, clamp, casts
std::span<const OpRow> ActivationRows();   // activation.cc: relu ... glu, dropout-free activations and their backwards
std::span<const OpRow> ReductionRows();    // reduction.cc: sum, mean, amax, argmax, var, norm, all, any, cumulative
std::span<const OpRow> ShapeRows();        // shape.cc: cat, stack, flip, roll, repeat, tril, pad, constant factories
std::span<const OpRow> IndexingRows();     // indexing.cc: gather, scatter, index, index_put, index_select, embedding
std::span<const OpRow> MatmulRows();       // matmul.cc: mm, bmm, addmm, baddbmm, dot, mv, linear
std::span<const OpRow> ConvolutionRows();  // convolution.cc
std::span<const OpRow> PoolingRows();      // pooling.cc: max, avg, adaptive pools and their backwards, upsampling
std::span<const OpRow> NormalizationRows();  // normalization.cc: batch, layer, group norm, softmax and their backwards
std::span<const OpRow> AttentionRows();      // attention.cc: scaled dot-product attention and its backward
std::span<const OpRow> LossRows();           // loss.cc
std::span<const OpRow> RandomRows();         // random.cc
std::span<const OpRow> SortRows();           // sort.cc: sort, topk, unique and nonzero helpers
std::span<const OpRow> OptimizerRows();      // optimizer.cc: foreach and fused optimizer ops
std::span<const OpRow> SpecialRows();        // special_gamma.cc: Bessel, zeta, incomplete gamma, orthogonal polynomials
std::span<const OpRow> FftRows();            // fft.cc
std::span<const OpRow> LinalgRows();         // linalg.cc: LU, QR, Cholesky, eigh, SVD, solves
std::span<const OpRow> DistanceRows();       // distance.cc: cdist, pdist, renorm
std::span<const OpRow> CountingRows();       // counting.cc: isin, histc, max_unpool, frexp
std::span<const OpRow> MarginLossRows();     // loss_margin.cc
std::span<const OpRow> GridSamplerRows();    // grid_sampler.cc
std::span<const OpRow> ControlFlowRows();    // control_flow.cc: branches and loops over graphs
std::span<const OpRow> ViewRows();           // view_ops.cc: internal reads and writes of views, casts

const std::vector<OpRow>& AllRows();
// nullptr when absent.
const OpRow* FindRow(std::string_view name);

}  // namespace torch_tpu
