"""`safetensors` opens files on `tpu`.

It parses device names itself, against a list of its own without `tpu`, but takes a number as an index of the
accelerator: this gives it the number where a caller, such as PEFT, says "tpu". Nothing else changes.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

import torch

from .after_import import after_import


def _index(device: Any) -> Any:
    named = isinstance(device, str) and (device == "tpu" or device.startswith("tpu:"))
    if not named and not (isinstance(device, torch.device) and device.type == "tpu"):
        return device
    index = torch.device(device).index
    return torch.tpu.current_device() if index is None else index


def _wrap(module: ModuleType) -> None:
    opens = module.safe_open

    @functools.wraps(opens, updated=())
    def safe_open(filename: Any, framework: str, device: Any = "cpu", **options: Any) -> Any:
        return opens(filename, framework, _index(device), **options)

    module.safe_open = safe_open
    loaded = sys.modules.get("safetensors.torch")
    if loaded is not None:  # it was there first, with the name bound
        loaded.safe_open = safe_open


def install() -> None:
    """Waits for the package to be imported."""
    after_import("safetensors", _wrap)
