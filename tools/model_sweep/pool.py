"""Workers: each runs a chain of families; one that hangs or dies is replaced, and that is a result too."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import queue
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from .check import Options
from .record import KINDS, Record, from_json

ROOT = Path(__file__).resolve().parents[2]
IMPORTS = 300.0  # seconds more for the first line of a process
Job = tuple[str, tuple[str, ...]]  # family, kinds


class _Worker:
    def __init__(self, options: Options, memory: float) -> None:
        self._memory, self._too_large = memory, ""
        environment = dict(os.environ)
        paths = [str(ROOT), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
        # Where torch_tpu was found goes before the checkout, whose folder of that name has no extension.
        environment["PYTHONPATH"] = os.pathsep.join([*paths[1:], paths[0]])
        if options.device == "cpu":
            environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.model_sweep.worker", json.dumps(dataclasses.asdict(options))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            cwd=tempfile.gettempdir(),
        )
        self._pending = b""
        self.jobs = 0

    def _line(self, limit: float) -> str | None:
        """ "" at the end of the stream, also when the process took too much memory; None when the limit passed."""
        assert self._process.stdout is not None
        end = time.monotonic() + limit
        while b"\n" not in self._pending:
            left = end - time.monotonic()
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, min(left, 1.0)))
            if not ready:
                if left <= 0:
                    return None
                if self.memory() > self._memory:
                    self._too_large = f"more than {self._memory / 2**30:.0f} GiB of memory"
                    self._process.kill()
                continue
            more = os.read(self._process.stdout.fileno(), 1 << 16)
            if not more:
                return ""
            self._pending += more
        line, self._pending = self._pending.split(b"\n", 1)
        return line.decode()

    def run(self, job: Job, limit: float, report: Callable[[Record], None]) -> tuple[str, ...]:
        """Reports the records as they come. Returns the kinds that are still to be run: a kind that ended the process
        is not among them, it has been reported as an abort or a hang."""
        family, kinds = job
        self.jobs += 1
        left = list(kinds)
        at, begun = "build", time.monotonic()
        line: str | None = ""
        try:
            assert self._process.stdin is not None
            self._process.stdin.write((json.dumps({"family": family, "kinds": kinds}) + "\n").encode())
            self._process.stdin.flush()
            patience = limit + IMPORTS
            while line := self._line(patience):
                message = json.loads(line)
                patience = limit
                if "begin" in message:
                    at, begun = message["begin"], time.monotonic()
                elif "end" in message:
                    return ()
                else:
                    record = from_json(line)
                    report(record)
                    left.remove(record.kind)
        except BrokenPipeError:
            line = ""
        if line is None:
            status, text = "hang", f"no result after {limit:.0f} s"
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            status, text = (
                "abort",
                self._too_large or f"the process ended with {self._process.returncode}: {self._tail()}",
            )
        self.stop()
        lost = left if at == "build" else [at]  # without a model there is no other kind either
        for kind in lost:
            report(Record(family, kind, status, text, seconds=round(time.monotonic() - begun, 1)))
        return tuple(k for k in left if k not in lost)

    def _tail(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return " | ".join(lines[-3:])[-300:]

    def memory(self) -> int:
        """Resident bytes of the process."""
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            return 0  # it has ended
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                stream.close()


def run_jobs(
    jobs: Iterable[Job],
    options: Options,
    report: Callable[[Record], None],
    finished: Callable[[str], None] = lambda family: None,
    *,
    workers: int = 1,
    limit: float = 300.0,
    recycle: int = 40,
    memory: float = 6 * 2**30,
) -> None:
    """Runs all jobs; reports each record, and each family that is through, from the calling thread.

    Args:
        limit: seconds for one kind of one family.
        recycle: families after which a worker is replaced, since models' code and compiled programs stay in its memory.
        memory: resident bytes at which a worker is ended; one that holds half of it is replaced between families.
    """
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    total = 0
    for job in jobs:
        waiting.put(job)
        total += 1
    done: queue.SimpleQueue[Record | str | BaseException] = queue.SimpleQueue()
    stopping = threading.Event()

    def serve() -> None:
        worker: _Worker | None = None
        try:
            while not stopping.is_set():
                try:
                    family, kinds = waiting.get_nowait()
                except queue.Empty:
                    break
                left = kinds
                while left and not stopping.is_set():
                    worker = worker or _Worker(options, memory)
                    left = worker.run((family, left), limit, done.put)
                    if not worker.alive or worker.jobs >= recycle or worker.memory() > memory / 2:
                        worker.stop()
                        worker = None
                done.put(family)
        except BaseException as error:
            done.put(error)
        finally:
            if worker is not None:
                worker.stop()

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(max(1, min(workers, total)))]
    for thread in threads:
        thread.start()
    try:
        while total:
            found = done.get()
            if isinstance(found, BaseException):
                raise found
            if isinstance(found, str):
                total -= 1
                finished(found)
            else:
                report(found)
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def ordered(kinds: Iterable[str]) -> tuple[str, ...]:
    """In the order in which they are run."""
    chosen = set(kinds)
    return tuple(k for k in KINDS if k in chosen)
