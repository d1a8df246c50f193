"""Optimizers (single, foreach, fused), gradient clipping and scaling, and the foreach ops under them."""

from __future__ import annotations

import pytest
import torch
import torch_tpu
from compare import both
from torch import nn

OPTIMIZERS = {
    "sgd": lambda p, **k: torch.optim.SGD(p, lr=0.1, **k),
    "sgd, momentum": lambda p, **k: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-2, **k),
    "adam": lambda p, **k: torch.optim.Adam(p, lr=1e-2, **k),
    "adam, amsgrad": lambda p, **k: torch.optim.Adam(p, lr=1e-2, amsgrad=True, weight_decay=1e-2, **k),
    "adamw": lambda p, **k: torch.optim.AdamW(p, lr=1e-2, **k),
    "adamw, maximize": lambda p, **k: torch.optim.AdamW(p, lr=1e-2, maximize=True, **k),
}
FOREACH_ONLY = {
    "rmsprop": lambda p, **k: torch.optim.RMSprop(p, lr=1e-2, momentum=0.5, **k),
    "adagrad": lambda p, **k: torch.optim.Adagrad(p, lr=1e-2, **k),
    "adadelta": lambda p, **k: torch.optim.Adadelta(p, **k),
    "adamax": lambda p, **k: torch.optim.Adamax(p, **k),
    "nadam": lambda p, **k: torch.optim.NAdam(p, **k),
}
EXPECTED = {"rtol": 1e-3, "atol": 1e-4}


def train(make, device, steps=4, **options):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    x, y = torch.randn(5, 6), torch.randn(5, 3)
    model, x, y = model.to(device), x.to(device), y.to(device)
    optimizer = make(model.parameters(), **options)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *model.parameters()]


@pytest.mark.parametrize("way", ["single", "foreach", "fused"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer(mode: str, name: str, way: str) -> None:
    options = {"single": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}[way]
    both(lambda d: train(OPTIMIZERS[name], d, **options), **EXPECTED)


@pytest.mark.parametrize("name", FOREACH_ONLY)
def test_other_optimizers(mode: str, name: str) -> None:
    both(lambda d: train(FOREACH_ONLY[name], d, foreach=True), **EXPECTED)


def test_new_learning_rate_compiles_nothing(mode: str) -> None:
    def step(parameter: nn.Parameter, optimizer: torch.optim.Optimizer, number: int) -> None:
        optimizer.param_groups[0]["lr"] = 1e-2 / number
        parameter.grad = torch.full((4,), 1.5 + number).to(parameter.device)
        optimizer.step()

    def work(device: str) -> list[torch.Tensor]:
        parameter = nn.Parameter(torch.ones(4).to(device))
        optimizer = torch.optim.AdamW([parameter], lr=1e-2)
        for number in (2, 3):
            step(parameter, optimizer, number)
        before = torch_tpu._C.cache_stats()
        for number in (4, 5, 6):
            step(parameter, optimizer, number)
        after = torch_tpu._C.cache_stats()
        assert after["compilations"] == before["compilations"], (before, after)
        return [parameter]

    both(work, rtol=1e-5, atol=1e-6)


def test_clip_grad_norm(mode: str) -> None:
    gradients = [torch.randn(3, 4) * 5, torch.randn(7)]

    def work(device: str, kind: float) -> list[torch.Tensor]:
        parameters = [nn.Parameter(torch.zeros_like(g).to(device)) for g in gradients]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.to(device)
        norm = nn.utils.clip_grad_norm_(parameters, 1.0, norm_type=kind)
        return [norm, *(p.grad for p in parameters)]

    for kind in (2.0, 1.0, float("inf")):
        both(lambda d: work(d, kind), atol=1e-5, rtol=1e-5)  # noqa: B023


def test_gradient_scaler_skips_infinite_steps(mode: str) -> None:
    def work(device: str) -> list[object]:
        parameter = nn.Parameter(torch.ones(4).to(device))
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=2)
        scales = []
        for factor in (1.0, float("inf"), 2.0, 3.0):
            optimizer.zero_grad()
            scaler.scale((parameter * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        return [parameter, scales]

    both(work, atol=1e-6, rtol=1e-6)


LISTS = [(3, 4), (5,), ()]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max"])
def test_foreach_binary(mode: str, name: str) -> None:
    a, c = [torch.randn(s) for s in LISTS], [torch.randn(s) for s in LISTS]
    function = getattr(torch, f"_foreach_{name}")
    in_place = getattr(torch, f"_foreach_{name}_")

    def work(device: str) -> list[list[torch.Tensor]]:
        x, y = [t.to(device) for t in a], [t.to(device) for t in c]
        changed = [t.clone() for t in x]
        in_place(changed, y)
        return [function(x, 0.7), function(x, y), function(x, [0.5, 2.0, 3.0]), changed]

    both(work, atol=1e-6, rtol=1e-6)


def test_foreach_promotes_as_single_ops(mode: str) -> None:
    both(lambda d: torch._foreach_mul([torch.arange(3).to(d), torch.ones(2, dtype=torch.bfloat16).to(d)], 1.5))
    both(lambda d: torch._foreach_add([torch.arange(3).to(d)], [torch.arange(3).to(d)], alpha=2))


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_foreach_ternary(mode: str, name: str) -> None:
    a, c, e = ([torch.rand(s) + 0.5 for s in LISTS] for _ in range(3))

    def work(device: str) -> list[list[torch.Tensor]]:
        x, y, z = ([t.to(device) for t in group] for group in (a, c, e))
        function = getattr(torch, f"_foreach_{name}")
        return [function(x, y, z), function(x, y, z, value=0.3), function(x, y, z, [0.1, 0.2, 0.3])]

    both(work, atol=1e-6, rtol=1e-6)


def test_foreach_unary_and_lerp(mode: str) -> None:
    a, c = [torch.rand(s) + 0.5 for s in LISTS], [torch.rand(s) for s in LISTS]

    def work(device: str) -> list[list[torch.Tensor]]:
        x, y = [t.to(device) for t in a], [t.to(device) for t in c]
        names = ["abs", "neg", "sqrt", "rsqrt", "reciprocal", "exp", "log", "sigmoid", "tanh", "floor", "sign", "erf"]
        zeroed = [t.clone() for t in x]
        torch._foreach_zero_(zeroed)
        copied = [t.clone() for t in x]
        torch._foreach_copy_(copied, y)
        return [
            *(getattr(torch, f"_foreach_{name}")(x) for name in names),
            torch._foreach_lerp(x, y, 0.3),
            torch._foreach_lerp(x, y, y),
            torch._foreach_pow(x, 2),
            torch._foreach_pow(x, 1.7),
            torch._foreach_pow(2.0, x),
            torch._foreach_norm(x, 2),
            torch._foreach_norm(x, float("inf")),
            zeroed,
            copied,
        ]

    both(work, atol=1e-5, rtol=1e-5)
