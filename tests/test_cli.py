"""The `torch-tpu` command."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import torch
from torch_tpu import cli


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "torch_tpu.cli", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=120,
    )


def test_doctor_says_what_there_is() -> None:
    begin = time.perf_counter()
    done = run("doctor")
    seconds = time.perf_counter() - begin
    text = done.stdout
    assert torch.__version__ in text
    assert "plugin" in text and "PJRT API" in text
    assert "tpu:0" in text
    assert "compile cache" in text
    assert "a small program" in text and "right" in text
    assert seconds < 60


def test_doctor_names_a_plugin_that_is_not_there() -> None:
    done = run("doctor", TORCH_TPU_PLUGIN="no-such-plugin")
    assert done.returncode == 1
    assert "wrong:" in done.stdout and "no-such-plugin" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_doctor_survives_a_plugin_that_is_no_plugin(tmp_path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"not a shared object")
    done = run("doctor", TORCH_TPU_PLUGIN=str(broken))
    assert done.returncode == 1
    assert "wrong:" in done.stdout and "broken.so" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_doctor_reports_a_device_that_does_not_answer(monkeypatch) -> None:
    monkeypatch.setattr(cli, "_PROBE", "import time; time.sleep(60)")
    report = cli.examine(timeout=0.5)
    assert any("did not answer" in problem for problem in report.problems)


def test_cache_is_counted_and_cleared(tmp_path) -> None:
    folder = str(tmp_path / "cache")
    code = "import torch, torch_tpu; (torch.ones(3, device='tpu') + 1).cpu()"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"TORCH_TPU_CACHE_DIR": folder}, timeout=120)
    stats = run("cache", "stats", TORCH_TPU_CACHE_DIR=folder)
    assert stats.returncode == 0 and folder in stats.stdout
    assert " 0 files" not in stats.stdout
    cleared = run("cache", "clear", TORCH_TPU_CACHE_DIR=folder)
    assert cleared.returncode == 0 and "removed" in cleared.stdout
    assert " 0 files" in run("cache", "stats", TORCH_TPU_CACHE_DIR=folder).stdout


def test_unknown_command_is_refused() -> None:
    done = run("paint")
    assert done.returncode == 2 and "invalid choice" in done.stderr
