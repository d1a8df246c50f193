"""Gradient scaling."""

from __future__ import annotations

import torch
from compare import both, same
from torch import nn


def _train(device: str, steps: int = 4, bad_step: int | None = 1, foreach: bool | None = None) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Linear(4, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=foreach)
    scaler = torch.amp.GradScaler(device, init_scale=8.0, growth_interval=2)
    data = torch.randn(steps, 3, 4)
    scales = []
    for step in range(steps):
        optimizer.zero_grad()
        out = model(data[step].to(device))
        loss = out.square().mean()
        if step == bad_step:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return [model.weight.detach().cpu(), model.bias.detach().cpu(), torch.tensor(scales)]


def test_scaler_follows_cpu(mode: str) -> None:
    got = both(_train, atol=1e-6, rtol=1e-5)
    same(got[2], torch.tensor([8.0, 4.0, 4.0, 8.0]))


def test_scaler_without_bad_steps() -> None:
    got = both(lambda device: _train(device, bad_step=None, foreach=False), atol=1e-6, rtol=1e-5)
    same(got[2], torch.tensor([8.0, 16.0, 16.0, 32.0]))


def test_a_bad_step_changes_no_parameter() -> None:
    torch.manual_seed(0)
    model = nn.Linear(2, 2).to("tpu")
    before = model.weight.detach().cpu().clone()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("tpu", init_scale=4.0)
    scaler.scale(model(torch.full((1, 2), float("nan"), device="tpu")).sum()).backward()
    assert scaler.step(optimizer) is None
    scaler.update()
    same(model.weight, before)
    assert scaler.get_scale() == 2.0


def test_state_of_a_scaler_loads() -> None:
    scaler = torch.amp.GradScaler("tpu", init_scale=2.0)
    scaler.scale(torch.ones(1, device="tpu"))
    state = scaler.state_dict()
    other = torch.amp.GradScaler("tpu")
    other.load_state_dict(state)
    assert other.get_scale() == 2.0
    same(other.scale(torch.ones(2, device="tpu")), torch.full((2,), 2.0))


def test_found_inf_is_read_on_the_device() -> None:
    grads = [torch.tensor([2.0, 4.0], device="tpu"), torch.tensor([float("inf")], device="tpu")]
    found = torch.zeros(1, device="tpu")
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.5, device="tpu"))
    same(grads[0], torch.tensor([1.0, 2.0]))
    same(found, torch.ones(1))
