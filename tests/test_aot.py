"""Programs for TPUs that are not here: what is captured, what the compiler says of it, and what goes wrong."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from child import run as child
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_tpu import aot
from torch_tpu.aot import hlo, worker
from torch_tpu.cli import main

needs_libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def train_step(net: nn.Module) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    step.optimizer = optimizer  # type: ignore[attr-defined]
    return step


def test_a_step_is_captured_whole_and_leaves_everything_as_it_was() -> None:
    torch.manual_seed(0)
    net = network()
    step = train_step(net)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    parameters = list(net.parameters())
    x, y = torch.randn(4, 8), torch.randn(4, 4)
    captured = aot.capture(step, (x, y), tpu=False)
    assert all(a is b and b.device.type == "cpu" and b.grad is None for a, b in zip(net.parameters(), parameters, strict=True))
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert not step.optimizer.state  # type: ignore[attr-defined]
    names = [name for name, _ in net.named_parameters()]
    # Parameters, their state of the second step, and the inputs; the step gives the first two new values.
    assert captured.inputs[:4] == names
    assert captured.inputs[-2:] == ["input 0", "input 1"]
    assert {argument for argument, _ in captured.updates} == set(range(12))
    assert [name for name in captured.outputs if name not in captured.inputs] == ["result 0"]


def test_a_value_that_is_read_has_none() -> None:
    with pytest.raises(RuntimeError, match=r"value"):
        aot.capture(lambda x: x * x.sum().item(), (torch.empty(3, device="meta"),))


@pytest.mark.parametrize(
    ("text", "devices", "hbm"), [("v6e:2x2", 4, 32e9), ("tpu7x:2x2x1", 8, 96e9), ("v5e:4x4", 16, 16e9), ("v4:2x2x4", 32, 16e9)]
)
def test_topologies(text: str, devices: int, hbm: float) -> None:
    topology = aot.parse(text)
    assert (topology.devices, topology.hbm_bytes) == (devices, hbm)


@pytest.mark.parametrize(
    ("text", "near"), [("v6:2x2", "v6e"), ("v6e", "v6e:2x2"), ("v7x:2x2", "v7x:2x2x1"), ("v5e:99x99", "at most 256"), ("", "v4")]
)
def test_topologies_that_are_none(text: str, near: str) -> None:
    with pytest.raises(ValueError, match=near):
        aot.parse(text)


def test_damaged_messages_are_refused() -> None:
    with pytest.raises(ValueError, match="hlo"):
        hlo.read(b"\x0a\xff\x01")
    with pytest.raises(ValueError, match="computations"):
        hlo.read(b"")


@needs_libtpu
def test_a_train_step_for_a_tpu(tmp_path: Path) -> None:
    with torch.device("meta"):
        net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))
        x = torch.empty(64, 256)
    program = aot.compile(train_step(net), (x, x), "v6e:1x1")
    size = sum(p.numel() for p in net.parameters()) * 4
    memory = program.memory
    # Parameters and two moments of each are read and written in place.
    assert 3 * size <= memory.argument_bytes <= 3 * size + 3 * x.numel() * 4
    assert memory.alias_bytes >= 3 * size
    assert program.fits and memory.total_bytes < 32e9
    # Three products of each layer but the first's input gradient.
    assert 5 * 2 * 64 * 256 * 512 <= program.cost.flops < 1.2 * 5 * 2 * 64 * 256 * 512
    assert program.cost.cycles == sum(fusion.cycles for fusion in program.costliest) > 0
    assert {fusion.op for fusion in program.costliest} >= {"addmm", "mm"}
    lines = {fusion.source.rpartition(":")[0] for fusion in program.costliest}
    assert lines == {__file__}, "forward, backward and optimizer have the user's lines"
    assert 0 < program.predicted_seconds < 1e-3 and 0 < program.mfu < 1
    report = program.report()
    assert "not a measurement" in report and "addmm" in report and "6 bfloat16 passes" in report
    path = tmp_path / "step.tpu"
    program.save(path)
    assert aot.load(path).as_dict() == program.as_dict()
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="damaged"):
        aot.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="no program"):
        aot.load(path)


@needs_libtpu
def test_checkpointing_saves_memory_on_a_tpu() -> None:
    with torch.device("meta"):
        blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 2048), nn.Tanh(), nn.Linear(2048, 64)) for _ in range(4))
        blocks.bfloat16()
        x = torch.empty(65536, 64, dtype=torch.bfloat16)

    def step(x: torch.Tensor, use: bool) -> tuple[torch.Tensor, ...]:
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False) if use else block(x)
        loss = x.square().mean()
        return torch.autograd.grad(loss, list(blocks.parameters()))

    with_it, without = (aot.compile(step, (x, use), "v6e:1x1").memory.temp_bytes for use in (True, False))
    assert with_it < 0.6 * without


@needs_libtpu
def test_a_loop_of_unknown_length_is_not_passed_over() -> None:
    loop = """func.func @main(%n: tensor<i32>, %a: tensor<256x256xf32>) -> tensor<256x256xf32> {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      LIMIT
      %r:2 = stablehlo.while(%i = %c0, %x = %a) : tensor<i32>, tensor<256x256xf32>
      cond {
        %p = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
          : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %y : tensor<i32>, tensor<256x256xf32>
      }
      return %r#1 : tensor<256x256xf32> }"""
    v6e = aot.parse("v6e:1x1")
    by_data = aot.compile_captured(aot.from_stablehlo(loop.replace("LIMIT", "%limit = stablehlo.add %n, %n : tensor<i32>")), v6e)
    assert by_data.cost.loops_of_unknown_length == 1
    assert any("lower bounds" in line for line in by_data.advice())
    constant = "%limit = stablehlo.constant dense<N> : tensor<i32>"
    few, many = (
        aot.compile_captured(aot.from_stablehlo(loop.replace("LIMIT", constant.replace("N", n))), v6e) for n in ("100", "200")
    )
    assert few.cost.loops_of_unknown_length == 0
    assert 1.9 < many.cost.cycles / few.cost.cycles < 2.1
    assert max(fusion.runs for fusion in many.costliest) == 200


@needs_libtpu
def test_what_does_not_compile() -> None:
    with torch.device("meta"):
        big = torch.empty(1 << 17, 1 << 17)
    with pytest.raises(aot.OutOfDeviceMemory, match=r"v5e:1x1"):
        aot.compile(lambda x: x @ x.sin(), (big,), "v5e:1x1")
    with pytest.raises(aot.CompileError, match="v6e:1x1"):
        worker.compile_text(aot.parse("v6e:1x1"), "no program")
    with pytest.raises(ValueError, match="has 1 devices"):
        aot.compile(network(), (torch.empty(4, 8),), "v6e:1x1", devices=2)
    with pytest.raises(aot.CompileError, match="timeout="):
        aot.compile(network(), (torch.empty(4, 8),), "v5p:1x1x1", timeout=0)
    assert aot.compile(network(), (torch.empty(4, 8),), "v6e:1x1").fits, "the worker lives on, or is replaced"


@needs_libtpu
def test_the_compiler_stays_out_of_this_process_and_leaves_nothing() -> None:
    out = child(
        """
        import os, torch
        from torch_tpu import aot
        from torch_tpu.aot import worker
        aot.compile(torch.nn.Linear(4, 4), (torch.empty(2, 4),), "v6e:1x1")
        assert "libtpu" not in open("/proc/self/maps").read()
        one = next(iter(worker._workers.values()))
        print(one.process.pid, one.folder)
        os.kill(os.getpid(), 9)
        """,
        expect=-9,
    ).split()
    for _ in range(100):
        if not os.path.exists(f"/proc/{out[0]}") and not os.path.exists(out[1]):
            break
        time.sleep(0.1)
    else:
        raise AssertionError(f"left behind: {out}")


SCRIPT = """
import torch

def step():
    net = torch.nn.Linear(16, 16, device="meta")
    return net, (torch.empty(2, 16, device="meta"),)

def nothing():
    return 1
"""


@needs_libtpu
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, figures = tmp_path / "net.py", tmp_path / "figures.json"
    script.write_text(SCRIPT)
    assert main(["compile", f"{script}:step", "--topology", "v6e:1x1", "--json", str(figures)]) == 0
    assert "memory.argument_bytes" in capsys.readouterr().out
    found = json.loads(figures.read_text())
    assert found["memory"]["argument_bytes"] > 0 and found["topology"] == "v6e:1x1"
    for arguments, text in [
        ([f"{script}:nothing"], "callable, example_inputs"),
        ([f"{script}:missing"], "missing"),
        ([str(script)], "MODULE_OR_FILE:FUNCTION"),
        ([f"{script}:step", "--topology", "v6x:1x1"], "did you mean"),
    ]:
        assert main(["compile", *arguments]) == 1
        assert text in " ".join(capsys.readouterr().err.split())
    assert main(["topologies"]) == 0
    assert "v7x:2x2x1" in capsys.readouterr().out


def test_without_libtpu_the_extra_is_named() -> None:
    code = """
import sys
import torch
from torch_tpu import aot, plugins
plugins.find = lambda name: None
try:
    aot.compile(torch.nn.Linear(4, 4), (torch.empty(2, 4),), "v6e:1x1")
except ImportError as error:
    assert "torch_tpu[tpu]" in str(error), error
else:
    sys.exit("it compiled")
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
