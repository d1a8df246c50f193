"""Waiting for device work."""

from __future__ import annotations

from collections.abc import Iterable

import torch


def synchronize(tensors: torch.Tensor | Iterable[torch.Tensor] | None = None, wait: bool = True) -> None:
    """Waits until the work on the devices of `tensors` (all devices when None) is done. `wait` is accepted and always true.

    Raises the error of a program that failed since the last wait.
    """
    if tensors is None:
        devices = set(range(torch.tpu.device_count()))
    else:
        given = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        devices = {t.device.index for t in given if t.device.type == "tpu"}
    for index in sorted(devices):
        torch.tpu.synchronize(index)
