#include "dispatch/determinants.h"

#include <ATen/ops/linalg_lu_factor_ex.h>

#include "dispatch/bound_op.h"

namespace torch_tpu {
namespace {

void CheckSquare(const at::Tensor& a, const char* name) {
  TORCH_CHECK(a.dim() >= 2, name, ": The input tensor A must have at least 2 dimensions.");
  TORCH_CHECK(a.size(-1) == a.size(-2), name, ": A must be batches of square matrices, but they are ", a.size(-2),
              " by ", a.size(-1), " matrices");
  TORCH_CHECK(a.is_floating_point() || a.is_complex(), name,
              ": Expected a floating point or complex tensor as input. Got ", a.scalar_type());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> Factored(const at::Tensor& a) {
  return at::linalg_lu_factor_ex(a.is_contiguous() && !a.is_complex() ? a.mT() : a);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> LinalgDet(const at::Tensor& a) {
  CheckSquare(a, "linalg.det");
  static auto& op = *new InternalOp("tpu::lu_det(Tensor LU, Tensor pivots) -> Tensor");
  auto [lu, pivots, info] = Factored(a);
  return {op.Run({lu, pivots}, a.device().index())[0], lu, pivots};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> LinalgSlogdet(const at::Tensor& a) {
  CheckSquare(a, "linalg.slogdet");
  static auto& op = *new InternalOp("tpu::lu_slogdet(Tensor LU, Tensor pivots) -> (Tensor, Tensor)");
  auto [lu, pivots, info] = Factored(a);
  const std::vector<at::Tensor> results = op.Run({lu, pivots}, a.device().index());
  return {results[0], results[1], lu, pivots};
}

}  // namespace torch_tpu
