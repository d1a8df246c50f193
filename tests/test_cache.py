"""The compile cache between processes: shared, damaged, interrupted, unusable; and why something was compiled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from child import run as child

# Prints sums (to compare) and the counters.
WORK = """
    import torch, torch_tpu
    from torch_tpu import _C
    x = torch.arange(12.0, device="tpu").view(3, 4)
    values = [(x.sin() + 1).sum().item(), (x @ x.t()).sum().item(), x.softmax(1).var().item(), x.cumsum(0).prod().item()]
    stats = _C.cache_stats()
    print([f"{v:.4g}" for v in values], stats["compilations"], stats["disk_hits"], stats["disk_errors"])
"""


def outcome(text: str) -> tuple[str, int, int, int]:
    line = text.strip().splitlines()[-1]
    values, rest = line.split("]")
    compilations, hits, errors = (int(n) for n in rest.split())
    return values, compilations, hits, errors


def start(folder: Path) -> subprocess.Popen[str]:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TORCH_TPU_CACHE_DIR": str(folder)}
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(WORK)], env=variables, stdout=subprocess.PIPE, text=True)


def test_processes_that_start_together_compile_each_program_once(tmp_path: Path) -> None:
    processes = [start(tmp_path) for _ in range(2)]
    got = [outcome(p.communicate(timeout=300)[0]) for p in processes]
    assert all(p.returncode == 0 for p in processes)
    files = len(list(tmp_path.glob("*.executable")))
    assert got[0][0] == got[1][0]
    assert sum(compilations for _, compilations, _, _ in got) == files, "each entry was compiled by one of them"
    assert sum(hits for _, _, hits, _ in got) == files, "and loaded by the other"
    assert not list(tmp_path.glob(".writing-*"))


def test_killed_while_it_writes_and_a_flipped_byte_in_every_entry(tmp_path: Path) -> None:
    process = start(tmp_path)
    until = time.monotonic() + 120
    while not list(tmp_path.glob("*.executable")) and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for half in tmp_path.glob("*.executable"):  # as if the disk had lost the end of one
        half.write_bytes(half.read_bytes()[:-100])
        break
    (tmp_path / ".writing-1-0").write_bytes(b"half")
    values, compilations, _, errors = outcome(child(WORK, TORCH_TPU_CACHE_DIR=str(tmp_path)))
    assert compilations > 0 and errors == 0

    entries = sorted(tmp_path.glob("*.executable"))
    for index, path in enumerate(entries):
        content = bytearray(path.read_bytes())
        content[len(content) * (index % 7 + 1) // 8] ^= 0x10
        path.write_bytes(content)
    damaged = outcome(child(WORK, TORCH_TPU_CACHE_DIR=str(tmp_path)))
    assert damaged[:3] == (values, len(entries), 0), "all of them are misses, and no result changes"
    assert outcome(child(WORK, TORCH_TPU_CACHE_DIR=str(tmp_path)))[:3] == (values, 0, len(entries)), "now everything is there"


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    _, compilations, hits, errors = outcome(child(WORK, TORCH_TPU_CACHE_DIR=str(tmp_path / "file")))
    assert compilations > 0 and hits == 0 and errors == 0


# Root writes where nobody may, unless it gives up its capabilities.
MORTAL = """
    import ctypes
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    assert ctypes.CDLL(None, use_errno=True).capset(header, (ctypes.c_uint32 * 6)()) == 0
"""


def test_a_read_only_folder_is_read(tmp_path: Path) -> None:
    values, compilations, _, _ = outcome(child(WORK, TORCH_TPU_CACHE_DIR=str(tmp_path)))
    for path in tmp_path.iterdir():
        path.chmod(0o444)
    tmp_path.chmod(0o555)
    before = sorted(tmp_path.iterdir())
    try:
        again = child(MORTAL + WORK, TORCH_TPU_CACHE_DIR=str(tmp_path))
        assert outcome(again) == (values, 0, compilations, 0), "what is there is loaded"
        more = child(MORTAL + WORK.replace("sin()", "cos()"), TORCH_TPU_CACHE_DIR=str(tmp_path))
        assert outcome(more)[1] > 0, "what is not there is compiled, and not written"
        assert sorted(tmp_path.iterdir()) == before
    finally:
        tmp_path.chmod(0o755)


def test_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    values, compilations, _, errors = outcome(child(WORK, TORCH_TPU_CACHE_DIR=str(folder)))
    assert errors == 0 and len(list(folder.glob("*.executable"))) == compilations > 0
    assert outcome(child(WORK, TORCH_TPU_CACHE_DIR=str(folder)))[:3] == (values, 0, compilations)


def test_a_miss_is_explained_by_its_parts(tmp_path: Path) -> None:
    code = """
        import torch, torch_tpu
        torch.ones(3, device="tpu").add(2).cpu()
        print(torch_tpu.explain_cache())
        assert "nothing" in torch_tpu.explain_cache()
    """
    empty = child(code, TORCH_TPU_CACHE_DIR=str(tmp_path))
    assert "program" in empty and "options:" not in empty
    other = child(code, TORCH_TPU_CACHE_DIR=str(tmp_path), XLA_FLAGS="--xla_cpu_enable_fast_math=false")
    assert "  options\n" in other and "xla_cpu_enable_fast_math" in other and "program" not in other
