"""Convolutions in one, two and three dims: stride, padding, dilation, groups, transposed, and all three gradients."""

from __future__ import annotations

import pytest
import torch
from compare import both
from torch.nn import functional as F  # noqa: N812

# input, weight, options of F.conv*d
PLAIN = [
    ((2, 4, 8, 8), (6, 4, 3, 3), {"padding": 1}),
    ((2, 4, 9, 8), (6, 4, 3, 3), {"padding": 1, "stride": 2}),
    ((2, 4, 9, 8), (6, 4, 1, 1), {}),
    ((2, 4, 9, 8), (6, 4, 1, 1), {"stride": 2}),
    ((2, 4, 9, 8), (6, 4, 1, 1), {"stride": 2, "padding": 1}),
    ((2, 4, 10, 9), (6, 2, 3, 2), {"stride": (2, 3), "padding": (1, 0), "dilation": (2, 1), "groups": 2}),
    ((2, 4, 8, 8), (8, 1, 3, 3), {"padding": 1, "groups": 4}),
    ((2, 4, 8, 8), (6, 4, 3, 3), {"padding": "same"}),
    ((2, 16, 33, 33), (8, 16, 3, 3), {"padding": 1}),
    ((2, 3, 17, 17), (4, 3, 7, 7), {"padding": 3, "stride": 2}),
    ((2, 4, 11), (6, 4, 3), {"stride": 2, "padding": 3, "dilation": 2}),
    ((2, 2, 5, 6, 7), (4, 2, 3, 2, 3), {"stride": (1, 2, 1), "padding": 1}),
    ((4, 8, 8), (6, 4, 3, 3), {"padding": 1}),
]
TRANSPOSED = [
    ((2, 6, 5, 5), (6, 4, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    ((2, 6, 5, 5), (6, 2, 3, 3), {"stride": 2, "dilation": 2, "output_padding": 1, "groups": 2}),
    ((2, 6, 5), (6, 2, 4), {"stride": 3, "padding": 2, "output_padding": 1, "groups": 3}),
    ((2, 6, 5, 5), (6, 2, 1, 1), {"stride": 2}),
    # output_padding as large as the stride: the input's gradient is smaller than a plain convolution's output
    ((2, 2, 4, 4), (2, 2, 4, 5), {"stride": (3, 2), "padding": (1, 2), "output_padding": (2, 3), "dilation": 4}),
]


def train(function, x, w, bias, options, device):
    leaves = [t.detach().to(device).requires_grad_() for t in (x, w, bias)]
    out = function(*leaves, **options)
    weights = torch.linspace(-1, 1, out.numel()).reshape(out.shape).to(out.dtype).to(device)
    (out * weights).sum().backward()
    return [out, *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("shape, kernel, options", PLAIN)
def test_convolution(mode: str, shape, kernel, options) -> None:
    function = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(kernel)]
    x, w, bias = torch.randn(shape), torch.randn(kernel), torch.randn(kernel[0])
    both(lambda d: train(function, x, w, bias, options, d), atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("shape, kernel, options", TRANSPOSED)
def test_transposed_convolution(mode: str, shape, kernel, options) -> None:
    function = {3: F.conv_transpose1d, 4: F.conv_transpose2d}[len(kernel)]
    x, w, bias = torch.randn(shape), torch.randn(kernel), torch.randn(kernel[1] * options.get("groups", 1))
    both(lambda d: train(function, x, w, bias, options, d), atol=1e-3, rtol=1e-4)


def test_other_dtypes(mode: str) -> None:
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.bfloat16, 5e-2)):
        x, w, bias = (torch.randn(s).to(dtype) for s in ((2, 4, 8, 8), (6, 4, 3, 3), (6,)))
        both(lambda d: train(F.conv2d, x, w, bias, {"padding": 1}, d), atol=tolerance * 8, rtol=tolerance)  # noqa: B023


def test_only_the_asked_gradients(mode: str) -> None:
    x, w = torch.randn(2, 3, 6, 6), torch.randn(4, 3, 3, 3)

    def work(device: str) -> list[torch.Tensor]:
        weight = w.detach().to(device).requires_grad_()
        F.conv2d(x.to(device), weight).sum().backward()
        data = x.detach().to(device).requires_grad_()
        F.conv2d(data, w.to(device)).sum().backward()
        return [weight.grad, data.grad]

    both(work, atol=1e-4, rtol=1e-4)


def test_empty_batch(mode: str) -> None:
    both(lambda d: F.conv2d(torch.randn(0, 3, 6, 6).to(d), torch.zeros(4, 3, 3, 3).to(d)))


def test_wrong_channels_raise_as_on_cpu(mode: str) -> None:
    with pytest.raises(RuntimeError, match="to have 3 channels"):
        F.conv2d(torch.ones(1, 2, 5, 5, device="tpu"), torch.ones(4, 3, 3, 3, device="tpu"))
