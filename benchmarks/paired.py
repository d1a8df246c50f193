"""Paired, interleaved measurements of several sides, and their table.

Every round asks each side for one batch, one after the other, so that what else the machine does meets all of them. The
figure of a side is the median of its rounds; a ratio is the median of the rounds' ratios. The side `loop` is a C++ loop that
launches the executables of our side again, with the same data flow: what an eager step could take at best.
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
    """A case of cases.py, repetitions per batch, rounds, and the target, if any: a side and the largest ratio to it."""

    case: str
    n: int
    rounds: int
    target: tuple[str, float] | None = None


class Worker:
    """A process that measures."""

    def __init__(self, name: str) -> None:
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

    def ask(self, request: dict[str, object]) -> dict[str, object]:
        """The answer to a request, with `error` when the process has ended."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"error": "its process ended"}

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


class Side:
    """What is compared: a worker, and how it is asked."""

    def __init__(self, name: str, worker: Worker) -> None:
        self.name = name
        self.worker = worker
        self.broken: set[str] = set()

    def measure(self, case: str, n: int) -> float | None:
        """Seconds per repetition; None when this side cannot do it (the reason is printed once)."""
        if case in self.broken:
            return None
        answer = self.worker.ask({"case": case, "n": n, "loop": self.name == "loop"})
        if "error" in answer:
            self.broken.add(case)
            print(f"{case} on {self.name}: {answer['error']}", file=sys.stderr)
            return None
        return float(str(answer["seconds"]))


def sides() -> list[Side]:
    """Ours and its loop, CPU PyTorch, and the peer where TORCH_TPU_PEER_ENV points to it."""
    ours = Worker("tpu")
    found = [Side("tpu", ours), Side("loop", ours), Side("cpu", Worker("cpu"))]
    if os.environ.get(PEER_ENV):
        found.append(Side("peer", Worker("peer")))
    return found


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def run(title: str, rows: list[Row]) -> bool:
    """Measures and prints. Returns whether every target that could be checked was met."""
    from rich.console import Console
    from rich.table import Table

    compared = sides()
    table = Table(title=title)
    for heading in ("work", "tpu", "C++ loop", "CPU PyTorch", "peer", "tpu / loop", "tpu / CPU", "tpu / peer", "target"):
        table.add_column(heading, justify="left" if heading == "work" else "right")
    met = True
    for row in rows:
        taken: dict[str, list[float]] = {side.name: [] for side in compared}
        for side in compared:  # the first call makes tensors and compiles
            side.measure(row.case, 1)
            side.measure(row.case, row.n)
        for _ in range(row.rounds):
            for side in compared:
                seconds = side.measure(row.case, row.n)
                if seconds is not None:
                    taken[side.name].append(seconds)
        median = {name: statistics.median(values) if values else None for name, values in taken.items()}
        ratio = {}
        for name in ("loop", "cpu", "peer"):
            pairs = list(zip(taken["tpu"], taken.get(name, []), strict=False))
            ratio[name] = statistics.median(a / b for a, b in pairs) if pairs else None
        goal = "-"
        if row.target is not None:
            against, limit = row.target
            found = ratio[against]
            met = met and (found is None or found <= limit)
            verdict = "" if found is None else " (met)" if found <= limit else " (missed)"
            goal = f"{limit:g}x {against}{verdict}"
        times = [_time(median.get(name)) for name in ("tpu", "loop", "cpu", "peer")]
        table.add_row(row.case, *times, *(f"{r:.2f}" if r is not None else "-" for r in ratio.values()), goal)
    for side in compared:
        if side.name != "loop":
            side.worker.close()
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    return met
