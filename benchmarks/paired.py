"""Paired, interleaved measurements of several sides.

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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rows import FUSED, STRICT, Row

HERE = Path(__file__).resolve().parent
PEER_ENV = "TORCH_TPU_PEER_ENV"  # a script that sets up the peer's environment, with a `run_peer` module in it
MODE_ENV = "TORCH_TPU_DEFER_AND_FUSE"  # the peer's mode; ours is set by request


class Worker:
    """A process that measures: `tpu`, `cpu`, or the peer in one of its modes."""

    def __init__(self, kind: str, mode: str = STRICT, environment: Mapping[str, str] | None = None) -> None:
        variables = {**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})}
        command = [sys.executable, str(HERE / "worker.py"), kind]
        if kind == "peer":
            for name in ("VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH"):  # the script brings its own
                variables.pop(name, None)
            variables[MODE_ENV] = "1" if mode == FUSED else "0"
            worker = shlex.quote(str(HERE / "worker.py"))
            command = ["bash", "-c", f"source {shlex.quote(os.environ[PEER_ENV])} && exec python {worker} peer"]
        if kind == "cpu":
            variables["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=variables
        )

    def ask(self, request: dict[str, object]) -> dict[str, Any]:
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
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended by itself
        self.process.wait(timeout=60)


class Sides:
    """All that is compared, by name: tpu, loop, cpu, and where the environment has the peer, `peer strict` and `peer fused`."""

    def __init__(self) -> None:
        self.has_peer = bool(os.environ.get(PEER_ENV))
        ours = Worker("tpu")
        self.workers = {"tpu": ours, "loop": ours, "cpu": Worker("cpu")}
        if self.has_peer:
            self.workers["peer strict"] = Worker("peer", STRICT)
            self.workers["peer fused"] = Worker("peer", FUSED)
        self.broken: set[tuple[str, str]] = set()

    def measure(self, side: str, row: Row) -> float | None:
        """Seconds per repetition; None when this side cannot do it (the reason is printed once)."""
        if (side, row.name) in self.broken:
            return None
        mode = side.removeprefix("peer ") if side.startswith("peer") else STRICT if side == "cpu" else row.mode
        answer = self.workers[side].ask({"case": row.case, "n": row.n, "mode": mode, "loop": side == "loop"})
        if "error" in answer:
            self.broken.add((side, row.name))
            print(f"{row.name} on {side}: {answer['error']}", file=sys.stderr)
            return None
        return float(answer["seconds"]) / row.per

    def compare(self, row: Row) -> tuple[dict[str, float], dict[str, float]]:
        """Medians by side, and medians of the ratios of our times to theirs."""
        names = [name for name in self.workers if name != "loop" or row.mode == STRICT]
        for name in names:  # makes tensors and compiles
            for _ in range(3):
                self.measure(name, row)
        taken: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(row.rounds):
            for name in names:
                seconds = self.measure(name, row)
                if seconds is not None:
                    taken[name].append(seconds)
        medians = {name: statistics.median(values) for name, values in taken.items() if values}
        ratios = {
            name: statistics.median(a / b for a, b in zip(taken["tpu"], values, strict=False))
            for name, values in taken.items()
            if values and taken["tpu"]
        }
        return medians, ratios

    def close(self) -> None:
        """Ends all processes."""
        for name, worker in self.workers.items():
            if name != "loop":
                worker.close()
