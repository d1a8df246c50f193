"""Paired, interleaved measurements of several sides, and their table.

Every round asks each side for one batch, one after the other, so that what else the machine does meets all of them. The
figure of a side is the median of its rounds; a ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEER_ENV = "TORCH_TPU_PEER_ENV"  # a script that sets up the peer's environment, with a `run_peer` module in it


@dataclass(frozen=True)
class Row:
    """What to measure: a case of cases.py, repetitions per batch, rounds, and the target (side and largest ratio) if any."""

    case: str
    n: int
    rounds: int
    target: tuple[str, float] | None = None


class Side:
    """A worker process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.broken: set[str] = set()
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        command = [sys.executable, str(HERE / "worker.py"), name]
        if name == "peer":
            script = f"source {shlex.quote(os.environ[PEER_ENV])} && exec python {shlex.quote(str(HERE / 'worker.py'))} peer"
            command = ["bash", "-c", script]
        if name == "cpu":
            environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )

    def measure(self, case: str, n: int) -> float | None:
        """Seconds per repetition; None when this side cannot do it (the reason is printed once)."""
        if case in self.broken:
            return None
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"case": case, "n": n}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer = json.loads(line) if line else {"error": "its process ended"}
        if "error" in answer:
            self.broken.add(case)
            print(f"{case} on {self.name}: {answer['error']}", file=sys.stderr)
            return None
        return answer["seconds"]

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


def sides() -> list[Side]:
    """Ours, CPU PyTorch, and the peer where TORCH_TPU_PEER_ENV points to it."""
    return [Side(name) for name in ("tpu", "cpu", *(["peer"] if os.environ.get(PEER_ENV) else []))]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def run(title: str, rows: list[Row]) -> bool:
    """Measures and prints. Returns whether every target that could be checked was met."""
    from rich.console import Console
    from rich.table import Table

    workers = sides()
    table = Table(title=title)
    for heading in ("work", "tpu", "CPU PyTorch", "peer", "tpu / CPU", "tpu / peer", "target"):
        table.add_column(heading, justify="left" if heading == "work" else "right")
    met = True
    for row in rows:
        taken: dict[str, list[float]] = {worker.name: [] for worker in workers}
        for worker in workers:  # the first call makes tensors and compiles
            worker.measure(row.case, 1)
            worker.measure(row.case, row.n)
        for _ in range(row.rounds):
            for worker in workers:
                seconds = worker.measure(row.case, row.n)
                if seconds is not None:
                    taken[worker.name].append(seconds)
        median = {name: statistics.median(values) if values else None for name, values in taken.items()}
        ratio = {}
        for name in ("cpu", "peer"):
            pairs = list(zip(taken["tpu"], taken.get(name, []), strict=False))
            ratio[name] = statistics.median(a / b for a, b in pairs) if pairs else None
        goal = "-"
        if row.target is not None:
            side, limit = row.target
            found = ratio[side]
            met = met and (found is None or found <= limit)
            verdict = "" if found is None else " (met)" if found <= limit else " (missed)"
            goal = f"{limit:g}x {side}{verdict}"
        table.add_row(
            row.case,
            _time(median["tpu"]),
            _time(median["cpu"]),
            _time(median.get("peer")),
            *(f"{r:.2f}" if r is not None else "-" for r in (ratio["cpu"], ratio["peer"])),
            goal,
        )
    for worker in workers:
        worker.close()
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    return met
