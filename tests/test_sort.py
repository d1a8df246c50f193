"""Sorting, selecting by rank, and their NaN and tie rules, against CPU."""

from __future__ import annotations

import torch
from compare import both, fresh

NAN, INF = float("nan"), float("inf")


def rows() -> torch.Tensor:
    x = torch.randn(4, 9)
    x[0, 3] = x[1, 2] = x[1, 5] = NAN
    x[2, :2] = 0.0
    x[2, 2] = -0.0
    x[3, 1], x[3, 2] = INF, -INF
    return x


def test_sort_is_stable_with_nan_last(mode: str) -> None:
    x, mixed = rows(), torch.randperm(20)
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool):
        t = x.to(dtype) if dtype.is_floating_point else (x.nan_to_num(0, 9, 9) * 3).abs().to(dtype)
        both(lambda d: [*t.to(d).sort(dim=1, stable=True), *t.to(d).sort(dim=0, descending=True, stable=True)])  # noqa: B023
    both(lambda d: [*torch.tensor(3.0).to(d).sort(), mixed.to(d).argsort(), torch.msort(x.to(d))])


def test_topk(mode: str) -> None:
    x = torch.randn(20, 50)
    both(lambda d: [*x.to(d).topk(5), *x.to(d).topk(1, 0), *x.to(d).topk(3, largest=False), x.to(d).topk(0)[0]])
    both(lambda d: rows_values(d))


def rows_values(device: str) -> torch.Tensor:
    torch.manual_seed(1)
    return rows().to(device).topk(3).values


def test_topk_has_a_gradient(mode: str) -> None:
    x = torch.randn(4, 9)

    def run(d: str) -> torch.Tensor:
        leaf = fresh(x, d).requires_grad_()
        (leaf.topk(2).values ** 2).sum().backward()
        return leaf.grad

    both(run, atol=1e-6, rtol=1e-6)


def test_ranks(mode: str) -> None:
    x, plain = rows(), torch.randn(4, 8)
    both(
        lambda d: [
            *plain.to(d).kthvalue(3),
            *plain.to(d).kthvalue(2, 0, True),
            plain.to(d).median(),
            x.to(d).median(),
            x.to(d).nanmedian(),
            *plain.to(d).median(1),
            x.to(d).median(1, keepdim=True).values,
            x.to(d).nanmedian(1).values,
            torch.tensor([[1, 2, 2, 3, 3], [5, 4, 4, 4, 5]]).to(d).mode(1).values,
        ]
    )
