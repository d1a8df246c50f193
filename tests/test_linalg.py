"""Linear algebra, FFT and complex numbers against CPU, forward and backward, with CPU's strides."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from compare import both, fresh

CLOSE = {"rtol": 2e-3, "atol": 2e-4}


def well_conditioned(*batch: int, n: int = 4, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*batch, n, n, dtype=dtype) + n * torch.eye(n, dtype=dtype)


def positive(*batch: int, n: int = 4) -> torch.Tensor:
    x = torch.randn(*batch, n, n)
    return x @ x.mT + n * torch.eye(n)


# What is unique: no signs of vectors.
FUNCTIONS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor]] = {
    "lu": (lambda a: torch.cat(torch.linalg.lu(a)), well_conditioned(2)),
    "qr": (lambda a: torch.linalg.qr(a)[0].abs() @ torch.linalg.qr(a)[1].abs(), torch.randn(5, 3)),
    "cholesky": (torch.linalg.cholesky, positive(2)),
    "svd": (lambda a: torch.linalg.svd(a, full_matrices=False)[1], torch.randn(2, 5, 3)),
    "svd of a wide one": (lambda a: torch.linalg.svdvals(a), torch.randn(3, 5)),
    "eigh": (lambda a: torch.linalg.eigh(a + a.mT)[0], torch.randn(2, 4, 4)),
    "solve": (lambda a: torch.linalg.solve(a, torch.ones(4, 2, device=a.device)), well_conditioned()),
    "inverse": (torch.linalg.inv, well_conditioned(2)),
    "det": (torch.linalg.det, well_conditioned(2)),
    "slogdet": (lambda a: torch.linalg.slogdet(a)[1], well_conditioned(2)),
    "matrix_exp": (torch.linalg.matrix_exp, torch.randn(2, 4, 4) * 0.3),
    "triangular": (
        lambda a: torch.linalg.solve_triangular(a.triu(), torch.ones(4, 3, device=a.device), upper=True),
        well_conditioned(),
    ),
    "pinv": (torch.linalg.pinv, torch.randn(5, 3)),
    "lstsq": (lambda a: torch.linalg.lstsq(a, torch.ones(5, 2, device=a.device)).solution, torch.randn(5, 3)),
    "matrix_power": (lambda a: torch.linalg.matrix_power(a, 3), well_conditioned()),
    "householder": (lambda a: torch.linalg.householder_product(*torch.geqrf(a)).abs(), torch.randn(4, 3)),
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_value_and_gradient(mode: str, name: str) -> None:
    function, start = FUNCTIONS[name]

    def run(d: str) -> list[torch.Tensor]:
        x = fresh(start, d)
        if name == "householder":
            return [function(x)]
        y = function(x.requires_grad_())
        (y * y).sum().backward()
        return [y, x.grad]

    both(run, **CLOSE)


def test_strides_are_those_of_cpu(mode: str) -> None:
    """LAPACK leaves matrices column-major, and PyTorch passes them on."""
    a, b = torch.randn(2, 5, 3), torch.randn(2, 5, 2)

    def strides(d: str) -> list[tuple[int, ...]]:
        x, y = a.to(d), b.to(d)
        found = [*torch.geqrf(x), *torch.linalg.svd(x), *torch.linalg.svd(x, full_matrices=False), *torch.linalg.lstsq(x, y)]
        found += [*torch.linalg.qr(x), torch.linalg.inv(x.mT @ x), torch.linalg.cholesky_ex(x.mT @ x)[0]]
        found += [torch.fft.rfftn(x), torch.fft.hfft2(x, dim=(0, -1)), torch.ones(2, 3, device=d).nonzero()]
        return [t.stride() for t in found if t.numel() > 0]

    assert strides("tpu") == strides("cpu")


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(mode: str, driver: str) -> None:
    tall, wide, right = torch.randn(2, 5, 3), torch.randn(3, 5), torch.randn(2, 5, 2)
    both(lambda d: [*torch.linalg.lstsq(tall.to(d), right.to(d), driver=driver)], **CLOSE)
    both(lambda d: [*torch.linalg.lstsq(wide.to(d), right[0, :3].to(d), driver=driver)], **CLOSE)
    if driver != "gels":  # of rank 1: the shortest solution
        flat = torch.ones(4, 3)
        both(lambda d: [*torch.linalg.lstsq(flat.to(d), torch.arange(4.0)[:, None].to(d), driver=driver)][:3], **CLOSE)


def test_singular_matrices_raise_as_on_cpu(mode: str) -> None:
    for function in (torch.linalg.inv, torch.linalg.cholesky, lambda a: torch.linalg.solve(a, torch.ones_like(a))):
        with pytest.raises(torch.linalg.LinAlgError):
            function(torch.zeros(2, 2, device="tpu")).cpu()


TRANSFORMS = {
    "fft": lambda x: torch.fft.fft(x, dim=0),
    "ifft": lambda x: torch.fft.ifft(x, n=5),
    "fft2": lambda x: torch.fft.fft2(x, norm="ortho"),
    "rfft": lambda x: torch.fft.rfft(x.real),
    "irfft": lambda x: torch.fft.irfft(x, n=7),
    "rfftn": lambda x: torch.fft.rfftn(x.real),
    "irfftn": lambda x: torch.fft.irfftn(x, norm="forward"),
    "hfft": lambda x: torch.fft.hfft(x),
    "ihfft": lambda x: torch.fft.ihfft(x.real),
    "stft": lambda x: torch.stft(x.real.reshape(-1), 8, window=torch.ones(8, device=x.device), return_complex=True),
}


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_transforms_and_their_gradients(mode: str, name: str) -> None:
    start = torch.randn(3, 4, 6, dtype=torch.complex64)

    def run(d: str) -> list[torch.Tensor]:
        x = fresh(start, d).requires_grad_()
        y = TRANSFORMS[name](x)
        (y * y.conj()).real.sum().backward()
        return [y, x.grad]

    both(run, rtol=1e-4, atol=1e-4)


def test_complex_arithmetic(mode: str) -> None:
    x, y = torch.randn(12, dtype=torch.complex64), torch.randn(12, dtype=torch.complex64)

    def run(d: str) -> list[torch.Tensor]:
        a, b = x.to(d), y.to(d)
        found = [a * b, a / b, a.abs(), a.angle(), a.conj() + b, a.real - b.imag, a**2, a**b, torch.polar(a.real.abs(), b.real)]
        found += [a.exp(), a.log(), a.sqrt(), a.sin(), a.tanh(), a.reciprocal(), a.sgn(), torch.logaddexp(a, b)]
        found += [
            a == a.clone(),
            a.sum(),
            a.mean(),
            a.prod(),
            a.cumsum(0),
            torch.vdot(a, b),
            torch.view_as_real(a),
            a + 2,
            a * 1j,
        ]
        return found

    both(run, rtol=1e-4, atol=1e-5)


def test_gradient_of_complex_numbers(mode: str) -> None:
    start = torch.randn(6, dtype=torch.complex64)

    def run(d: str) -> torch.Tensor:
        x = fresh(start, d).requires_grad_()
        ((x * x.conj()).sqrt() + x.exp() * 0.1 + x.sgn()).abs().sum().backward()
        return x.grad

    both(run, rtol=1e-4, atol=1e-5)
