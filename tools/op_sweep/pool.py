"""Workers: each runs a chain of jobs; one that hangs or dies is replaced, and that is a result too."""

from __future__ import annotations

import contextlib
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
from .record import Record, from_json

ROOT = Path(__file__).resolve().parents[2]
Job = tuple[str, str, str]  # entry, dtype, kind


class _Worker:
    def __init__(self, options: Options, plain: bool) -> None:
        environment = dict(os.environ)
        if plain:
            environment["TORCH_TPU_HOST_KERNELS"] = "0"
        self.plain = plain
        paths = [str(ROOT), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
        # Where torch_tpu was found goes before the checkout, whose folder of that name has no extension.
        environment["PYTHONPATH"] = os.pathsep.join([*paths[1:], paths[0]])
        self._errors = tempfile.TemporaryFile()
        text = json.dumps({"device": options.device, "samples": options.samples, "smallest": options.smallest,
                           "fault": options.fault})  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tools.op_sweep.worker", text],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=environment, cwd=tempfile.gettempdir(),
        )  # fmt: skip
        self._pending = b""
        self.jobs = 0

    def _line(self, limit: float) -> str | None:
        """ "" at the end of the stream, None when the limit passed."""
        assert self._process.stdout is not None
        end = time.monotonic() + limit
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return None
            more = os.read(self._process.stdout.fileno(), 1 << 16)
            if not more:
                return ""
            self._pending += more
        line, self._pending = self._pending.split(b"\n", 1)
        return line.decode()

    def run(self, job: Job, limit: float, start_limit: float) -> Record:
        """A record in any case; `alive` tells whether another job may follow."""
        entry, dtype, kind = job
        self.jobs += 1
        begun = time.monotonic()
        try:
            assert self._process.stdin is not None
            self._process.stdin.write((json.dumps({"entry": entry, "dtype": dtype, "kind": kind}) + "\n").encode())
            self._process.stdin.flush()
            line = self._line(start_limit)
            if line and "begin" in line:
                begun = time.monotonic()
                line = self._line(limit)
        except BrokenPipeError:
            line = ""
        if line:
            return from_json(line)
        if line is None:
            status, message = "hang", f"no result after {limit:.0f} s"
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            status, message = "abort", f"the process ended with {self._process.returncode}: {self._tail()}"
        self.stop()
        return Record(entry, dtype, kind, status, 1, 0, message, seconds=round(time.monotonic() - begun, 1))

    def _tail(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return " | ".join(lines[-3:])[-300:]

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
    *,
    workers: int = 2,
    limit: float = 120.0,
    recycle: int = 100,
) -> None:
    """Runs all jobs and reports each record from the calling thread.

    Args:
        limit: seconds for one job.
        recycle: jobs after which a worker is replaced, since compiled programs stay in its memory.
    """
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    total = 0
    for job in sorted(jobs, key=lambda job: job[2] == "plain"):
        waiting.put(job)
        total += 1
    done: queue.SimpleQueue[Record | BaseException] = queue.SimpleQueue()
    stopping = threading.Event()

    def serve() -> None:
        worker: _Worker | None = None  # a process has host handlers or not: `plain` jobs get one of their own
        try:
            while not stopping.is_set():
                try:
                    job = waiting.get_nowait()
                except queue.Empty:
                    break
                plain = job[2] == "plain"
                if worker is not None and worker.plain != plain:
                    worker.stop()
                    worker = None
                if worker is None:
                    worker = _Worker(options, plain)
                done.put(worker.run(job, limit, start_limit=limit + 300))
                if not worker.alive or worker.jobs >= recycle:
                    worker.stop()
                    worker = None
        except BaseException as error:
            done.put(error)
        finally:
            if worker is not None:
                worker.stop()

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(max(1, min(workers, total)))]
    for thread in threads:
        thread.start()
    try:
        for _ in range(total):
            record = done.get()
            if isinstance(record, BaseException):
                raise record
            report(record)
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
