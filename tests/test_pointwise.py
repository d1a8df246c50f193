"""Elementwise ops against CPU: values at the awkward points, promotion, rounding, errors."""

from __future__ import annotations

import math

import pytest
import torch
from compare import both, on, same

INF, NAN = math.inf, math.nan
POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 2.5, -2.5, 1.5, 3.0, -3.0, INF, -INF, NAN, 1e-10, -1e-10]
POINTS += [0.1, 0.9, -0.9, 10.0, 88.0, -88.0, 0.999, -0.999, 0.25, 1.2, 4.0, 100.0, 1000.0, 7.999]
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]

UNARY = """abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1
floor frac isfinite isinf isnan isneginf isposinf lgamma log log10 log1p log2 logical_not logit nan_to_num neg
reciprocal round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc""".split()
INTEGER_UNARY = """abs bitwise_not ceil exp isnan logical_not neg nan_to_num reciprocal sgn sigmoid sign signbit sqrt
square trunc""".split()
COMPLEX_UNARY = "abs acos angle asin atan asinh cos cosh exp log reciprocal sgn sigmoid sin sinh sqrt tan tanh".split()

BINARY = """add atan2 copysign div eq floor_divide fmax fmin fmod ge gt hypot le logaddexp logaddexp2 logical_and
logical_or logical_xor lt maximum minimum mul ne nextafter pow remainder sub xlogy heaviside""".split()
INTEGER_BINARY = """add bitwise_and bitwise_or bitwise_xor div eq floor_divide fmod gcd gt lcm le logical_xor maximum
minimum mul ne remainder sub""".split()


def close(dtype: torch.dtype) -> dict[str, float]:
    """How far the last digits may be off: a few units in the last place."""
    if dtype in (torch.float64, torch.complex128):
        return {"rtol": 1e-13, "atol": 1e-14}
    if dtype == torch.float16:
        return {"rtol": 2e-3, "atol": 1e-5}
    if dtype == torch.bfloat16:
        return {"rtol": 1.6e-2, "atol": 1e-5}
    return {"rtol": 1.3e-6, "atol": 1e-6}


