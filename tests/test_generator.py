"""Random number generators: seeds, states, and independence of what else runs."""

from __future__ import annotations

import copy
import struct
import threading

import pytest
import torch
from compare import same


def _words(state: torch.Tensor) -> tuple[int, int]:
    return struct.unpack("<QQ", bytes(state.tolist()))


def test_default_seed_and_state() -> None:
    g = torch.Generator(device="tpu")
    assert g.device == torch.device("tpu:0") and g.initial_seed() == torch.Generator().initial_seed() == 67280421310721
    state = g.get_state()
    assert state.dtype == torch.uint8 and state.device.type == "cpu" and state.shape == (16,)
    assert _words(state) == (67280421310721, 0)


def test_manual_seed_starts_over() -> None:
    g = torch.Generator(device="tpu").manual_seed(5)
    first = torch.rand(6, device="tpu", generator=g)
    second = torch.rand(6, device="tpu", generator=g)
    assert not torch.equal(first.cpu(), second.cpu()), "the stream must move on"
    g.manual_seed(5)
    same(torch.rand(6, device="tpu", generator=g), first)
    g.manual_seed(6)
    assert not torch.equal(torch.rand(6, device="tpu", generator=g).cpu(), first.cpu())
    assert g.manual_seed(-1).initial_seed() == 2**64 - 1


def test_state_round_trip() -> None:
    g = torch.Generator(device="tpu").manual_seed(9)
    torch.rand(3, device="tpu", generator=g)
    state = g.get_state()
    seed, offset = _words(state)
    assert seed == 9 and offset > 0 and offset % 4 == 0
    want = torch.randn(5, device="tpu", generator=g)
    g.set_state(state)
    same(torch.randn(5, device="tpu", generator=g), want)
    other = torch.Generator(device="tpu")
    other.set_state(state)
    same(torch.randn(5, device="tpu", generator=other), want)
    assert g.get_offset() == _words(g.get_state())[1]
    g.set_offset(offset)
    same(torch.randn(5, device="tpu", generator=g), want)


def test_bad_states_are_refused() -> None:
    g = torch.Generator(device="tpu").manual_seed(1)
    with pytest.raises(RuntimeError, match="wrong size"):
        g.set_state(torch.zeros(8, dtype=torch.uint8))
    with pytest.raises(TypeError, match="ByteTensor"):
        g.set_state(torch.zeros(16))
    with pytest.raises(RuntimeError, match="multiple of 4"):
        g.set_offset(3)
    assert _words(g.get_state()) == (1, 0)


def test_clone_and_shared_state() -> None:
    g = torch.Generator(device="tpu").manual_seed(4)
    clone = g.clone_state()
    want = torch.rand(4, device="tpu", generator=g)
    same(torch.rand(4, device="tpu", generator=clone), want)
    shared = g.graphsafe_get_state()
    torch.rand(4, device="tpu", generator=shared)
    assert shared.get_offset() == g.get_offset() > clone.get_offset()
    clone.graphsafe_set_state(g)
    assert clone.get_offset() == g.get_offset()
    deep = copy.deepcopy(g.get_state())
    assert torch.equal(deep, g.get_state())


def test_torch_manual_seed_reaches_the_device() -> None:
    torch.manual_seed(11)
    assert torch.tpu.initial_seed() == 11
    want = torch.randn(4, device="tpu"), torch.randn(4)
    torch.manual_seed(11)
    same((torch.randn(4, device="tpu"), torch.randn(4)), want)
    torch.tpu.manual_seed(12)
    assert torch.tpu.initial_seed() == 12 and torch.initial_seed() == 11


def test_rng_state_functions() -> None:
    torch.manual_seed(0)
    state = torch.tpu.get_rng_state()
    want = torch.rand(3, device="tpu")
    torch.tpu.set_rng_state(state)
    same(torch.rand(3, device="tpu"), want)
    assert len(torch.tpu.get_rng_state_all()) == torch.tpu.device_count()
    same(torch.get_device_module("tpu").get_rng_state("tpu:0"), torch.tpu.get_rng_state(0))


def test_fork_rng() -> None:
    torch.manual_seed(2)
    before = torch.tpu.get_rng_state(), torch.get_rng_state()
    with torch.random.fork_rng():
        torch.rand(3, device="tpu")
        torch.rand(3)
        assert not torch.equal(torch.tpu.get_rng_state(), before[0])
    same((torch.tpu.get_rng_state(), torch.get_rng_state()), before)


def test_checkpoint_replays_dropout() -> None:
    from torch.utils.checkpoint import checkpoint

    def grad(use: bool) -> torch.Tensor:
        torch.manual_seed(3)
        x = torch.ones(64, device="tpu", requires_grad=True)

        def drop(v: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.dropout(v * 2, 0.5)

        y = checkpoint(drop, x, use_reentrant=False) if use else drop(x)
        y.sum().backward()
        same(x.grad, y.detach())  # the mask of the backward is that of the forward
        return x.grad

    same(grad(True), grad(False))


def test_generator_of_another_device_is_refused() -> None:
    with pytest.raises(RuntimeError, match="(?i)expected a '(tpu|privateuseone)' device type for generator but found 'cpu'"):
        torch.rand(2, device="tpu", generator=torch.Generator())


def test_the_stream_does_not_depend_on_the_mode(mode: str) -> None:
    g = torch.Generator(device="tpu").manual_seed(77)
    values = torch.randint(0, 1 << 30, (4,), device="tpu", generator=g).cpu()
    g.manual_seed(77)
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_NEVER):
        same(torch.randint(0, 1 << 30, (4,), device="tpu", generator=g), values)


def test_threads_draw_disjoint_parts() -> None:
    g = torch.Generator(device="tpu").manual_seed(1)
    parts: list[torch.Tensor] = []

    def draw() -> None:
        for _ in range(20):
            parts.append(torch.randint(0, 1 << 60, (8,), device="tpu", generator=g).cpu())

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.cat(parts).unique().numel() == 3 * 20 * 8


def test_moments() -> None:
    torch.manual_seed(0)
    n = 100_000
    u = torch.rand(n, device="tpu").cpu().double()
    assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.005 and abs(u.var() - 1 / 12) < 0.002
    z = torch.randn(n, device="tpu").cpu().double()
    assert abs(z.mean()) < 0.015 and abs(z.std() - 1) < 0.01 and abs((z**4).mean() - 3) < 0.15
