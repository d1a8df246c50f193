"""Reductions and running sums against CPU: dims, keepdim, dtypes, NaN, ties, nothing to reduce."""

from __future__ import annotations

import math

import pytest
import torch
from compare import both, same

INF, NAN = math.inf, math.nan
DIMS = [None, 0, -1, (0, 2), (1,)]
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
ENDS = [torch.amax, torch.amin]


def close(dtype: torch.dtype) -> dict[str, float]:
    return {
        torch.float32: {"rtol": 2e-6, "atol": 2e-6},
        torch.float64: {"rtol": 1e-12, "atol": 1e-12},
        torch.complex64: {"rtol": 1e-5, "atol": 1e-5},
        torch.bfloat16: {"rtol": 1.6e-2, "atol": 1e-2},
        torch.float16: {"rtol": 2e-3, "atol": 2e-3},
    }.get(dtype, {"rtol": 0.0, "atol": 0.0})


def sample(dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(4, 5, 6, dtype=torch.complex64 if dtype.is_complex else torch.float64).to(dtype)
    return torch.randint(0, 3, (4, 5, 6)).to(dtype)


@pytest.mark.parametrize("dim", DIMS, ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64], ids=str)
def test_floats(mode, dtype, dim):
    x = sample(dtype)
    names = ["sum", "mean", "var", "std"] + ([] if dtype.is_complex else ["amax", "amin", "nansum", "any", "all"])
    for name in names:
        for keepdim in (False, True):
            if dim is None and name in ("amax", "amin"):
                both(lambda d, n=name, k=keepdim: getattr(torch, n)(x.to(d), (), k), **close(dtype))
            else:
                both(lambda d, n=name, k=keepdim: getattr(torch, n)(x.to(d), dim=dim, keepdim=k), **close(dtype))
    both(lambda d: torch.linalg.vector_norm(x.to(d), 2, dim), **close(dtype))
    both(lambda d: torch.count_nonzero(x.to(d), dim), **close(dtype))
    if not dtype.is_complex and dim is not None:
        both(lambda d: torch.logsumexp(x.to(d), dim), **close(dtype))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool], ids=str)
def test_integers_add_up_in_int64(mode, dtype):
    x = sample(dtype)
    for dim in (None, 1, (0, 2)):
        for name in ("sum", "any", "all"):
            both(lambda d, n=name, m=dim: getattr(torch, n)(x.to(d), dim=m))
        both(lambda d, m=dim: torch.amax(x.to(d), m or ()))
    both(lambda d: x.to(d).prod())
    both(lambda d: x.to(d).prod(1, keepdim=True))
    both(lambda d: x.to(d).cumsum(2))
    both(lambda d: torch.sum(x.to(d), 1, dtype=torch.float32))
    both(lambda d: torch.mean(x.to(d), 1, dtype=torch.float64), **close(torch.float64))
    with pytest.raises(RuntimeError, match="dtype"):
        x.to("tpu").mean()


def test_moments(mode):
    x = torch.randn(4, 5, 6) + 100
    for correction in (0, 1, 2.5):
        both(lambda d, c=correction: torch.var_mean(x.to(d), dim=1, correction=c), rtol=1e-4, atol=1e-5)
    both(lambda d: torch.std_mean(x.to(d)), rtol=1e-4, atol=1e-5)
    one = torch.tensor([1.0])
    same(one.to("tpu").var(), one.var())  # NaN
    same(one.to("tpu").var(correction=3), one.var(correction=3))


def test_norms(mode):
    x = torch.randn(3, 5)
    for p in (0, 1, 2, 3, 2.5, -1, INF, -INF):
        both(lambda d, p=p: torch.linalg.vector_norm(x.to(d), p, 1), rtol=1e-5, atol=1e-6)
        both(lambda d, p=p: x.to(d).norm(p), rtol=1e-5, atol=1e-6)


def test_nan_wins(mode):
    x = torch.randn(4, 6)
    x[1, 2] = NAN
    x[2, 0] = x[2, 5] = NAN
    x[3, 3] = INF
    for fn in ("max", "min"):
        both(lambda d, fn=fn: tuple(getattr(x.to(d), fn)(1)))
        both(lambda d, fn=fn: getattr(x.to(d), fn)())
        both(lambda d, fn=fn: getattr(torch, "arg" + fn)(x.to(d)))
        both(lambda d, fn=fn: getattr(torch, "arg" + fn)(x.to(d), 1, keepdim=True))
    both(lambda d: tuple(torch.aminmax(x.to(d), dim=0)))
    both(lambda d: tuple(torch.aminmax(x.to(d))))
    both(lambda d: torch.nansum(x.to(d), 1), **close(torch.float32))


