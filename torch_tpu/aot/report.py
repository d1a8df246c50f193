"""A program's figures as text for a terminal."""

from __future__ import annotations

import io
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table

if TYPE_CHECKING:
    from .program import TpuProgram

WIDTH = 120


def render(*parts: RenderableType) -> str:
    """Rich objects as text."""
    console = Console(width=WIDTH, record=True, file=io.StringIO())
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str), markup=False, highlight=False)
    return console.export_text()


def figures(program: TpuProgram) -> list[tuple[str, str]]:
    """(name, figure) of everything that is one number."""
    rows = [(f"memory.{name}", f"{size:,}") for name, size in asdict(program.memory).items()]
    share = program.memory.total_bytes / program.topology.hbm_bytes
    rows += [
        ("memory.total_bytes (arguments + outputs - aliased + temporaries + code)", f"{program.memory.total_bytes:,}"),
        ("of the device's HBM", f"{share:.2%}" + ("" if program.fits else "  DOES NOT FIT")),
        ("cost.flops", f"{program.cost.flops:.4g}"),
        ("cost.bytes_accessed", f"{program.cost.bytes_accessed:.4g}"),
        ("cost.hbm_bytes", f"{program.cost.hbm_bytes:.4g}"),
        ("cost.cycles", f"{program.cost.cycles:,}"),
        ("compute_seconds = cycles / clock", f"{program.compute_seconds:.4g}"),
        ("memory_seconds = hbm_bytes / bandwidth", f"{program.memory_seconds:.4g}"),
    ]
    formula = "max(compute, memory)"
    if program.collectives:
        rows.append(("collective_seconds = bytes sent / link bandwidth", f"{program.collective_seconds:.4g}"))
        formula = "max(compute, memory) + collectives"
    rows += [
        (f"predicted_seconds = {formula}", f"{program.predicted_seconds:.4g}"),
        ("mfu = flops / (predicted_seconds * peak)", f"{program.mfu:.2%}"),
    ]
    if program.tokens_per_second is not None:
        rows.append(
            (f"tokens_per_second = {program.tokens:,} * devices / predicted_seconds", f"{program.tokens_per_second:,.0f}")
        )
    return rows


def outputs(program: TpuProgram) -> str:
    """What the program gives back, in a sentence."""
    results = [name for name in program.captured.outputs if name.startswith("result")]
    stores = [name for name in program.captured.outputs if not name.startswith("result")]
    text = f"outputs: {len(results)} results"
    if stores:
        text += f", new values of {len(stores)} tensors ({', '.join(stores[:3])}{', ...' if len(stores) > 3 else ''})"
    return text


def text(program: TpuProgram) -> str:
    """What `TpuProgram.report` gives."""
    use = f"{program.devices:,} of {program.topology.devices:,} devices"
    table = Table(
        title=f"{program.topology.name}, {use}; figures of one device: a model, not a measurement", title_justify="left"
    )
    table.add_column("what")
    table.add_column("figure", justify="right")
    for row in figures(program):
        table.add_row(*row)
    parts: list[RenderableType] = [table]
    if program.costliest:
        parts.append(_table("costliest instructions", ["name", "opcode", "cycles", "share", "op", "from"], [
            [f.name, f.opcode, f"{f.cycles:,}", f"{f.cycles / max(program.cost.cycles, 1):.1%}", f.op, f.source]
            for f in program.costliest[:10]
        ]))  # fmt: skip
    if program.collectives:
        parts.append(_table("collectives", ["kind", "bytes", "sent", "devices", "runs", "op", "from"], [
            [c.kind, f"{c.bytes:,}", f"{c.sent:,}", str(c.group_size), str(c.runs), c.op, c.source]
            for c in program.collectives[:10]
        ]))  # fmt: skip
    if program.largest:
        parts.append(_table("largest in HBM at the peak", ["bytes", "type", "what", "from"], [
            [f"{b.bytes:,}", b.type, f"{b.op} ({b.name})" if b.op else b.name, b.source] for b in program.largest[:10]
        ]))  # fmt: skip
    parts.append(outputs(program))
    if program.unestimated:
        parts.append("no estimate of cycles for: " + ", ".join(f"{name} x{n}" for name, n in program.unestimated.items()))
    parts += [f"- {line}" for line in program.advice()]
    return render(*parts)


def _table(title: str, columns: list[str], rows: list[list[str]]) -> Table:
    table = Table(title=title, title_justify="left")
    numbers = {"bytes", "cycles", "share", "sent", "devices", "runs"}
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
