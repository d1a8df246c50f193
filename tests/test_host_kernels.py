"""Host kernels: PyTorch's CPU kernels inside programs. Values with and without, counts, the switch, errors inside a kernel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import test_convolution as cases
import torch
import torch_tpu
from compare import both, host
from torch.nn import functional as F  # noqa: N812


@pytest.fixture(params=[True, False], ids=["host", "pure"])
def kernels(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Runs a test with host kernels and without."""
    before = torch_tpu._C.host_kernels()
    torch_tpu.set_host_kernels(request.param)
    torch.tpu.synchronize()
    torch_tpu.reset_host_kernel_counts()
    yield request.param
    torch_tpu.set_host_kernels(before)


def check_counts(enabled: bool, *names: str) -> None:
    torch.tpu.synchronize()
    counts = torch_tpu.host_kernel_counts()
    assert set(counts) == (set(names) if enabled else set()), counts


@pytest.mark.parametrize("shape, kernel, options", cases.PLAIN)
def test_convolution(kernels: bool, shape, kernel, options) -> None:
    function = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(kernel)]
    x, w, bias = torch.randn(shape), torch.randn(kernel), torch.randn(kernel[0])
    both(lambda d: cases.train(function, x, w, bias, options, d), atol=1e-3, rtol=1e-4)
    check_counts(kernels, "convolution", "convolution_backward")


@pytest.mark.parametrize("shape, kernel, options", cases.TRANSPOSED)
def test_transposed_convolution(kernels: bool, shape, kernel, options) -> None:
    function = {3: F.conv_transpose1d, 4: F.conv_transpose2d}[len(kernel)]
    x, w, bias = torch.randn(shape), torch.randn(kernel), torch.randn(kernel[1] * options.get("groups", 1))
    both(lambda d: cases.train(function, x, w, bias, options, d), atol=1e-3, rtol=1e-4)
    check_counts(kernels, "convolution", "convolution_backward")


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_convolution_dtypes(kernels: bool, dtype: torch.dtype) -> None:
    x, w, bias = (torch.randn(s).to(dtype) for s in ((2, 4, 8, 8), (6, 4, 3, 3), (6,)))
    tolerance = 1e-10 if dtype is torch.float64 else 8e-2
    both(lambda d: cases.train(F.conv2d, x, w, bias, {}, d), atol=tolerance, rtol=tolerance)


def test_channels_last_and_sliced_operands(kernels: bool) -> None:
    x = torch.randn(2, 8, 10, 10).to(memory_format=torch.channels_last)
    w = torch.randn(6, 8, 3, 3)
    both(lambda d: F.conv2d(x.to(d)[:, ::2, 1:-1], w.to(d)[:, 1::2]), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
@pytest.mark.parametrize("shape", [(3, 5, 3), (2, 3, 5)])
def test_factorizations(kernels: bool, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=dtype)
    atol = 1e-9 if dtype is torch.complex128 else 1e-4

    def work(device: str) -> list[torch.Tensor]:
        a = x.to(device)
        u, s, vh = torch.linalg.svd(a, full_matrices=False)
        q, r = torch.linalg.qr(a, mode="complete")
        return [u @ (s.to(dtype).unsqueeze(-1) * vh), s, q, r, *torch.linalg.lu_factor(a)]

    both(work, atol=atol, rtol=atol)
    check_counts(kernels, "svd", "geqrf", "householder_product", "lu_factor")


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_solvers(kernels: bool, dtype: torch.dtype) -> None:
    x, rhs = torch.randn(3, 5, 5, dtype=dtype), torch.randn(3, 5, 2, dtype=dtype)
    hermitian = x @ x.mH + 5 * torch.eye(5)

    def work(device: str) -> list[torch.Tensor]:
        a, h, y = x.to(device), hermitian.to(device), rhs.to(device)
        values, vectors = torch.linalg.eigh(h)
        lu = torch.linalg.lu_factor(a)
        return [
            values,
            vectors @ (values.to(dtype).unsqueeze(-1) * vectors.mH),
            torch.linalg.cholesky(h),
            torch.linalg.cholesky(h, upper=True),
            torch.linalg.solve(a, y),
            torch.linalg.lu_solve(*lu, y, adjoint=True),
        ]

    both(work, atol=1e-3, rtol=1e-3)
    check_counts(kernels, "eigh", "cholesky", "lu_factor", "lu_solve")


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16])
@pytest.mark.parametrize("descending", [True, False])
def test_order(kernels: bool, dtype: torch.dtype, descending: bool) -> None:
    x = torch.randint(-500, 500, (70, 80)).to(dtype)
    distinct = torch.randperm(70 * 80).view(70, 80)
    if dtype.is_floating_point:
        x[3, 5:9], x[4, 7] = float("nan"), -0.0
    both(lambda d: list(torch.sort(x.to(d), dim=0, stable=True, descending=descending)))
    both(lambda d: list(torch.topk(distinct.to(d), 5, dim=1, largest=descending)))
    check_counts(kernels, "sort", "topk")


@pytest.mark.parametrize("upper", [True, False])
def test_triangular(kernels: bool, upper: bool) -> None:
    x, rhs = torch.randn(5, 5) + 5 * torch.eye(5), torch.randn(3, 5, 2)
    both(lambda d: torch.linalg.solve_triangular(x.to(d), rhs.to(d), upper=upper), atol=1e-4, rtol=1e-4)
    check_counts(kernels, "solve_triangular")


def test_an_error_inside_a_kernel_is_an_exception(mode: str) -> None:
    before = torch_tpu._C.host_kernels()
    torch_tpu.set_host_kernels(True)
    try:
        bad = torch.full((3, 3), float("nan")).to("tpu")
        with pytest.raises(RuntimeError, match="non-finite values"):
            torch.linalg.svdvals(bad).cpu()
        # The device goes on.
        assert torch.equal((torch.ones(2).to("tpu") + 1).cpu(), torch.full((2,), 2.0))
    finally:
        torch_tpu.set_host_kernels(before)


def test_the_callers_thread_state_stays_outside(kernels: bool) -> None:
    x, w = torch.randn(2, 4, 8, 8), torch.randn(6, 4, 3, 3)
    want = F.conv2d(x, w)
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        got = F.conv2d(x.to("tpu"), w.to("tpu"))
    assert got.dtype is torch.float32
    assert torch.allclose(host(got), want, atol=1e-3)


def test_the_switch_is_part_of_a_program() -> None:
    x, w = torch.randn(1, 2, 5, 5).to("tpu"), torch.randn(2, 2, 3, 3).to("tpu")
    before = torch_tpu._C.host_kernels()
    try:
        for enabled in (True, False, True):
            torch_tpu.set_host_kernels(enabled)
            torch.tpu.synchronize()
            torch_tpu.reset_host_kernel_counts()
            F.conv2d(x, w).cpu()
            assert torch_tpu.host_kernel_counts() == ({"convolution": 1} if enabled else {})
    finally:
        torch_tpu.set_host_kernels(before)
