"""A program that libtpu compiled for a topology, and what it says about itself."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import hlo
from .capture import Captured, capture
from .topologies import Topology, parse
from .worker import compile_text

_MAGIC = b"torch_tpu aot 1\n"


@dataclass(frozen=True)
class Memory:
    """Bytes on one device, as the compiler plans them."""

    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temp_bytes: int
    code_bytes: int

    @property
    def total_bytes(self) -> int:
        """What the device must hold at once: outputs that reuse an argument's memory count once."""
        return self.argument_bytes + self.output_bytes - self.alias_bytes + self.temp_bytes + self.code_bytes


@dataclass(frozen=True)
class Cost:
    """Per device and call. `flops` and `bytes_accessed` are XLA's cost analysis, `cycles` the sum of the compiler's
    estimates over the optimized program, loops multiplied by their trip counts; `loops_of_unknown_length` count as one
    turn, so that with any of these all three are lower bounds."""

    flops: float
    bytes_accessed: float
    cycles: int
    loops_of_unknown_length: int


@dataclass(frozen=True)
class Fusion:
    """One instruction of the optimized program."""

    name: str
    opcode: str
    op: str  # of the lowering table; a fusion has its root's
    source: str  # the user's line, of a backward op that of its forward
    cycles: int  # all its runs in a call


@dataclass
class TpuProgram:
    """What `compile` gives."""

    topology: Topology
    memory: Memory
    cost: Cost
    costliest: list[Fusion]
    captured: Captured
    executable: bytes
    compiler: str

    @property
    def fits(self) -> bool:
        """Whether the memory it needs is there."""
        return self.memory.total_bytes <= self.topology.hbm_bytes

    @property
    def predicted_seconds(self) -> float:
        """A model, not a measurement: the larger of cycles / clock and bytes accessed / bandwidth."""
        return max(self.cost.cycles / self.topology.kind.clock, self.cost.bytes_accessed / self.topology.bandwidth)

    @property
    def mfu(self) -> float:
        """flops / (predicted seconds * peak bfloat16 FLOP/s of a device)."""
        return self.cost.flops / (self.predicted_seconds * self.topology.peak_flops) if self.predicted_seconds else 0.0

    def advice(self) -> list[str]:
        """What follows from the figures."""
        lines = []
        memory = self.memory
        if not self.fits:
            what = "recompute activations (torch.utils.checkpoint) or take a smaller batch"
            if memory.argument_bytes > self.topology.hbm_bytes / 2:
                what = "shard the parameters (FSDP) or store them in bfloat16"
            lines.append(
                f"needs {memory.total_bytes / 1e9:.2f} GB of {self.topology.hbm_bytes / 1e9:.0f} GB: {what}"
            )
        if memory.output_bytes > 1 << 20 and memory.alias_bytes == 0 and self.captured.stores:
            lines.append("no argument's memory is reused, though the step writes to arguments: dtypes or sizes change on the way")
        if self.cost.loops_of_unknown_length:
            lines.append(
                f"{self.cost.loops_of_unknown_length} loops count as one turn, since the compiler does not say how many "
                "they take: FLOPs, bytes, cycles and the predicted time are lower bounds"
            )
        if "HIGHEST" in self.captured.stablehlo and "f32" in self.captured.stablehlo:
            lines.append(
                "float32 products run in 6 bfloat16 passes: torch.set_float32_matmul_precision('medium') runs 1, at bfloat16's "
                "accuracy"
            )
        compute, moving = self.cost.cycles / self.topology.kind.clock, self.cost.bytes_accessed / self.topology.bandwidth
        if moving > 1.5 * compute:
            lines.append(f"memory bound: moving the bytes takes {moving / max(compute, 1e-12):.1f} times the compute cycles")
        return lines

    def as_dict(self) -> dict[str, Any]:
        """What `--json` writes; names are the attributes'."""
        return {
            "topology": self.topology.name,
            "device_hbm_bytes": self.topology.hbm_bytes,
            "fits": self.fits,
            "memory": asdict(self.memory) | {"total_bytes": self.memory.total_bytes},
            "cost": asdict(self.cost),
            "predicted_seconds": self.predicted_seconds,
            "mfu": self.mfu,
            "ops": self.captured.ops,
            "costliest": [asdict(fusion) for fusion in self.costliest],
            "advice": self.advice(),
            "compiler": self.compiler,
            "note": "predicted_seconds and mfu are a model's figures, not measurements",
        }

    def report(self) -> str:
        """The figures as text for a terminal."""
        from rich.console import Console
        from rich.table import Table

        table = Table(title=f"{self.topology.name}, per device (a model, not a measurement)", title_justify="left")
        table.add_column("what")
        table.add_column("figure", justify="right")
        for name, size in (asdict(self.memory) | {"total_bytes": self.memory.total_bytes}).items():
            table.add_row(f"memory.{name}", f"{size:,}")
        share = self.memory.total_bytes / self.topology.hbm_bytes
        table.add_row("of the device's HBM", f"{share:.2%}" + ("" if self.fits else "  DOES NOT FIT"))
        table.add_row("cost.flops", f"{self.cost.flops:.4g}")
        table.add_row("cost.bytes_accessed", f"{self.cost.bytes_accessed:.4g}")
        table.add_row("cost.cycles", f"{self.cost.cycles:,}")
        table.add_row("predicted_seconds = max(cycles / clock, bytes / bandwidth)", f"{self.predicted_seconds:.4g}")
        table.add_row("mfu = flops / (predicted_seconds * peak)", f"{self.mfu:.2%}")
        console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 - closed with the console
        console.print(table)
        if self.costliest:
            fusions = Table(title="costliest instructions", title_justify="left")
            for column in ("name", "opcode", "cycles", "op", "from"):
                fusions.add_column(column)
            for fusion in self.costliest[:10]:
                fusions.add_row(fusion.name, fusion.opcode, f"{fusion.cycles:,}", fusion.op, fusion.source)
            console.print(fusions)
        for line in self.advice():
            console.print(f"- {line}", soft_wrap=True)
        return console.export_text()

    def save(self, path: str | Path) -> None:
        """Writes the executable with its figures; `load` reads it."""
        Path(path).write_bytes(_MAGIC + pickle.dumps(self))


