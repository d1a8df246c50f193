"""libtpu in a process of its own: it reads the environment, leaves a lock file, and must never be in the user's process."""

from __future__ import annotations

import atexit
import os
import pickle
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

from torch_tpu import plugins

from .topologies import KINDS, Topology


class CompileError(RuntimeError):
    """The compiler refused a program, took too long or too much memory. The text ends with what it wrote."""


class OutOfDeviceMemory(CompileError):
    """The program does not fit into the device's memory."""


def _environment(topology: Topology, folder: str) -> dict[str, str]:
    """Keeps libtpu off the network, and its files in `folder`."""
    return os.environ | {
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_WORKER_ID": "0",
        "TPU_HOST_BOUNDS": "1,1,1",
        "TPU_CHIPS_PER_HOST_BOUNDS": "2,2,1",
        "TPU_ACCELERATOR_TYPE": topology.kind.accelerator,
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "TPU_LOG_DIR": folder,
        "TMPDIR": folder,
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }


class Worker:
    """One compiler process for one kind of TPU, warm between programs."""

    def __init__(self, topology: Topology) -> None:
        found = plugins.find("libtpu")
        if found is None:
            raise ImportError("compiling for a TPU needs libtpu: `pip install 'torch_tpu[tpu]'` (x86-64 Linux)")
        self.path = found.path
        self.folder = tempfile.mkdtemp(prefix="torch_tpu_aot_")
        self.log = open(os.path.join(self.folder, "stderr"), "w+b")  # noqa: SIM115 - lives as long as the process
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "torch_tpu.aot.worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=_environment(topology, self.folder),
        )

    def compile(self, topology: Topology, text: str, replicas: int, timeout: float, memory: float) -> dict[str, Any]:
        """What the compiler says of the program. Raises CompileError; after a limit was hit the worker is gone."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            _send(self.process.stdin, (self.path, topology.plugin_name, text, replicas))
            deadline = time.monotonic() + timeout
            while not select.select([self.process.stdout], [], [], 0.2)[0]:
                if time.monotonic() > deadline:
                    self.close()
                    raise CompileError(f"compile for {topology.name}: not done within {timeout:.0f} s; raise timeout=")
                if _resident(self.process.pid) > memory:
                    self.close()
                    raise CompileError(
                        f"compile for {topology.name}: needs over {memory / 1e9:.0f} GB on this host; raise memory="
                    )
            answer = _receive(self.process.stdout)
        except (EOFError, BrokenPipeError) as error:
            text = self._log_tail()
            self.close()
            raise CompileError(f"compile for {topology.name}: the compiler's process ended: {text}") from error
        except BaseException:
            self.close()  # an answer that nobody read would be taken for the next one's
            raise
        if "error" not in answer:
            return answer
        message = f"compile for {topology.name}: {answer['error']}"
        exhausted = "RESOURCE_EXHAUSTED" in message or "Ran out of memory" in message or answer["kind"] == "OutOfMemoryError"
        raise (OutOfDeviceMemory if exhausted else CompileError)(message)

    def _log_tail(self) -> str:
        self.log.seek(0)
        return self.log.read()[-2000:].decode(errors="replace").strip() or "it wrote nothing"

    def close(self) -> None:
        """Ends the process and removes its files."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue  # what it did not read any more
        shutil.rmtree(self.folder, ignore_errors=True)
        for key in [key for key, worker in list(_workers.items()) if worker is self]:
            del _workers[key]


_workers: dict[str, Worker] = {}
_locks = {name: threading.Lock() for name in KINDS}  # a worker does one program at a time


def compile_text(topology: Topology, text: str, replicas: int = 1, timeout: float = 1800, memory: float = 16e9) -> dict[str, Any]:
    """Compiles StableHLO for a topology. `timeout` in seconds; `memory`: bytes of this host that the compiler may use."""
    with _locks[topology.kind.name]:
        worker = _workers.get(topology.kind.name)
        if worker is None or worker.process.poll() is not None:
            if worker is not None:
                worker.close()
            worker = _workers[topology.kind.name] = Worker(topology)
        return worker.compile(topology, text, replicas, timeout, memory)


@atexit.register
def close_all() -> None:
    """Ends all compiler processes of this process."""
    for worker in list(_workers.values()):
        worker.close()


def _resident(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def _send(stream: IO[bytes], message: Any) -> None:
    data = pickle.dumps(message)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    header = stream.read(8)
    if len(header) < 8:
        raise EOFError
    return pickle.loads(stream.read(struct.unpack("<Q", header)[0]))


def _serve(parent: int) -> None:
    # Answers go to a copy of stdout: libtpu writes to the descriptor itself.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    folder = os.environ["TMPDIR"]

    def orphaned() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=orphaned, daemon=True).start()
    import torch  # noqa: F401 - the extension links against it
    from torch_tpu import _C

    while True:
        try:
            path, topology, text, replicas = _receive(sys.stdin.buffer)
        except EOFError:  # the parent is gone, or closed us
            shutil.rmtree(folder, ignore_errors=True)
            return
        try:
            answer = _C.topology_compile(path, topology, text, replicas)
        except (RuntimeError, ValueError, NotImplementedError, MemoryError) as error:
            answer = {"error": str(error), "kind": type(error).__name__}
        _send(answers, answer)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
