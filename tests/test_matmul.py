"""Matrix products: values, dtypes, beta == 0, integers, empty contractions, in-place and out=."""

from __future__ import annotations

import pytest
import torch
from compare import both, same

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def test_products_of_each_dtype(mode: str) -> None:
    for dtype in FLOATS:
        a, b, v = torch.randn(5, 7).to(dtype), torch.randn(7, 3).to(dtype), torch.randn(7).to(dtype)
        batch, other = torch.randn(4, 5, 7).to(dtype), torch.randn(4, 7, 3).to(dtype)
        tolerance = TOLERANCE[dtype]

        def products(device: str) -> list[torch.Tensor]:
            x, y, w, p, q = (t.to(device) for t in (a, b, v, batch, other))
            return [x @ y, x @ w, w.dot(w), p @ q, p @ y, torch.mm(y.T, x.T), torch.outer(w, w)]  # noqa: B023

        both(products, atol=tolerance, rtol=tolerance)


def test_integer_products_are_exact(mode: str) -> None:
    a, b = torch.randint(-9, 9, (5, 7)), torch.randint(-9, 9, (7, 3))
    for dtype in (torch.int64, torch.int32, torch.int8):
        both(lambda d: a.to(dtype).to(d) @ b.to(dtype).to(d))  # noqa: B023
    both(lambda d: torch.addmm(torch.ones(3, dtype=torch.int64).to(d), a.to(d), b.to(d), beta=2, alpha=3))


def test_complex_products(mode: str) -> None:
    a, b = torch.randn(4, dtype=torch.complex64), torch.randn(4, dtype=torch.complex64)
    both(lambda d: [torch.vdot(a.to(d), b.to(d)), torch.dot(a.to(d), b.to(d))], atol=1e-5, rtol=1e-5)


def test_beta_zero_ignores_nan(mode: str) -> None:
    a, b = torch.randn(5, 7), torch.randn(7, 3)
    nan = torch.full((5, 3), float("nan"))
    got = both(lambda d: torch.addmm(nan.to(d), a.to(d), b.to(d), beta=0), atol=1e-5, rtol=1e-5)
    assert not got.isnan().any()
    got = both(lambda d: torch.addmm(nan.to(d), a.to(d), b.to(d), beta=0.5))
    assert got.isnan().all()


def test_added_products(mode: str) -> None:
    a, b, bias = torch.randn(5, 7), torch.randn(7, 3), torch.randn(3)
    batch, other, square = torch.randn(4, 5, 7), torch.randn(4, 7, 3), torch.randn(5, 3)

    def added(device: str) -> list[torch.Tensor]:
        x, y, c, p, q, s = (t.to(device) for t in (a, b, bias, batch, other, square))
        return [
            torch.addmm(c, x, y),
            torch.addmm(c, x, y, beta=0.3, alpha=1.7),
            torch.baddbmm(s.expand(4, 5, 3), p, q, beta=0.3, alpha=2),
            torch.addbmm(s, p, q, beta=2, alpha=0.5),
            torch.addmv(s[:, 0], x, y[:, 1], beta=0.5, alpha=3),
            torch.addr(s, x[:, 0], c, beta=0.5, alpha=3),
            torch.nn.functional.linear(p, y.T, c),
        ]

    both(added, atol=1e-5, rtol=1e-5)


def test_empty_contraction_is_the_bias(mode: str) -> None:
    both(lambda d: torch.randn(5, 0).to(d) @ torch.randn(0, 3).to(d))
    both(lambda d: torch.addmm(torch.ones(3).to(d), torch.randn(5, 0).to(d), torch.randn(0, 3).to(d)))
    both(lambda d: torch.randn(0, 4).to(d) @ torch.randn(4, 3).to(d))


def test_in_place_and_out(mode: str) -> None:
    a, b, start = torch.randn(5, 7), torch.randn(7, 3), torch.randn(5, 3)

    def work(device: str) -> list[torch.Tensor]:
        x, y, s = a.to(device), b.to(device), start.to(device)
        s.addmm_(x, y, alpha=0.5)
        out = torch.empty(3, 5, device=device).T
        torch.mm(x, y, out=out)
        return [s, out]

    both(work, atol=1e-5, rtol=1e-5)


def test_einsum_and_gradients(mode: str) -> None:
    a, b = torch.randn(2, 5, 7), torch.randn(7, 3)

    def work(device: str) -> list[torch.Tensor]:
        x, y = a.detach().to(device).requires_grad_(), b.detach().to(device).requires_grad_()
        torch.einsum("bik,kj->bij", x, y).square().sum().backward()
        return [x.grad, y.grad]

    both(work, atol=1e-4, rtol=1e-4)


def test_bfloat16_accumulates_in_float32(mode: str) -> None:
    ones = torch.ones(1, 4096, dtype=torch.bfloat16)
    same(ones.to("tpu") @ ones.to("tpu").T, torch.full((1, 1), 4096, dtype=torch.bfloat16))


def test_shapes_that_do_not_match_raise(mode: str) -> None:
    with pytest.raises(RuntimeError, match=r"2x3|\[2, 3\]"):
        torch.ones(2, 3, device="tpu") @ torch.ones(2, 3, device="tpu")
