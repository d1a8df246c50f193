"""Programs side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from .program import TpuProgram
from .report import render


@dataclass(frozen=True)
class Difference:
    """Two programs. `rows` are (figure, of a, of b); a figure that one of them does not have is None."""

    a: TpuProgram
    b: TpuProgram
    rows: list[tuple[str, float | None, float | None]]

    def as_dict(self) -> dict[str, dict[str, float | None]]:
        """{figure: {"a", "b", "ratio" of b to a}}."""
        return {name: {"a": a, "b": b, "ratio": _ratio(a, b)} for name, a, b in self.rows}

    def report(self) -> str:
        """The rows as a table."""
        table = Table(title=f"a: {_title(self.a)}    b: {_title(self.b)}", title_justify="left")
        table.add_column("figure")
        for column in ("a", "b", "b / a"):
            table.add_column(column, justify="right")
        for name, a, b in self.rows:
            ratio = _ratio(a, b)
            table.add_row(name, _figure(a), _figure(b), "" if ratio is None else f"{ratio:.3f}")
        return render(table)


def diff(a: TpuProgram, b: TpuProgram) -> Difference:
    """Two variants, or two topologies, side by side."""
    return Difference(a, b, [(name, one, other) for (name, one), (_, other) in zip(_rows(a), _rows(b), strict=True)])


def scaling(programs: Sequence[TpuProgram]) -> str:
    """One line for each program: how memory and time of a device change with topology and devices."""
    table = Table(title="scaling; figures of one device: a model, not a measurement", title_justify="left")
    table.add_column("topology")
    for column in ("devices", "memory GB", "of HBM", "sent GB", "compute s", "waits s", "predicted s", "mfu", "tokens/s"):
        table.add_column(column, justify="right")
    for each in programs:
        table.add_row(
            each.topology.name,
            f"{each.devices:,}",
            f"{each.memory.total_bytes / 1e9:.3f}",
            f"{each.memory.total_bytes / each.topology.hbm_bytes:.1%}",
            f"{each.cost.collective_bytes / 1e9:.3f}",
            f"{max(each.compute_seconds, each.memory_seconds):.4g}",
            f"{each.collective_seconds:.4g}",
            f"{each.predicted_seconds:.4g}",
            f"{each.mfu:.1%}",
            "" if each.tokens_per_second is None else f"{each.tokens_per_second:,.0f}",
        )
    return render(table)


def scale(
    make: Callable[[int], tuple[Callable[..., Any], Sequence[Any]]], sizes: Sequence[tuple[str, int]], **options: Any
) -> list[TpuProgram]:
    """Compiles `make(devices)`, which gives (step, example_inputs) for one of that many ranks, for each (topology, devices),
    under PyTorch's fake process group of that size. `options` are `compile`'s. Raises what `compile` raises."""
    from .program import compile
    from .ranks import ranks

    found = []
    for topology, devices in sizes:
        with ranks(devices):
            step, inputs = make(devices)
            found.append(compile(step, inputs, topology, devices, **options))
    return found


def _rows(program: TpuProgram) -> list[tuple[str, float | None]]:
    flat = program.as_dict()
    rows = [(f"memory.{name}", value) for name, value in flat["memory"].items()]
    rows += [(f"cost.{name}", value) for name, value in flat["cost"].items()]
    names = ("compute_seconds", "memory_seconds", "collective_seconds", "predicted_seconds", "mfu", "tokens_per_second")
    return rows + [(name, flat[name]) for name in names]


def _title(program: TpuProgram) -> str:
    return f"{program.topology.name}, {program.devices:,} devices"


def _ratio(a: float | None, b: float | None) -> float | None:
    return b / a if a and b is not None else None


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{int(value):,}" if isinstance(value, int) or value >= 1e4 else f"{value:.4g}"
