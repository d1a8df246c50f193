// LAPACK. Operands are [batch, rows, columns], as in lowering/linalg.h.
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/geqrf.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_householder_product.h>
#include <ATen/ops/linalg_lu_factor_ex.h>
#include <ATen/ops/linalg_lu_solve.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/linalg_svd.h>

#include <array>

#include "dispatch/host_kernels/kernel.h"

namespace torch_tpu {
namespace {

// Numbers: pivot. x -> packed, pivots, info
void LuFactor(const HostCall& call) {
  const auto [packed, pivots, info] = at::linalg_lu_factor_ex(call.argument(0), call.number(0) != 0, false);
  call.Store(0, packed);
  call.Store(1, pivots);
  call.Store(2, info);
}

// Numbers: adjoint. (packed, pivots, right side) -> solution
void LuSolve(const HostCall& call) {
  call.Store(0, at::linalg_lu_solve(call.argument(0), call.argument(1), call.argument(2), true, call.number(0) != 0));
}

// Numbers: upper. x -> factor, info
void Cholesky(const HostCall& call) {
  const auto [factor, info] = at::linalg_cholesky_ex(call.argument(0), call.number(0) != 0, false);
  call.Store(0, factor);
  call.Store(1, info);
}

// x -> packed, tau
void Geqrf(const HostCall& call) {
  const auto [packed, tau] = at::geqrf(call.argument(0));
  call.Store(0, packed);
  call.Store(1, tau);
}

// Numbers: columns of the result, at least tau's. (packed, tau) -> orthonormal columns
void HouseholderProduct(const HostCall& call) {
  const at::Tensor packed = call.argument(0);
  const int64_t columns = call.number(0);
  const at::Tensor wide = packed.size(2) >= columns ? packed.narrow(2, 0, columns)
                                                    : at::constant_pad_nd(packed, {0, columns - packed.size(2)});
  call.Store(0, at::linalg_householder_product(wide, call.argument(1)));
}

// x -> ascending values, vectors as columns
void Eigh(const HostCall& call) {
  const auto [values, vectors] = at::linalg_eigh(call.argument(0));
  call.Store(0, values);
  call.Store(1, vectors);
}

// Numbers: full. x -> u, s, v
void Svd(const HostCall& call) {
  const auto [u, s, vh] = at::linalg_svd(call.argument(0), call.number(0) != 0);
  call.Store(0, u);
  call.Store(1, s);
  call.Store(2, vh.mH());
}

// Numbers: upper, left, unit diagonal. (triangle, right side) -> solution
void SolveTriangular(const HostCall& call) {
  call.Store(0, at::linalg_solve_triangular(call.argument(0), call.argument(1), call.number(0) != 0,
                                            call.number(1) != 0, call.number(2) != 0));
}

constexpr std::array kKernels = {
    TORCH_TPU_HOST_KERNEL("lu_factor", &LuFactor),
    TORCH_TPU_HOST_KERNEL("lu_solve", &LuSolve),
    TORCH_TPU_HOST_KERNEL("cholesky", &Cholesky),
    TORCH_TPU_HOST_KERNEL("geqrf", &Geqrf),
    TORCH_TPU_HOST_KERNEL("householder_product", &HouseholderProduct),
    TORCH_TPU_HOST_KERNEL("eigh", &Eigh),
    TORCH_TPU_HOST_KERNEL("svd", &Svd),
    TORCH_TPU_HOST_KERNEL("solve_triangular", &SolveTriangular),
};

}  // namespace

std::span<const HostKernel> LinalgKernels() { return kKernels; }

}  // namespace torch_tpu
