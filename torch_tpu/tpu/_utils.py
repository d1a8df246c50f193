"""Device arguments: what `torch.serialization` and others look for under `torch.tpu._utils`."""

from __future__ import annotations

from typing import Any

import torch


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index that `device` (int, string, torch.device, or None when `optional`) means; -1 for a CPU when `allow_cpu`.

    Raises ValueError for a device of another type, or for None when it is not optional.
    """
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type == "cpu" and allow_cpu:
            return -1
        if device.type != "tpu":
            raise ValueError(f"device: expected a tpu device, got {device}")
        device = device.index
        optional = True
    if device is None:
        if not optional:
            raise ValueError("device: expected a tpu device or an index, got None")
        return torch._C._accelerator_getDeviceIndex()
    if not isinstance(device, int):
        raise TypeError(f"device: expected an int, a string or a torch.device, got {type(device).__name__}")
    return device
