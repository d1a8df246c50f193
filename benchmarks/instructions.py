"""Instructions per op, by callgrind: a figure that does not move with the machine's load.

Counts every thread of the process (PJRT's pool, which looks for work while it waits, too). Needs `valgrind`, its header and a C
compiler; without them there is no figure. `python instructions.py SIDE CASE` is the process that is counted.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rows import FUSED, Row

_TOGGLE = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void end(void) { CALLGRIND_STOP_INSTRUMENTATION; }
"""
_REPETITIONS = 10


def _count(folder: str, side: str, row: Row) -> float | None:
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
    # Valgrind does not know every instruction that CPU PyTorch would choose.
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "1"}
    command += [sys.executable, __file__, side, row.case, folder]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1200)
    found = re.search(r"Collected : (\d+)", done.stderr)
    return int(found[1]) / _REPETITIONS / row.per if found and done.returncode == 0 else None


def per_op(row: Row) -> str:
    """`ours / CPU eager` for a row of single ops; empty where nothing can count."""
    if shutil.which("valgrind") is None or shutil.which("cc") is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "toggle.c")
        source.write_text(_TOGGLE)
        built = subprocess.run(["cc", "-O1", "-shared", "-fPIC", str(source), "-o", f"{folder}/toggle.so"], capture_output=True)
        if built.returncode != 0:
            return ""
        counts = [_count(folder, side, row) for side in ("fused" if row.mode == FUSED else "strict", "cpu")]
    return " / ".join("-" if count is None else f"{count:,.0f}" for count in counts)


def _work(side: str, case: str, folder: str) -> None:
    import torch
    import torch_tpu  # noqa: F401 - registers the device
    from cases import CASES

    torch.set_num_threads(1)
    toggle = ctypes.CDLL(f"{folder}/toggle.so")
    if side == "fused":
        torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_AND_FUSE
    work = CASES[case]("cpu" if side == "cpu" else "tpu")
    for _ in range(2):
        work(1).cpu()
    toggle.begin()
    if side == "fused":
        for _ in range(_REPETITIONS):
            work(1).cpu()
    else:
        work(_REPETITIONS)
    toggle.end()


if __name__ == "__main__":
    _work(*sys.argv[1:])