def points(dtype: torch.dtype) -> torch.Tensor:
    return torch.cat([torch.tensor(POINTS, dtype=torch.float64), torch.randn(32, dtype=torch.float64)]).to(dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_unary(mode, dtype):
    x = points(dtype)
    bounded = x.clone().nan_to_num(0.0, 1.0, -1.0).clamp(-100, 100)
    for name in UNARY:
        given = bounded if name in ("sin", "cos", "tan", "sinc") else x
        if name == "logit" and dtype in (torch.float16, torch.bfloat16):
            continue  # CPU rounds between its steps there
        both(lambda d, name=name, given=given: getattr(torch, name)(given.to(d)), **close(dtype))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
def test_unary_of_integers(mode, dtype):
    x = torch.randint(0 if dtype == torch.uint8 else -20, 20, (33,)).to(dtype)
    for name in INTEGER_UNARY:
        both(lambda d, name=name: getattr(torch, name)(x.to(d)), **close(torch.float32))


def test_unary_of_complex_numbers(mode):
    x = torch.randn(40, dtype=torch.complex64)
    for name in COMPLEX_UNARY:
        both(lambda d, name=name: getattr(torch, name)(x.to(d)), rtol=1e-5, atol=1e-5)
    both(lambda d: x.to(d).conj().resolve_conj())
    both(lambda d: torch.conj_physical(x.to(d)))
    both(lambda d: torch.complex(x.real.to(d), x.imag.to(d)))
    both(lambda d: torch.polar(x.abs().to(d), x.real.to(d)), **close(torch.complex64))


def test_signs_of_zero_and_of_nan_survive(mode):
    x = torch.tensor([0.0, -0.0, NAN, -NAN, 1.0, -1.0])
    y = torch.tensor([-1.0, 1.0, -1.0, 1.0, -0.0, -0.0])
    for name in ("neg", "abs", "trunc", "round", "ceil", "floor", "sqrt", "sin", "tanh", "asinh", "atan", "expm1"):
        same(torch.signbit(getattr(torch, name)(x[:2].to("tpu"))), torch.signbit(getattr(torch, name)(x[:2])))
    both(lambda d: torch.signbit(torch.copysign(x.to(d), y.to(d))))
    both(lambda d: torch.signbit(x[:2].to(d) * y[:2].to(d)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_binary(mode, dtype):
    x = points(dtype)
    y = x[torch.randperm(len(x))]
    for name in BINARY:
        if name == "nextafter" and dtype == torch.float16:
            continue  # no CPU kernel
        try:
            want = getattr(torch, name)(x, y)
        except RuntimeError:  # no CPU kernel for a short type
            continue
        same(getattr(torch, name)(x.to("tpu"), y.to("tpu")), want, **close(dtype))
    for rounding in (None, "floor", "trunc"):
        both(lambda d, r=rounding: torch.div(x.to(d), y.to(d), rounding_mode=r), **close(dtype))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
def test_binary_of_integers(mode, dtype):
    low = 0 if dtype == torch.uint8 else -20
    x = torch.randint(low, 20, (64,)).to(dtype)
    y = torch.randint(low, 20, (64,)).to(dtype)
    divisor = torch.where(y == 0, torch.ones_like(y), y)
    for name in INTEGER_BINARY:
        other = divisor if name in ("div", "floor_divide", "fmod", "remainder") else y
        both(lambda d, n=name, o=other: getattr(torch, n)(x.to(d), o.to(d)), **close(torch.float32))
    both(lambda d: torch.div(x.to(d), divisor.to(d), rounding_mode="trunc"))
    both(lambda d: x.to(d) << y.abs().to(d))
    both(lambda d: x.to(d) >> y.abs().to(d))
    both(lambda d: x.to(d) >> 2)


def test_promotion(mode):
    """Tensors with dims, 0-d tensors and numbers, over all kinds: the result's dtype and its value."""
    kinds = [torch.bool, torch.uint8, torch.int8, torch.int64, torch.float16, torch.float32, torch.float64]
    tensors = [torch.tensor([0, 1, 3]).to(t) for t in kinds]
    others = [torch.tensor(2).to(t) for t in kinds] + [True, 3, 2.5]
    for x in tensors:
        for other in [*tensors, *others]:
            moved = other.to("tpu") if isinstance(other, torch.Tensor) else other
            same(torch.add(x.to("tpu"), moved), torch.add(x, other), rtol=1e-3, atol=1e-3)
    both(lambda d: torch.tensor([1, 2], device=d) / torch.tensor([3, 4], device=d), **close(torch.float32))
    both(lambda d: torch.tensor([1, 2], device=d) * (1 + 2j))
    both(lambda d: torch.tensor([200, 100], dtype=torch.uint8, device=d) + 100)
    both(lambda d: 3 - torch.tensor([1, 2], dtype=torch.int8, device=d))
    both(lambda d: torch.tensor([1.0, 2.0], dtype=torch.bfloat16, device=d) * 0.1)
    both(lambda d: torch.tensor([1.0, 2.0], dtype=torch.bfloat16, device=d) + 0.1)
    both(lambda d: torch.tensor([0.1, 1.0], dtype=torch.float16, device=d) == 0.1)
    both(lambda d: torch.tensor([1, 2], device=d).lt(1.5))


def test_numbers_do_not_make_programs_of_their_own(mode):
    x = torch.randn(11, device="tpu")
    torch.tpu.synchronize()  # in fused mode, so that making x is no part of what follows
    (x * 1.25).cpu()
    before = torch.tpu._get_cache_misses()
    for factor in (1.5, 1.75, -3.25):
        same(x * factor, x.cpu() * factor)
    assert torch.tpu._get_cache_misses() == before


@pytest.mark.parametrize("alpha", [1, 2, -3, 0.5])
def test_alpha(mode, alpha):
    x, y = torch.randn(5, 3), torch.randn(3)
    both(lambda d: torch.add(x.to(d), y.to(d), alpha=alpha), **close(torch.float32))
    both(lambda d: torch.sub(x.to(d), y.to(d), alpha=alpha), **close(torch.float32))
    both(lambda d: torch.rsub(x.to(d), y.to(d), alpha=alpha), **close(torch.float32))


def test_powers(mode):
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, INF, -INF, NAN, 3.3, 1e-3, 1e10])
    for exponent in (0, 1, 2, 3, 4, -1, -2, 0.5, -0.5, 2.5, -3, 5, 1 / 3):
        both(lambda d, e=exponent: x.to(d) ** e, rtol=1e-5, atol=1e-6)
        both(lambda d, e=exponent: torch.pow(e, x.to(d)), rtol=1e-5, atol=1e-6)
    rows, columns = torch.meshgrid(x, x, indexing="ij")
    both(lambda d: rows.to(d) ** columns.to(d), rtol=1e-5, atol=1e-6)
    n = torch.randint(-5, 6, (50,))
    e = torch.randint(-5, 40, (50,))
    both(lambda d: n.to(d) ** e.to(d))
    both(lambda d: n.to(torch.int8).to(d) ** 3)
    both(lambda d: 2 ** e.abs().to(d))
    with pytest.raises(RuntimeError, match="negative integer powers"):
        n.to("tpu") ** -1


def test_clamp_where_and_friends(mode):
    x = points(torch.float32)
    for low, high in ((-1, 1), (None, 0.5), (-0.5, None), (1, -1), (0.0, NAN)):
        both(lambda d, a=low, b=high: torch.clamp(x.to(d), a, b))
    n = torch.randint(-9, 9, (20,))
    both(lambda d: torch.clamp(n.to(d), -2, 3))
    both(lambda d: torch.clamp(n.to(d), -1.5, 3))
    both(lambda d: torch.clamp(x.to(d), x.flip(0).to(d)))
    condition = torch.rand(len(x)) > 0.5
    both(lambda d: torch.where(condition.to(d), x.to(d), 2))
    both(lambda d: torch.where(condition[:4].to(d), torch.ones(3, 1, device=d), torch.arange(4, device=d)))
    both(lambda d: x.to(d).masked_fill(condition.to(d), -INF))
    both(lambda d: x.to(d).masked_fill_(condition.to(d), torch.tensor(3.0)))
    both(lambda d: torch.full((3,), 2.5, device=d).fill_(1.25).zero_() + 1)
    a, c, w = torch.randn(9), torch.randn(9), torch.rand(9)
    for weight in (0.3, 0.7, -0.2):
        both(lambda d, weight=weight: torch.lerp(a.to(d), c.to(d), weight), **close(torch.float32))
    both(lambda d: torch.lerp(a.to(d), c.to(d), w.to(d)), **close(torch.float32))
    both(lambda d: torch.addcmul(a.to(d), c.to(d), w.to(d), value=0.5), **close(torch.float32))
    both(lambda d: torch.addcdiv(a.to(d), c.to(d), w.to(d) + 1, value=-2), **close(torch.float32))
    both(lambda d: torch.nan_to_num(x.to(d), 1.5, 2.5, -3.5))
    both(lambda d: torch.round(x[:13].to(d) * 12.345, decimals=1), **close(torch.float32))


def test_in_place_and_out_come_from_the_same_row(mode):
    x, y = torch.randn(4, 3), torch.randn(3)

    def work(d):
        a, out = x.to(d, copy=True), torch.empty(0, device=d)
        a.add_(y.to(d), alpha=2).mul_(0.5).sub_(1).div_(3).clamp_(-0.2, 0.2)
        torch.mul(a, 4, out=out)
        n = torch.ones(3, dtype=torch.int32, device=d)
        n += 2
        n *= torch.tensor(3, device=d)
        return a, out, n, a[1:, ::2].neg_(), a

    both(work, **close(torch.float32))
    with pytest.raises(RuntimeError, match="can't be cast"):
        on("tpu", [1, 2]).add_(1.5)


def test_empty_and_zero_dim(mode):
    both(lambda d: torch.empty(0, 3, device=d) + torch.ones(3, device=d))
    both(lambda d: torch.exp(torch.tensor(0.5, device=d)) * torch.tensor(3, device=d), **close(torch.float32))
    both(lambda d: torch.gcd(torch.tensor(12, device=d), torch.tensor(18, device=d)))


def test_mistakes_are_named(mode):
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match the size of tensor b \(4\)"):
        torch.ones(2, 3, device="tpu") + torch.ones(2, 4, device="tpu")
    with pytest.raises(RuntimeError, match="bool"):
        on("tpu", [True]) - on("tpu", [True])
    with pytest.raises(RuntimeError):
        torch.bitwise_and(torch.ones(2, device="tpu"), 1)
