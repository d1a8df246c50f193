"""The examples do what they say."""

from __future__ import annotations

import importlib
import json
import math
import sys
from pathlib import Path

import pytest
import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import digits
import torch_tpu

transformers.logging.disable_progress_bar()
pytestmark = pytest.mark.timeout(900)

# A few steps of each, as small as it gets.
SMALL = {
    "mingpt": ["--width", "32", "--layers", "1", "--letters", "5"],
    "llama": ["--width", "64", "--layers", "1", "--words", "300", "--pieces", "3"],
    "qwen3": ["--width", "64", "--layers", "1", "--words", "300", "--pieces", "3"],
    "vit": ["--width", "16", "--layers", "1", "--batch", "16"],
    "diffusion": ["--width", "8", "--batch", "8"],
    "dlrm": ["--batch", "64"],
    "lora": ["--width", "64", "--layers", "1", "--base-steps", "2"],
}
FLAGS = {name: [] for name in SMALL} | {"vit": ["--fused"], "dlrm": ["--compile"]}


@pytest.mark.parametrize("name", list(SMALL))
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "diffusion":
        monkeypatch.setattr(importlib.import_module("diffusion"), "STEPS", 5)
    torch_tpu.reset_fallback_counts()
    before = torch.tpu.eager_mode
    try:
        figures = importlib.import_module(name).main(
            ["--device", "tpu", "--steps", "3", "--compare", "3", "--out", str(tmp_path), *SMALL[name], *FLAGS[name]]
        )
    finally:
        torch.tpu.eager_mode = before
    assert torch_tpu.fallback_counts() == {}
    assert figures["largest_relative_difference"] < 1e-3 and math.isfinite(figures["last_loss"])
    state = torch.load(tmp_path / f"{name}.pt", map_location="cpu", weights_only=True)
    assert state and all(bool(t.isfinite().all()) for t in state.values() if t.is_floating_point())
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert len(json.loads((tmp_path / f"{name}.json").read_text())["losses"]) == 3


def test_examples_run_on_the_cpu_too(tmp_path: Path) -> None:
    figures = importlib.import_module("mingpt").main(["--device", "cpu", "--steps", "2", "--out", str(tmp_path), *SMALL["mingpt"]])
    assert figures["device"] == "cpu" and (tmp_path / "mingpt.txt").read_text().startswith("The class statement ")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float, dict[str, int]]:
    out = tmp_path_factory.mktemp("digits")
    torch_tpu.reset_fallback_counts()
    accuracy = digits.main(["--device", "tpu", "--epochs", "6", "--out", str(out)])
    return out, accuracy, torch_tpu.fallback_counts()


def test_digits_learns(trained) -> None:
    assert trained[1] >= 0.97


def test_digits_runs_on_the_device_alone(trained) -> None:
    assert trained[2] == {}


def test_digits_checkpoint_loads_on_cpu(trained) -> None:
    state = torch.load(trained[0] / "digits.pt", map_location="cpu", weights_only=True)
    assert all(t.device.type == "cpu" for t in state.values())
    digits.DigitNet().load_state_dict(state)


def test_digits_draws(trained) -> None:
    assert (trained[0] / "digits.png").read_bytes().startswith(b"\x89PNG")


def test_digits_follows_the_cpu(trained, tmp_path) -> None:
    digits.main(["--device", "cpu", "--epochs", "6", "--out", str(tmp_path)])
    tpu = torch.tensor(json.loads((trained[0] / "losses.json").read_text())["losses"][:50])
    cpu = torch.tensor(json.loads((tmp_path / "losses.json").read_text())["losses"][:50])
    assert len(cpu) == 50
    torch.testing.assert_close(tpu, cpu, rtol=1e-3, atol=0)
