"""Activations and their gradients against CPU, in every float type."""

from __future__ import annotations

import math

import pytest
import torch
from compare import both, same
from torch.nn import functional as F  # noqa: N812

ACTIVATIONS = {
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 1.3),
    "celu": lambda x: F.celu(x, 0.7),
    "selu": F.selu,
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 2.0),
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "hardshrink": lambda x: F.hardshrink(x, 0.6),
    "softshrink": lambda x: F.softshrink(x, 0.4),
    "softplus": lambda x: F.softplus(x, 2.0, 10.0),
    "softsign": F.softsign,
    "tanhshrink": F.tanhshrink,
    "threshold": lambda x: F.threshold(x, 0.5, 7.0),
    "logsigmoid": F.logsigmoid,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
# The kinks belong to one side; ends of the range, and NaN.
KINKS = [0.0, -0.0, 3.0, -3.0, 0.5, -0.5, 0.6, -0.6, 0.4, -0.4, 2.0, 6.0, 5.0, 5.1, 30.0, -30.0, 100.0, -100.0]
TOLERANCE = {
    torch.float32: {"rtol": 2e-6, "atol": 1e-6},
    torch.float64: {"rtol": 1e-12, "atol": 1e-13},
    torch.bfloat16: {"rtol": 1.6e-2, "atol": 1e-3},
    torch.float16: {"rtol": 2e-3, "atol": 1e-3},
}


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_value_and_gradient(mode, name, dtype):
    start = torch.cat([torch.tensor(KINKS), torch.randn(30) * 3]).to(dtype)
    weight = torch.randn(len(start)).to(dtype)

    def work(d):
        x = start.to(d, copy=True).requires_grad_()
        y = ACTIVATIONS[name](x)
        y.backward(weight.to(d))
        return y, x.grad

    both(work, **TOLERANCE[dtype])


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_nan_and_infinity(mode, name):
    # In float64: some hosts' vectorized float32 gelu of an infinity is NaN.
    x = torch.tensor([math.nan, math.inf, -math.inf] * 16)
    same(ACTIVATIONS[name](x.to("tpu")), ACTIVATIONS[name](x.double()).float())


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_glu(mode, dim):
    start = torch.randn(4, 6, 8)

    def work(d):
        x = start.to(d, copy=True).requires_grad_()
        y = F.glu(x, dim)
        (y * y).sum().backward()
        return y, x.grad

    both(work, rtol=2e-6, atol=1e-6)
    with pytest.raises(RuntimeError, match="must be even"):
        F.glu(torch.ones(3, device="tpu"))


@pytest.mark.parametrize("channels", [1, 5])
def test_prelu(mode, channels):
    start, slope = torch.randn(3, 5, 4), torch.rand(channels)

    def work(d):
        x, w = start.to(d, copy=True).requires_grad_(), slope.to(d, copy=True).requires_grad_()
        y = F.prelu(x, w)
        (y * y).sum().backward()
        return y, x.grad, w.grad

    both(work, rtol=5e-6, atol=1e-5)


def test_second_derivatives(mode):
    start = torch.randn(12)
    for fn in (torch.tanh, torch.sigmoid, F.silu, F.softplus, F.gelu):

        def work(d, fn=fn):
            x = start.to(d, copy=True).requires_grad_()
            (slope,) = torch.autograd.grad(fn(x).sum(), x, create_graph=True)
            (curve,) = torch.autograd.grad(slope.sum(), x)
            return slope, curve

        both(work, rtol=1e-5, atol=1e-5)


def test_in_place(mode):
    start = torch.randn(20)
    for fn in (F.relu_, F.leaky_relu_, F.elu_, lambda x: F.silu(x, inplace=True), lambda x: F.hardtanh_(x, -0.5, 0.5)):
        both(lambda d, fn=fn: fn(start.to(d, copy=True)), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_bounds_that_a_short_float_rounds(mode, dtype):
    """Some kernels round a bound to the tensor's type, some do not: on the bound itself the two differ."""
    for bound in (0.3, 0.4, 0.6, 0.7):
        x = torch.tensor([bound, -bound] * 20).to(dtype)
        for fn in (F.hardshrink, F.softshrink, lambda a, v: F.threshold(a, v, 7.0), lambda a, v: F.hardtanh(a, -v, v)):

            def work(d, fn=fn, x=x, bound=bound):
                leaf = x.to(d, copy=True).requires_grad_()
                y = fn(leaf, bound)
                y.sum().backward()
                return y, leaf.grad

            both(work, rtol=1e-2)
