"""All benchmarks in one table: `make bench`, or `make bench ARGS="add-strict chain-fused"` for some.

TORCH_TPU_PEER_ENV names a script that enters the peer's environment; without it its columns hold dashes, and so do targets
against it. `--instructions` counts instructions per op too, which takes minutes. A missed target is shown, not an error.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from typing import Any

import instructions
from paired import Sides, Worker
from rows import FUSED, ROWS, Row, Target

FIRST_COLD, FIRST_WARM, MEMORY, LOOP = "gpt2-first-cold", "gpt2-first-warm", "gpt2-memory", "loop-20000"
OTHERS = [FIRST_COLD, FIRST_WARM, MEMORY, LOOP]
COLUMNS = ("cpu", "loop", "peer strict", "peer fused")


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e6:.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _verdict(ratio: float | None, target: Target) -> list[str]:
    what = f"{target.limit:.3g}x {target.side}" + (" (goal)" if target.goal else "")
    if ratio is None:
        return ["-", what, "-"]
    return [f"{ratio:.3g}", what, "met" if ratio <= target.limit else "missed"]


class Report:
    """The table, a line a target."""

    def __init__(self) -> None:
        from rich.table import Table

        self.table = Table(title="torch_tpu")
        for heading in ("work", "tpu", "CPU eager", "C++ loop", "peer strict", "peer fused", "ratio", "target", "", "instr./op"):
            self.table.add_column(heading, justify="left" if heading in ("work", "target") else "right")

    def add(self, name: str, figures: list[str], verdicts: list[list[str]], instructions_per_op: str = "") -> None:
        """A row of five figures, ours first, and its targets."""
        for i, verdict in enumerate(verdicts):
            self.table.add_row(*([name, *figures] if i == 0 else [""] * 6), *verdict, instructions_per_op if i == 0 else "")

    def show(self) -> None:
        """Prints it."""
        from rich.console import Console

        Console(width=None if sys.stdout.isatty() else 170).print(self.table)


def _first_steps(report: Report, peer: bool, rounds: int = 3) -> None:
    """The first training step of GPT-2 in a new process, with the caches empty, and with the disk cache of that."""
    step: dict[str, object] = {"case": "gpt2", "n": 1, "mode": FUSED}
    cold: list[float] = []
    warm: list[float] = []
    cpu: list[float] = []
    theirs: list[float] = []

    def first(kind: str, into: list[float], **environment: str) -> None:
        worker = Worker(kind, FUSED, environment)
        worker.ask({"case": "add", "n": 1, "mode": FUSED})  # starts the device
        answer = worker.ask(step)
        worker.close()
        if "error" in answer:
            print(f"first step on {kind}: {answer['error']}", file=sys.stderr)
        else:
            into.append(answer["seconds"])

    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            first("tpu", cold, TORCH_TPU_CACHE_DIR=folder)
            first("tpu", warm, TORCH_TPU_CACHE_DIR=folder)
        first("cpu", cpu)
        if peer:
            with tempfile.TemporaryDirectory() as folder:
                first("peer", theirs, XDG_CACHE_HOME=folder)
    for name, ours, limit in ((FIRST_COLD, cold, 2.0), (FIRST_WARM, warm, 0.5)):
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True)) if ours and theirs else None
        figures = [ours, cpu, [], [], theirs]
        medians = [_time(statistics.median(values)) if values else "-" for values in figures]
        report.add(name, medians, [_verdict(ratio, Target("peer fused", limit))])


def _memory(report: Report) -> None:
    answers: dict[str, Any] = {}
    for kind in ("tpu", "cpu"):
        worker = Worker(kind)
        answers[kind] = worker.ask({"case": "gpt2", "figure": "peak_bytes", "mode": FUSED}).get("value")
        worker.close()
    ratio = answers["tpu"] / answers["cpu"] if all(answers.values()) else None
    figures = [f"{answers[kind] / 2**20:.1f} MiB" if answers[kind] else "-" for kind in ("tpu", "cpu")]
    report.add(MEMORY, [*figures, "-", "-", "-"], [_verdict(ratio, Target("cpu", 1.05))])


def _loop(report: Report) -> None:
    worker = Worker("tpu")
    answer = worker.ask({"case": "mlp_small", "figure": "growth", "mode": FUSED})
    worker.close()
    grown = answer.get("value")
    verdict = ["-", "flat (8 MiB)", "-"] if grown is None else ["", "flat (8 MiB)", "met" if grown <= 8 else "missed"]
    report.add(LOOP, [f"{grown:+.1f} MiB" if grown is not None else "-", "-", "-", "-", "-"], [verdict])


def _times(report: Report, rows: list[Row], count: bool) -> None:
    sides = Sides()
    for row in rows:
        medians, ratios = sides.compare(row)
        figures = [_time(medians.get(name)) for name in ("tpu", *COLUMNS)]
        counted = instructions.per_op(row) if count and row.case in ("add", "chain") else ""
        report.add(row.name, figures, [_verdict(ratios.get(target.side), target) for target in row.targets], counted)
    sides.close()



def main(names: list[str]) -> int:
    """Measures the named cases, or all."""
    count = "--instructions" in names
    names = [name for name in names if name != "--instructions"]
    known = [row.name for row in ROWS] + OTHERS
    unknown = set(names) - set(known)
    if unknown:
        print(f"expected some of {', '.join(known)}, got {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    report = Report()
    rows = [row for row in ROWS if not names or row.name in names]
    if rows:
        _times(report, rows, count)
    if not names or {FIRST_COLD, FIRST_WARM} & set(names):
        _first_steps(report, bool(os.environ.get("TORCH_TPU_PEER_ENV")))
    if not names or MEMORY in names:
        _memory(report)
    if not names or LOOP in names:
        _loop(report)
    report.show()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
