"""Accelerate runs on the CPU when it is asked to.

The variable ACCELERATE_TORCH_DEVICE, by which the loader tells it of `tpu`, wins in Accelerate (1.15) even over
`Accelerator(cpu=True)` and `TrainingArguments(use_cpu=True)`: this lets those win.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import torch

from .after_import import after_import


def _wrap(module: ModuleType) -> None:
    state = module.PartialState
    start = state.__init__

    @functools.wraps(start)
    def __init__(self: Any, cpu: bool = False, **options: Any) -> None:
        first = not state._shared_state  # one state a process: what it began with stands
        start(self, cpu, **options)
        if first and cpu and self.device is not None and self.device.type == "tpu":
            self.device = torch.device("cpu")

    state.__init__ = __init__


def install() -> None:
    """Waits for the module to be imported."""
    after_import("accelerate.state", _wrap)