def load(path: str | Path) -> TpuProgram:
    """Reads what `save` wrote; only open files you trust. Raises ValueError on a damaged one."""
    data = Path(path).read_bytes()
    if not data.startswith(_MAGIC):
        raise ValueError(f"aot.load: {path} is no program of this version")
    try:
        program = pickle.loads(data[len(_MAGIC) :])
    except (pickle.UnpicklingError, EOFError, AttributeError, ValueError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"aot.load: {path} is damaged: {error}") from error
    if not isinstance(program, TpuProgram):
        raise ValueError(f"aot.load: {path} holds no program")
    return program


def compile(
    step: Callable[..., Any],
    example_inputs: Sequence[Any] = (),
    topology: str | Topology = "v6e:1x1",
    devices: int = 1,
    *,
    timeout: float = 1800,
    memory: float = 16e9,
) -> TpuProgram:
    """Compiles `step(*example_inputs)` for a TPU that is not here.

    Args:
        step: a module, a function, or a whole train step (`loss.backward(); optimizer.step()`); tensors it holds may be on
            `meta`, fake, on CPU or on `tpu`: no value is read.
        example_inputs: its arguments; meta tensors suffice.
        topology: `v6e:2x2`, `v7x:2x2x1`, ...: `torch-tpu topologies` lists the kinds.
        devices: how many of its devices the program uses; more than one are replicas of the same program.
        timeout: seconds for the compiler.
        memory: bytes of this host that the compiler may use.

    Raises:
        ValueError: an unknown topology, or more devices than it has.
        ImportError: libtpu is not installed.
        OutOfDeviceMemory, CompileError: with the compiler's text.
    """
    where = topology if isinstance(topology, Topology) else parse(topology)
    if not 1 <= devices <= where.devices:
        raise ValueError(f"aot.compile: {where.name} has {where.devices} devices, got devices={devices}")
    captured = capture(step, example_inputs)
    answer = compile_text(where, captured.stablehlo, devices, timeout, memory)
    module = hlo.read(answer["optimized"])
    costs = sorted(module.costs(), key=lambda pair: pair[0].cycles * pair[1], reverse=True)
    costliest = [Fusion(each.name, each.opcode, each.op_name, each.source, each.cycles * times) for each, times in costs[:20]]
    cost = answer["cost"]
    return TpuProgram(
        where,
        Memory(**answer["memory"]),
        Cost(cost.get("flops", 0.0), cost.get("bytes accessed", 0.0), module.cycles(), module.loops_of_unknown_length()),
        costliest,
        captured,
        answer["executable"],
        answer["platform"],
    )


def as_json(program: TpuProgram) -> str:
    """`as_dict` as text."""
    return json.dumps(program.as_dict(), indent=2)
