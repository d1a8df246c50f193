"""torch.compile(backend="tpu"): host cost beside Inductor's, and training steps beside fused mode and CPU eager.

One process, sides in turn: `python benchmarks/compiled.py [host] [gpt2] [llama] [resnet18]`. Figures are ratios of medians.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch_tpu
import torch_tpu.compile
from cases import CASES, Work

ROUNDS = 7


class Sum(torch.nn.Module):
    """One input and 200 parameters, with nothing to compute: what a call costs on the host."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(4), requires_grad=False) for _ in range(200)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Adds them all."""
        for weight in self.weights:
            x = x + weight
        return x


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Per repetition, the device's work included."""
    begin = time.perf_counter()
    for _ in range(repeats):
        work()
    torch.accelerator.synchronize()
    return (time.perf_counter() - begin) / repeats


def in_turn(sides: dict[str, Callable[[], float]]) -> dict[str, float]:
    """Medians over rounds in which each side is asked once; the first round is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS + 1):
        for name, side in sides.items():
            taken[name].append(side())
    return {name: statistics.median(values[1:]) for name, values in taken.items()}


def host() -> str:
    """A whole compiled call with its guards, against Inductor's on CPU tensors. Target: at most 1.0."""
    on_cpu, on_tpu = Sum(), Sum().to("tpu")
    inductor, ours = torch.compile(on_cpu), torch.compile(on_tpu, backend="tpu")
    x = torch.randn(4)
    y = x.to("tpu")
    got = in_turn({"inductor": lambda: seconds(lambda: inductor(x), 300), "tpu": lambda: seconds(lambda: ours(y), 300)})
    return f"host cost, 200 parameters: {got['tpu'] / got['inductor']:.2f} of inductor's on CPU tensors (target 1.0)"


def training(name: str) -> str:
    """A training step with its forward and backward compiled, against fused mode and CPU eager. Target: at most 1.0 of fused."""

    def work(device: str, compiled: bool) -> Work:
        step = CASES[name](device)
        if compiled:
            cells = dict(zip(step.__code__.co_freevars, step.__closure__ or (), strict=True))
            cells["loss_of"].cell_contents = torch.compile(cells["loss_of"].cell_contents, backend="tpu")
        return step

    steps = {"cpu": work("cpu", False), "fused": work("tpu", False), "compiled": work("tpu", True)}

    def side(which: str) -> float:
        mode = torch.tpu.EagerMode.DEFER_AND_FUSE if which == "fused" else torch.tpu.EagerMode.DEFER_NEVER
        with torch.tpu.set_eager_mode(mode):
            return seconds(lambda: steps[which](2), 1) / 2

    got = in_turn({which: (lambda which=which: side(which)) for which in steps})  # type: ignore[misc]
    fused, cpu = got["compiled"] / got["fused"], got["compiled"] / got["cpu"]
    return f"{name}: compiled step {fused:.2f} of fused (target 1.0), {cpu:.2f} of CPU eager"


def main(names: list[str]) -> None:
    """Measures what is named, or all."""
    torch_tpu.compile.register()
    for name in names or ["host", "gpt2", "llama", "resnet18"]:
        torch._dynamo.reset()
        print(host() if name == "host" else training(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
