"""Losses and their gradients against CPU."""

from __future__ import annotations

import pytest
import torch
from compare import both, same
from torch.nn import functional as F  # noqa: N812

REDUCTIONS = ["none", "mean", "sum"]
CLOSE = {"rtol": 5e-6, "atol": 1e-6}

PAIRS = {
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "smooth_l1": lambda x, y, **k: F.smooth_l1_loss(x, y, beta=0.7, **k),
    "huber": lambda x, y, **k: F.huber_loss(x, y, delta=0.8, **k),
    "soft_margin": lambda x, y, **k: F.soft_margin_loss(x, y.sign(), **k),
    "bce": lambda x, y, **k: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), **k),
    "weighted bce": lambda x, y, **k: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), weight=y.abs(), **k),
    "bce with logits": F.binary_cross_entropy_with_logits,
    "kl_div": lambda x, y, **k: F.kl_div(x.log_softmax(-1), y.softmax(-1), **k),
    "poisson": lambda x, y, **k: F.poisson_nll_loss(x, y.abs(), **k),
    "hinge": lambda x, y, **k: F.hinge_embedding_loss(x, y.sign(), **k),
}


def with_gradient(fn, start, d, *rest):
    x = start.to(d, copy=True).requires_grad_()
    loss = fn(x, *[r.to(d) for r in rest])
    (loss * torch.arange(1, loss.numel() + 1, device=d).reshape(loss.shape).to(loss.dtype)).sum().backward()
    return loss, x.grad


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", list(PAIRS))
def test_pairs(mode, name, reduction):
    x, y = torch.randn(6, 5), torch.randn(6, 5)
    both(lambda d: with_gradient(lambda a, b: PAIRS[name](a, b, reduction=reduction), x, d, y), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_short_floats(mode, dtype):
    x, y = torch.randn(64).to(dtype), torch.randn(64).to(dtype)
    for name in ("mse", "smooth_l1", "huber"):
        both(lambda d, n=name: with_gradient(PAIRS[n], x, d, y), rtol=1.6e-2, atol=1e-3)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_nll(mode, reduction, weighted):
    weight = torch.rand(5) + 0.1 if weighted else None

    def loss(x, t, w=None):
        return F.nll_loss(x, t, weight=w, ignore_index=-100, reduction=reduction)

    cases = [
        (torch.randn(7, 5), torch.tensor([0, 4, -100, 2, 1, -100, 3])),
        (torch.randn(5), torch.tensor(3)),
        (torch.randn(2, 5, 3, 4), torch.randint(0, 5, (2, 3, 4))),
        (torch.randn(2, 5, 6), torch.randint(0, 5, (2, 6))),
    ]
    for scores, target in cases:
        rest = (target,) if weight is None else (target, weight)
        both(lambda d, s=scores, r=rest: with_gradient(loss, s, d, *r), **CLOSE)


def test_all_ignored(mode):
    x, t = torch.randn(3, 4), torch.full((3,), -100)
    both(lambda d: F.nll_loss(x.to(d), t.to(d)))  # 0 / 0
    both(lambda d: F.nll_loss(x.to(d), t.to(d), reduction="sum"))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(mode, smoothing):
    scores, target = torch.randn(6, 9), torch.randint(0, 9, (6,))
    target[2] = 3
    weight = torch.rand(9)

    def loss(x, t, w):
        return F.cross_entropy(x, t, w, ignore_index=3, label_smoothing=smoothing)

    both(lambda d: with_gradient(loss, scores, d, target, weight), **CLOSE)
    shares = torch.randn(6, 9).softmax(1)
    both(lambda d: with_gradient(lambda x, t: F.cross_entropy(x, t), scores, d, shares), **CLOSE)


def test_bce_stays_finite(mode):
    x, y = torch.tensor([0.0, 1.0, 1e-30, 0.5]), torch.tensor([1.0, 0.0, 1.0, 0.5])
    got = both(lambda d: F.binary_cross_entropy(x.to(d), y.to(d), reduction="none"), **CLOSE)
    assert got[0] == 100
    weight = torch.tensor([2.0, 3.0, 1.0, 0.5])
    both(
        lambda d: F.binary_cross_entropy_with_logits((x * 300).to(d), y.to(d), pos_weight=weight.to(d), reduction="none"),
        **CLOSE,
    )


def test_smooth_l1_without_a_bend_is_l1(mode):
    x, y = torch.randn(9), torch.randn(9)
    same(F.smooth_l1_loss(x.to("tpu"), y.to("tpu"), beta=0.0), F.l1_loss(x, y), **CLOSE)


def test_mistakes_are_named(mode):
    with pytest.raises(RuntimeError, match="size"):
        F.mse_loss(torch.ones(3, device="tpu"), torch.ones(4, device="tpu"))
    with pytest.raises((RuntimeError, ValueError), match="batch"):
        F.nll_loss(torch.ones(3, 4, device="tpu"), torch.zeros(2, dtype=torch.int64, device="tpu"))
