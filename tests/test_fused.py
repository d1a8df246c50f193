"""Fused mode: whole steps as one program, exact aliasing, nothing compiled twice, nothing held too long."""

from __future__ import annotations

import copy
import gc
import resource
import threading
from collections.abc import Iterator

import pytest
import torch
import torch_tpu
from child import run as child
from compare import same
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_tpu import _C

FUSED = torch.tpu.EagerMode.DEFER_AND_FUSE


@pytest.fixture(autouse=True)
def fused() -> Iterator[None]:
    before = torch.tpu.eager_mode
    torch.tpu.eager_mode = FUSED
    _C.take_flush_records(0)
    yield
    torch.tpu.eager_mode = before


def flushes() -> list[tuple]:
    return _C.take_flush_records(0)


def train(device: str, steps: int, read_every: int = 1) -> list[float]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x, y = torch.randn(12, 8).to(device), torch.randint(0, 4, (12,)).to(device)
    losses = []
    for step in range(steps):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % read_every == read_every - 1:
            losses.append(loss.item())
    return losses


def test_a_training_step_is_one_donating_program() -> None:
    got = train("tpu", 6)
    same(torch.tensor(got), torch.tensor(train("cpu", 6)), rtol=1e-5, atol=1e-6)
    records = flushes()
    assert [r[0] for r in records] == ["host read"] * 6
    assert records[-1][1] > 20 and records[-1][4] >= 12, "parameters and both moments are updated in place"
    assert [r[5] for r in records[3:]] == [False] * 3, "a step that comes again compiles nothing"


def test_nothing_runs_before_a_value_is_needed() -> None:
    x = torch.ones(4, device="tpu")
    y = (x * 2 + 1).relu()
    del x
    assert flushes() == []
    assert y.tolist() == [3.0] * 4
    (record,) = flushes()
    assert record[0] == "host read" and record[3] == 1, "values nobody holds are no outputs"
    z = y + 1
    torch.tpu.synchronize()
    assert [r[0] for r in flushes()] == ["synchronize"]
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_NEVER):
        w = y - 1
    same([z, w], [torch.full((4,), 4.0), torch.full((4,), 2.0)])


def test_views_and_writes_stay_exact() -> None:
    def run(device: str):
        x = torch.arange(12.0, device=device).view(3, 4)
        row, column = x[1], x[:, 2]
        before = x.clone()
        row.mul_(2)
        column += 100
        x.t()[0] = -1
        y = x.clone()
        x.zero_()
        return x, y, before, row, column

    same(run("tpu"), run("cpu"))


