"""The examples do what they say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import digits
import torch_tpu

pytestmark = pytest.mark.timeout(900)


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
