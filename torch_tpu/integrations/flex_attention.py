"""`flex_attention` takes `tpu` tensors.

PyTorch checks the device type of its inputs against a list in the middle of a function, with no registry to add to: this
wraps the check, for `tpu` alone, when the module is imported. The op itself runs and differentiates through PyTorch's dense
implementation.
"""

from __future__ import annotations

from types import ModuleType

import torch

from .after_import import after_import


def _wrap(module: ModuleType) -> None:
    check = module._validate_device

    def _validate_device(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        if query.device.type != "tpu":
            check(query, key, value)

    module._validate_device = _validate_device


def install() -> None:
    """Waits for the module to be imported."""
    after_import("torch.nn.attention.flex_attention", _wrap)
