"""`torch.autocast("tpu")` means bfloat16 in every thread.

PyTorch keeps the autocast dtype per thread and starts each thread with float16 for this device type; no hook is called when a
thread starts, or when `torch.autocast` reads the dtype. So the function by which it reads is wrapped: in a thread that has not
met the device yet, it sets the default first.
"""

from __future__ import annotations

import functools

import torch


def install() -> None:
    """Wraps `torch.get_autocast_dtype`; dynamo takes its result as the constant that it is."""
    from torch_tpu import _C

    original = torch.get_autocast_dtype

    @functools.wraps(original)
    def get_autocast_dtype(device_type: str) -> torch.dtype:
        if device_type == "tpu":
            _C.ensure_autocast_default()
        return original(device_type)

    get_autocast_dtype._dynamo_marked_constant = True
    torch.get_autocast_dtype = get_autocast_dtype
