"""A program that libtpu compiled for a topology, and what it says about itself."""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch_tpu import _C

from . import hlo
from .capture import Captured, capture, execute, like
from .figures import Collective, Figures, Live
from .topologies import Topology, parse
from .worker import OutOfDeviceMemory, compile_text

_MAGIC = b"torch_tpu aot 2\n"


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
    """Of one device and call. `flops` and `bytes_accessed` are XLA's cost analysis (the latter counts the cores' own memory
    too); `cycles` adds up the compiler's estimates over the optimized program, loops multiplied by their trip counts;
    `hbm_bytes` cross the border of HBM; `collective_bytes` are sent to other devices. Loops whose length depends on data count
    as one turn: with any of those (`loops_of_unknown_length`) the others are lower bounds."""

    flops: float
    bytes_accessed: float
    cycles: int
    hbm_bytes: int
    collective_bytes: int
    loops_of_unknown_length: int


@dataclass(frozen=True)
class Fusion:
    """One instruction of the optimized program."""

    name: str
    opcode: str
    op: str  # of the lowering table; a fusion has its root's
    source: str  # the user's line, of a backward op that of its forward
    cycles: int  # all its runs in a call
    runs: int


@dataclass
class TpuProgram:
    """What `compile` gives: the compiler's figures for one device, and the executable."""

    topology: Topology
    devices: int
    memory: Memory
    cost: Cost
    costliest: list[Fusion]
    collectives: list[Collective]
    largest: list[Live]
    captured: Captured
    executable: bytes = field(repr=False)
    compiler: str = ""
    padding_bytes: int = 0  # what layouts add to the arguments
    copy_cycles: int = 0  # of copies and transposes that only change a layout
    padded_products: list[tuple[str, float]] = field(default_factory=list)  # types of matrix products that pad, and how much
    unestimated: dict[str, int] = field(default_factory=dict)  # opcode -> runs without an estimate
    tokens: int | None = None  # per device and call
    device_kind: str = ""  # what PJRT calls such a device
    _loaded: Any = field(default=None, repr=False, compare=False)

    @property
    def fits(self) -> bool:
        """Whether the memory it needs is there."""
        return self.memory.total_bytes <= self.topology.hbm_bytes

    @property
    def compute_seconds(self) -> float:
        """cycles / clock."""
        return self.cost.cycles / self.topology.kind.clock

    @property
    def memory_seconds(self) -> float:
        """hbm_bytes / bandwidth of HBM."""
        return self.cost.hbm_bytes / self.topology.bandwidth

    @property
    def collective_seconds(self) -> float:
        """What collectives send over a ring / bandwidth of a device's links; only those that nothing overlaps."""
        return sum(one.sent for one in self.collectives if not one.overlapped) / self.topology.link_bandwidth

    @property
    def predicted_seconds(self) -> float:
        """A model, not a measurement: max(compute, memory, overlapped collectives) + collectives that are waited for."""
        hidden = sum(one.sent for one in self.collectives if one.overlapped) / self.topology.link_bandwidth
        return max(self.compute_seconds, self.memory_seconds, hidden) + self.collective_seconds

    @property
    def mfu(self) -> float:
        """flops / (predicted_seconds * peak bfloat16 FLOP/s of a device)."""
        return self.cost.flops / (self.predicted_seconds * self.topology.peak_flops) if self.predicted_seconds else 0.0

    @property
    def tokens_per_second(self) -> float | None:
        """Of all devices: tokens * devices / predicted_seconds; None where `tokens` is not known."""
        if self.tokens is None or not self.predicted_seconds:
            return None
        return self.tokens * self.devices / self.predicted_seconds

    def advice(self) -> list[str]:
        """What follows from the figures, one sentence each."""
        lines = []
        memory, hbm = self.memory, self.topology.hbm_bytes
        if not self.fits:
            advice = out_of_memory_advice(memory.argument_bytes, memory.total_bytes, self.topology)
            lines.append(f"it needs {memory.total_bytes / 1e9:.2f} GB, a device has {hbm / 1e9:.0f} GB: {advice}")
        if (
            memory.output_bytes > 1 << 20
            and memory.alias_bytes == 0
            and any(not n.startswith("result") for n in self.captured.outputs)
        ):
            lines.append("no argument's memory is reused, though the step writes to arguments: dtypes or sizes change on the way")
        if "HIGHEST" in self.captured.stablehlo and "xf32>" in self.captured.stablehlo:
            lines.append(
                "float32 products run in 6 bfloat16 passes: torch.set_float32_matmul_precision('medium') runs 1, at bfloat16's "
                "accuracy, 'high' 3"
            )
        for kind, factor in self.padded_products[:3]:
            lines.append(
                f"a matrix product's {kind} takes {factor:.1f} times its size: its last two sizes pad to multiples of 8 and 128"
            )
        if self.memory_seconds > 1.5 * self.compute_seconds and self.memory_seconds > self.collective_seconds:
            lines.append(
                f"memory bound: moving {self.cost.hbm_bytes / 1e9:.2f} GB takes "
                f"{self.memory_seconds / max(self.compute_seconds, 1e-12):.1f} times as long as the cycles: take a larger batch, "
                "or bfloat16"
            )
        if self.collective_seconds > self.predicted_seconds / 3:
            lines.append(
                f"{self.collective_seconds / self.predicted_seconds:.0%} of the time waits for other devices: give a device more "
                "work, or exchange bfloat16"
            )
        if self.copy_cycles > self.cost.cycles / 10:
            lines.append(f"{self.copy_cycles / self.cost.cycles:.0%} of the cycles only bring data into another layout")
        if self.cost.loops_of_unknown_length:
            lines.append(
                f"{self.cost.loops_of_unknown_length} loops count as one turn, since their length depends on data: cycles, "
                "bytes and the predicted time are lower bounds"
            )
        return lines

    def as_dict(self) -> dict[str, Any]:
        """What `--json` writes; names are the attributes'."""
        return {
            "topology": self.topology.name,
            "devices": self.devices,
            "device_hbm_bytes": self.topology.hbm_bytes,
            "fits": self.fits,
            "memory": asdict(self.memory) | {"total_bytes": self.memory.total_bytes},
            "cost": asdict(self.cost),
            "compute_seconds": self.compute_seconds,
            "memory_seconds": self.memory_seconds,
            "collective_seconds": self.collective_seconds,
            "predicted_seconds": self.predicted_seconds,
            "mfu": self.mfu,
            "tokens": self.tokens,
            "tokens_per_second": self.tokens_per_second,
            "ops": self.captured.ops,
            "inputs": self.captured.inputs,
            "outputs": self.captured.outputs,
            "costliest": [asdict(fusion) for fusion in self.costliest],
            "collectives": [asdict(one) for one in self.collectives],
            "largest": [asdict(live) for live in self.largest],
            "padding_bytes": self.padding_bytes,
            "copy_cycles": self.copy_cycles,
            "padded_products": self.padded_products,
            "unestimated": self.unestimated,
            "advice": self.advice(),
            "compiler": self.compiler,
            "note": "predicted_seconds, mfu and tokens_per_second are a model's figures, not measurements",
        }

    def report(self) -> str:
        """The figures as text for a terminal."""
        from .report import text

        return text(self)

    def html(self) -> str:
        """The figures as one page that needs nothing else."""
        from .html import page

        return page(self)

    def run(self, arguments: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Runs the executable on a TPU of its kind, with no compile. Arguments and result: see `Captured.run`.

        Raises RuntimeError where this host's device is another one, NotImplementedError for a program of many devices.
        """
        if self.devices != 1:
            raise NotImplementedError(f"aot: a program for {self.devices} devices cannot be run by one process yet")
        kind = _C.device_kind(0)
        if kind != self.device_kind:
            raise RuntimeError(
                f"aot: the program is for {self.topology.name} ({self.device_kind}), but this host's device is {kind!r} (plugin "
                f"{_C.plugin_name()}): run it where that TPU is"
            )
        if self._loaded is None:
            self._loaded = _C.LoadedProgram(self.executable, True, like(self.captured.output_types))
        return execute(self._loaded, self.captured, arguments)

    def save(self, path: str | Path) -> None:
        """Writes the executable, its program and its figures; `load` reads it."""
        header = self.as_dict() | {
            "types": self.captured.types,
            "output_types": self.captured.output_types,
            "device_kind": self.device_kind,
            "donated": self.captured.donated,
        }
        parts = [json.dumps(header).encode(), self.captured.stablehlo.encode(), self.executable]
        body = b"".join(struct.pack("<Q", len(part)) + part for part in parts)
        Path(path).write_bytes(_MAGIC + hashlib.sha256(body).digest() + body)


def load(path: str | Path) -> TpuProgram:
    """Reads what `TpuProgram.save` wrote. Raises ValueError on a file of something else, and on a damaged one."""
    data = Path(path).read_bytes()
    if not data.startswith(_MAGIC):
        raise ValueError(f"aot.load: {path} is no program that this version saved")
    digest, body = data[len(_MAGIC) : len(_MAGIC) + 32], data[len(_MAGIC) + 32 :]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError(f"aot.load: {path} is damaged: its checksum does not match; save it again")
    parts, at = [], 0
    while at < len(body):
        (size,) = struct.unpack_from("<Q", body, at)
        parts.append(body[at + 8 : at + 8 + size])
        at += 8 + size
    header = json.loads(parts[0])
    memory = {name: size for name, size in header["memory"].items() if name != "total_bytes"}
    captured = Captured(
        parts[1].decode(),
        header["inputs"],
        header["types"],
        header["outputs"],
        header["output_types"],
        [(a, b) for a, b in header["donated"]],
        header["ops"],
    )
    return TpuProgram(
        parse(header["topology"]),
        header["devices"],
        Memory(**memory),
        Cost(**header["cost"]),
        [Fusion(**each) for each in header["costliest"]],
        [Collective(**each) for each in header["collectives"]],
        [Live(**each) for each in header["largest"]],
        captured,
        parts[2],
        header["compiler"],
        header["padding_bytes"],
        header["copy_cycles"],
        [(kind, factor) for kind, factor in header["padded_products"]],
        header["unestimated"],
        header["tokens"],
        header["device_kind"],
    )


def compile(
    step: Callable[..., Any],
    example_inputs: Sequence[Any] = (),
    topology: str | Topology = "v6e:1x1",
    devices: int = 1,
    *,
    tokens: int | None = None,
    timeout: float = 1800,
    memory: float = 16e9,
) -> TpuProgram:
    """Compiles `step(*example_inputs)` for a TPU that is not here.

    Args:
        step: a module, a function, or a whole train step (`loss.backward(); optimizer.step()`); tensors it holds may be on
            `meta`, fake, on CPU or on `tpu`: no value is read.
        example_inputs: its arguments on one device; meta tensors suffice.
        topology: `v6e:2x2`, `v7x:2x2x1`, ...: `torch-tpu topologies` lists the kinds.
        devices: how many of its devices the program uses. More than one run the same program, each as one rank; what they
            exchange are the step's own collectives.
        tokens: what one call does on one device, for tokens_per_second; by default the elements of the first input of integers.
        timeout: seconds for the compiler.
        memory: bytes of this host that the compiler may use.

    Raises:
        ValueError: an unknown topology, or more devices than it has.
        ImportError: libtpu is not installed.
        OutOfDeviceMemory, CompileError: with the compiler's text.
        What `capture` raises.
    """
    where = check_devices(topology, devices)
    captured = capture(step, example_inputs)
    tokens = tokens or tokens_of(example_inputs)
    return compile_captured(captured, where, devices, tokens=tokens, timeout=timeout, memory=memory)


def tokens_of(example_inputs: Sequence[Any]) -> int | None:
    """Elements of the first input of integers; None where there is none."""
    leaves = torch.utils._pytree.tree_leaves(tuple(example_inputs))
    integers = [x for x in leaves if isinstance(x, torch.Tensor) and x.dtype in (torch.int64, torch.int32) and x.dim()]
    return integers[0].numel() if integers else None


def check_devices(topology: str | Topology, devices: int) -> Topology:
    """The topology of that name. Raises ValueError where it has fewer devices."""
    where = topology if isinstance(topology, Topology) else parse(topology)
    if not 1 <= devices <= where.devices:
        raise ValueError(
            f"aot.compile: {where.name} has {where.devices:,} devices ({where.chips:,} chips), got devices={devices}; take 1 to "
            f"{where.devices:,}, or a larger topology"
        )
    return where


def compile_captured(
    captured: Captured,
    topology: Topology,
    devices: int = 1,
    *,
    tokens: int | None = None,
    timeout: float = 1800,
    memory: float = 16e9,
) -> TpuProgram:
    """Compiles what `capture` or `from_stablehlo` gave. Arguments and errors: see `compile`."""
    try:
        answer = compile_text(topology, captured.stablehlo, devices, timeout, memory)
    except OutOfDeviceMemory as error:
        given = sum(x.numel() * x.element_size() for x in like(captured.types))
        advice = out_of_memory_advice(given, max(given, topology.hbm_bytes * 1.01), topology)
        raise OutOfDeviceMemory(
            f"{error}\nThe program's arguments alone take {given / 1e9:.2f} GB of a device's {topology.hbm_bytes / 1e9:.0f} GB: "
            f"{advice}"
        ) from error
    figures = Figures(hlo.read(answer["optimized"]))
    dear = sorted(
        (run for run in figures.runs if run.instruction.cycles), key=lambda run: -(run.instruction.cycles or 0) * run.times
    )
    costliest = [
        Fusion(i.name, i.opcode, i.op, i.source, (i.cycles or 0) * run.times, run.times)
        for run in dear[:30]
        for i in [run.instruction]
    ]
    cost = answer["cost"]
    return TpuProgram(
        topology,
        devices,
        Memory(**answer["memory"]),
        Cost(
            cost.get("flops", 0.0),
            cost.get("bytes accessed", 0.0),
            figures.cycles,
            figures.hbm_bytes,
            sum(one.sent for one in figures.collectives),
            len(set(figures.unknown_loops)),
        ),
        costliest,
        figures.collectives,
        [_named(live, captured) for live in figures.peak(20)],
        captured,
        answer["executable"],
        answer["platform"],
        figures.padding_bytes,
        sum((run.instruction.cycles or 0) * run.times for run in figures.layout_copies),
        figures.padded_products(),
        figures.unestimated,
        tokens,
        answer["kinds"][0],
    )


def from_stablehlo(text: str) -> Captured:
    """StableHLO that something else made, for `compile_captured`; its inputs have no names."""
    types = re.findall(r"%arg\d+: (tensor<[^>]*>)", text.split("->", 1)[0])
    return Captured(text, [f"input {i}" for i in range(len(types))], types, [], [], [], 0)


def _named(live: Live, captured: Captured) -> Live:
    prefix, _, number = live.name.rpartition(" ")
    if prefix == "argument" and int(number) < len(captured.inputs):
        return Live(live.bytes, live.type, captured.inputs[int(number)], live.op, live.source)
    return live


def out_of_memory_advice(argument_bytes: int, total_bytes: float, topology: Topology) -> str:
    """What to do about a program that does not fit."""
    if argument_bytes > topology.hbm_bytes / 2:
        least = math.ceil(total_bytes / topology.hbm_bytes)
        return f"shard parameters and optimizer state over at least {least} devices, or store them in bfloat16"
    return "recompute activations (torch.utils.checkpoint), take a smaller batch, or shard it over devices"