def test_a_loop_without_reads_is_cut_where_it_repeats() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(12)]).to("tpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)
    x = torch.randn(4, 4).to("tpu")

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    for _ in range(8):
        step()
    compiled = _C.cache_stats()["requests"]
    flushes()
    for _ in range(12):
        step()
    records = flushes()
    assert records and all(r[0] == "repeated pattern" for r in records)
    assert _C.cache_stats()["requests"] == compiled, "once the loop is known, nothing compiles"
    assert len({r[1] for r in records}) == 1, "cut at the same place each time"


def test_random_numbers_are_those_of_strict_mode() -> None:
    def draw() -> list[torch.Tensor]:
        torch.manual_seed(3)
        x = torch.rand(5, device="tpu")
        y = nn.functional.dropout(torch.ones(50, device="tpu"), 0.4)
        return [x, y, torch.randperm(9, device="tpu"), torch.randn(3, device="tpu")]

    got = [t.cpu() for t in draw()]
    torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_NEVER
    same(got, [t.cpu() for t in draw()])


def test_the_mode_of_a_thread_goes_with_its_backward() -> None:
    torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_NEVER
    x = torch.ones(3, device="tpu", requires_grad=True)
    with torch.tpu.set_eager_mode(FUSED):
        (x * x).sum().backward()
    assert torch.tpu.eager_mode is torch.tpu.EagerMode.DEFER_NEVER
    assert flushes() == []
    same(x.grad, torch.full((3,), 2.0))
    (record,) = flushes()
    assert record[1] >= 3


def test_an_error_leaves_every_tensor_as_it_was() -> None:
    x = torch.arange(4.0, device="tpu")
    x.add_(1)
    with pytest.raises(RuntimeError):
        x.add_(torch.ones(3, device="tpu"))
    x.mul_(2)
    same(x, (torch.arange(4.0) + 1) * 2)


def test_hooks_no_grad_and_checkpointing() -> None:
    def run(device: str):
        torch.manual_seed(0)
        layer = nn.Linear(4, 4).to(device)
        seen = []
        handle = layer.weight.register_hook(lambda g: seen.append(g.detach().clone()))
        x = torch.arange(8.0).view(2, 4).div(8).to(device).requires_grad_()
        out = checkpoint(lambda v: layer(v).tanh() @ layer.weight, x, use_reentrant=False)
        out.sum().backward()
        with torch.no_grad():
            layer.weight.sub_(layer.weight.grad, alpha=0.1)
        handle.remove()
        return [out, x.grad, layer.weight, seen, copy.deepcopy(layer).bias]

    same(run("tpu"), run("cpu"), rtol=1e-5, atol=1e-6)


def test_threads_share_a_device() -> None:
    results: dict[int, torch.Tensor] = {}

    def work(i: int) -> None:
        x = torch.full((8,), float(i), device="tpu")
        for _ in range(50):
            x = x + 1
        results[i] = x.cpu()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, value in results.items():
        same(value, torch.full((8,), i + 50.0))


def test_a_long_loop_holds_its_memory() -> None:
    x = torch.zeros(64, device="tpu")
    held = []
    for step in range(6000):
        x = (x * 0.5 + 1).tanh()
        if step % 2000 == 1999:
            torch.tpu.synchronize()
            gc.collect()
            held.append((torch.tpu.memory_allocated(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
    assert held[-1][0] == held[0][0]
    assert held[-1][1] - held[1][1] < 64 << 10, "kilobytes of the process"


def test_explain_is_a_table() -> None:
    torch.ones(3, device="tpu").add(1).cpu()
    table = torch_tpu.explain()
    assert "host read" in table and "compiled" in table.splitlines()[0]
    assert "nothing" in torch_tpu.explain()


def test_the_environment_starts_it() -> None:
    out = child("import torch; import torch_tpu; print(torch.tpu.eager_mode.name, (torch.ones(2, device='tpu') + 1).tolist())",
                TORCH_TPU_DEFER_AND_FUSE="1")
    assert out.split()[0] == "DEFER_AND_FUSE" and "[2.0, 2.0]" in out


def test_settings_of_a_thread_nest_in_any_order() -> None:
    strict = torch.tpu.EagerMode.DEFER_NEVER
    x = torch.ones(2, 2, device="tpu")
    with torch.tpu.set_eager_mode(strict):
        with torch.tpu.precision(torch.tpu.Precision.HIGH):
            with torch.tpu.set_eager_mode(FUSED), torch.profiler.profile():
                assert torch.tpu.eager_mode is FUSED
                y = x @ x
            assert torch.tpu.eager_mode is strict
        assert _C.precision() == -1
    assert torch.tpu.eager_mode is FUSED
    same(y, torch.full((2, 2), 2.0))

def test_host_numbers_share_one_operand_and_stay_exact() -> None:
    x = torch.arange(4.0, device="tpu")
    i = torch.arange(4, device="tpu")

    def work(a: float, n: int) -> list[torch.Tensor]:
        big = i + (2**53 + n)  # no float64 holds this
        return [x * a + (a + 1), i * n, big, x[n:], torch.full((2,), a, device="tpu"), x > torch.tensor(a), x + complex(a, n)]

    for a, n in ((0.1, 1), (1e-300, 3), (-7.25, 2)):
        got = [t.cpu() for t in work(a, n)]
        x, i = x.cpu(), i.cpu()
        with torch.device("cpu"):
            want = [x * a + (a + 1), i * n, i + (2**53 + n), x[n:], torch.full((2,), a), x > a, x + complex(a, n)]
        same(got, want, rtol=1e-6, atol=1e-6)
        x, i = x.to("tpu"), i.to("tpu")
    flushes()
    y = x * 2.5 + 3.5 - 1.25
    y.cpu()
    (record,) = flushes()
    assert record[2] == 1, "numbers are not inputs one by one"


def test_a_changing_rate_compiles_nothing() -> None:
    weight = torch.ones(5, device="tpu")
    for step in range(6):
        weight.mul_(1 - 0.1 * step).add_(0.01 * step)
        weight.cpu()
    assert [r[5] for r in flushes()[2:]] == [False] * 4


def test_an_exception_inside_a_step_leaves_the_rest() -> None:
    def run(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = nn.Linear(3, 3).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.ones(2, 3).to(device)
        with pytest.raises(ValueError, match="stop"):
            for step in range(3):
                optimizer.zero_grad()
                model(x).sum().backward()
                if step == 1:
                    raise ValueError("stop")
                optimizer.step()
        with pytest.raises(RuntimeError):
            model(torch.ones(2, 4).to(device))
        return [*model.parameters(), *(p.grad for p in model.parameters())]

    same(run("tpu"), run("cpu"), rtol=1e-6, atol=1e-7)


def test_precision_is_part_of_products_only() -> None:
    x = torch.rand(4, 4, device="tpu")
    y = x + 1
    torch.set_float32_matmul_precision("medium")
    try:
        z = (y * 2) @ x
        torch.set_float32_matmul_precision("highest")
        w = y @ x
        assert [r[0] for r in flushes()] == ["precision"]
        same([z, w], [((x.cpu() + 1) * 2) @ x.cpu(), (x.cpu() + 1) @ x.cpu()], rtol=1e-5, atol=1e-5)
    finally:
        torch.set_float32_matmul_precision("highest")