def test_none_and_a_dim_are_different_programs(mode):
    x = torch.randn(3, 4, 5)
    for dim in (None, 0, 1, 2):
        both(lambda d, m=dim: tuple(torch.aminmax(x.to(d), dim=m)))
        both(lambda d, m=dim: torch.argmax(x.to(d), m))


def test_ties_go_to_the_first(mode):
    x = torch.randint(0, 3, (5, 40))
    for given in (x, x.float(), torch.full((2, 3), -INF)):
        both(lambda d, g=given: tuple(g.to(d).max(1)))
        both(lambda d, g=given: tuple(g.to(d).min(0)))
        both(lambda d, g=given: torch.argmin(g.to(d), 1))


@pytest.mark.parametrize("n", [1, 16, 17, 300, 5000])
def test_running(mode, n):
    x = torch.randn(2, n)
    # CPU adds float32 in double; a blocked float32 sum stays within the rounding of its largest partial sum
    both(lambda d: x.to(d).cumsum(1), rtol=1e-5, atol=1e-6 * n**0.5 + 1e-5)
    both(lambda d: x.t().to(d).cumsum(0), rtol=1e-5, atol=1e-6 * n**0.5 + 1e-5)
    both(lambda d: (1 + x[0] / 100).to(d).cumprod(0), rtol=1e-5 * n**0.5, atol=1e-6)
    y = torch.randint(0, 9, (2, n))
    both(lambda d: y.to(d).cumsum(-1))
    both(lambda d: tuple(y.to(d).cummax(1)))
    both(lambda d: tuple(x.to(d).cummin(1)))
    both(lambda d: torch.logcumsumexp(x.to(d), 1), rtol=1e-5, atol=1e-5)


def test_running_with_nan_and_infinity(mode):
    x = torch.randn(3, 50)
    x[0, 20], x[1, 30], x[2, 10], x[2, 40] = NAN, INF, -INF, INF
    both(lambda d: x.to(d).cumsum(1), rtol=1e-5, atol=1e-5)
    both(lambda d: tuple(x.to(d).cummax(1)))
    both(lambda d: torch.logcumsumexp(x.to(d), 1), rtol=1e-5, atol=1e-5)


def test_nothing_to_reduce(mode):
    e = torch.empty(0, 3)
    for fn in (torch.sum, torch.prod, torch.mean, torch.any, torch.all):
        both(lambda d, fn=fn: fn(e.to(d)))
        both(lambda d, fn=fn: fn(e.to(d), 0))
    both(lambda d: e.to(d).cumsum(0))
    both(lambda d: e.to(d).amax(1))
    both(lambda d: torch.logsumexp(e.to(d), 0))
    with pytest.raises(IndexError, match="non-zero size"):
        e.to("tpu").amax(0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        e.to("tpu").sum(2)


def test_zero_dim(mode):
    x = torch.tensor(3.5)
    for fn in (torch.sum, torch.mean, torch.amax, torch.prod, torch.logsumexp):
        args = (0,) if fn in (torch.logsumexp, torch.amax) else ()
        both(lambda d, fn=fn, args=args: fn(x.to(d), *args), **close(torch.float32))
    both(lambda d: tuple(x.to(d).max(0)))
    both(lambda d: torch.argmax(x.to(d)))
    both(lambda d: x.to(d).cumsum(0))


def test_large_sums_keep_their_digits(mode):
    x = torch.rand(1_000_003)
    both(lambda d: x.to(d).sum(), rtol=2e-6)
    both(lambda d: x.bfloat16().to(d).sum(), rtol=8e-3)
    both(lambda d: x.to(d).mean(), rtol=2e-6)


def test_gradients(mode):
    start = torch.randn(4, 5)
    fns = [torch.sum, torch.mean, torch.var, torch.logsumexp, torch.prod, torch.cumsum, torch.cumprod, torch.amax]
    for fn in fns:

        def work(d, fn=fn):
            x = start.to(d, copy=True).requires_grad_()
            y = fn(x, 1)
            (y * y).sum().backward()
            return y, x.grad

        both(work, rtol=1e-4, atol=1e-5)
    for fn in (torch.max, torch.min, torch.cummax):

        def pairs(d, fn=fn):
            x = start.to(d, copy=True).requires_grad_()
            fn(x, 1).values.square().sum().backward()
            return x.grad

        both(pairs, rtol=1e-5, atol=1e-5)
