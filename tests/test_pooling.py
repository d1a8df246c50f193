"""Pooling and upsampling with their gradients, against CPU."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from compare import both, fresh


def with_gradient(x: torch.Tensor, fn: Callable[[torch.Tensor], torch.Tensor], tolerance: float = 1e-5) -> None:
    def run(device: str) -> list[torch.Tensor]:
        leaf = fresh(x, device).requires_grad_()
        y = fn(leaf)
        (y * y).sum().backward()
        return [y, leaf.grad]

    both(run, atol=tolerance, rtol=tolerance)


def test_max_pool(mode: str) -> None:
    x = torch.randn(2, 3, 9, 11)
    with_gradient(x, lambda t: F.max_pool2d(t, 2))
    with_gradient(x, lambda t: F.max_pool2d(t, 3, 2, 1))
    with_gradient(x, lambda t: F.max_pool2d(t, (3, 2), (2, 3), (1, 0), (2, 1), ceil_mode=True))
    with_gradient(x[0], lambda t: F.max_pool1d(t, 3))
    with_gradient(x, lambda t: F.max_pool2d(t, 9, 1))
    with_gradient(torch.randn(2, 3, 5, 6, 7), lambda t: F.max_pool3d(t, (2, 3, 2), (2, 1, 2), (1, 1, 0)))


def test_max_pool_picks_as_cpu_does(mode: str) -> None:
    x = torch.randn(1, 2, 6, 6)
    x[0, 0, 2, 3] = float("nan")
    x[0, 1] = float("-inf")
    ties = torch.tensor([[[[1.0, 1, 2, 2], [1, 1, 2, 2]]]])
    both(lambda d: F.max_pool2d(x.to(d), 3, 2, 1, return_indices=True))
    both(lambda d: F.max_pool2d(ties.to(d), 2, return_indices=True))
    both(lambda d: F.max_pool2d(x.to(torch.bfloat16).to(d), 2, return_indices=True))


def test_average_pool(mode: str) -> None:
    x = torch.randn(2, 3, 9, 11)
    with_gradient(x, lambda t: F.avg_pool2d(t, 2))
    with_gradient(x, lambda t: F.avg_pool2d(t, 3, 2, 1))
    with_gradient(x, lambda t: F.avg_pool2d(t, (3, 2), (2, 3), (1, 0), ceil_mode=True, count_include_pad=False))
    with_gradient(x, lambda t: F.avg_pool2d(t, 2, divisor_override=3))
    with_gradient(x[0], lambda t: F.avg_pool1d(t, 3, 2))
    with_gradient(torch.randn(2, 3, 5, 6, 7), lambda t: F.avg_pool3d(t, (2, 3, 2), (2, 1, 2), (1, 1, 0)))
    with_gradient(torch.randn(1, 1, 1, 300), lambda t: F.avg_pool2d(t, (1, 100), (1, 7), (0, 40)))


def test_adaptive_pools(mode: str) -> None:
    x = torch.randn(2, 3, 9, 11)
    for size in ((1, 1), (3, 11), (4, 5), (12, 7)):
        with_gradient(x, lambda t: F.adaptive_avg_pool2d(t, size))  # noqa: B023
        with_gradient(x, lambda t: F.adaptive_max_pool2d(t, size))  # noqa: B023
    with_gradient(torch.randn(2, 3, 5, 6, 7), lambda t: F.adaptive_avg_pool3d(t, (2, 3, 7)))


def test_upsampling(mode: str) -> None:
    x, line = torch.randn(2, 3, 9, 11), torch.randn(2, 3, 7)
    for kind in ("nearest", "nearest-exact"):
        with_gradient(x, lambda t: F.interpolate(t, scale_factor=2, mode=kind))  # noqa: B023
        with_gradient(x, lambda t: F.interpolate(t, size=(13, 5), mode=kind))  # noqa: B023
        with_gradient(line, lambda t: F.interpolate(t, scale_factor=1.5, mode=kind))  # noqa: B023
    for align in (True, False):
        with_gradient(line, lambda t: F.interpolate(t, size=9, mode="linear", align_corners=align), 1e-4)  # noqa: B023
        for kind in ("bilinear", "bicubic"):
            with_gradient(x, lambda t: F.interpolate(t, size=(13, 20), mode=kind, align_corners=align), 1e-4)  # noqa: B023
        with_gradient(x, lambda t: F.interpolate(t, scale_factor=1.5, mode="bilinear", align_corners=align), 1e-4)  # noqa: B023
