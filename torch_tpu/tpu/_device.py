"""Devices: count, choice, properties, waiting."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch

from .. import _C
from ._utils import _get_device_index

no_plugin: str | None = None  # set by the loader: what to do when no plugin was found


def is_available() -> bool:
    """Whether there is a device to use: a TPU, or XLA's CPU standing in for one. Starts nothing."""
    return device_count() > 0


def device_count() -> int:
    """Number of devices of this process; 0 when no plugin is installed. On a CPU plugin this starts nothing."""
    return 0 if no_plugin is not None else _C.device_count()


def is_initialized() -> bool:
    """Whether the client runs."""
    return _C.is_initialized()


def init() -> None:
    """Starts the client now instead of at first use.

    Raises RuntimeError: no plugin (with what to install), a plugin that does not start, or a forked child of a process that
    had a client.
    """
    if no_plugin is not None:
        raise RuntimeError(no_plugin)
    _C.init()


def _lazy_init() -> None:
    init()


def _is_in_bad_fork() -> bool:
    return _C.is_in_bad_fork()


def current_device() -> int:
    """Index of the current device of this thread."""
    return torch._C._accelerator_getDeviceIndex()


def set_device(device: Any) -> None:
    """Makes `device` (index, string, torch.device; negative: no-op) this thread's current device."""
    index = _get_device_index(device)
    if index >= 0:
        _check_index(index)
        torch._C._accelerator_setDeviceIndex(index)


def _check_index(index: int) -> None:
    count = device_count()
    if index >= count:
        raise RuntimeError(f"tpu: invalid device ordinal, expected 0 to {count - 1}, got {index}")


def synchronize(device: Any = None) -> None:
    """Waits until all work on `device` (None: the current one) is done.

    Raises the error of a program that failed since the last wait.
    """
    if not is_initialized() and not _is_in_bad_fork():
        return
    torch._C._accelerator_synchronizeDevice(_get_device_index(device, optional=True))


class device:
    """Context manager: `device` is the current one inside; None or a negative index changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else _get_device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> device:
        if self.idx >= 0:
            _check_index(self.idx)
            self.prev_idx = torch._C._accelerator_exchangeDevice(self.idx)
        return self

    def __exit__(self, *exc: object) -> None:
        if self.idx >= 0:
            torch._C._accelerator_maybeExchangeDevice(self.prev_idx)


class device_of(device):
    """Context manager: the device of a tensor or storage is the current one inside; no-op for what is not on `tpu`."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == "tpu" else None)


@dataclass(frozen=True)
class DeviceProperties:
    """`total_memory` in bytes: the device's memory, or the host's on the CPU plugin."""

    name: str
    total_memory: int
    multi_processor_count: int
    platform: str
    kind: str
    index: int


# PJRT's device kinds -> the generation's usual name.
_KINDS = {
    "TPU v2": "TPU v2",
    "TPU v3": "TPU v3",
    "TPU v4": "TPU v4",
    "TPU v4 lite": "TPU v4i",
    "TPU v5 lite": "TPU v5e",
    "TPU v5e": "TPU v5e",
    "TPU v5": "TPU v5p",
    "TPU v5p": "TPU v5p",
    "TPU v6 lite": "TPU v6e",
    "TPU v6e": "TPU v6e",
    "TPU7x": "TPU v7x",
    "TPU v7x": "TPU v7x",
}


def _name(platform: str, kind: str) -> str:
    if platform.lower() == "tpu":
        return _KINDS.get(kind, kind if kind.startswith("TPU") else f"TPU {kind}")
    return f"XLA {platform.upper()} (no TPU)"


def get_device_name(device: Any = None) -> str:
    """`TPU v6e` on a TPU; on the CPU plugin it says that it is XLA's CPU."""
    init()
    index = _get_device_index(device, optional=True)
    _check_index(index)
    return _name(_C.platform_name(), _C.device_kind(index))


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Name, memory and kind of a device."""
    init()
    index = _get_device_index(device, optional=True)
    _check_index(index)
    total = torch.accelerator.memory.get_memory_info(index)[1]
    if total <= 0:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return DeviceProperties(get_device_name(index), total, 1, _C.platform_name(), _C.device_kind(index), index)


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """What `torch.accelerator.get_device_capability` says: the dtypes a device takes."""
    return torch.accelerator.get_device_capability(_get_device_index(device, optional=True))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True: bfloat16 is the TPU's own type, and XLA's CPU has it too."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that `torch.autocast("tpu")` may cast to."""
    return [torch.bfloat16, torch.float16, torch.float32]


def _get_autocast_dtype() -> torch.dtype:
    return torch.get_autocast_dtype("tpu")


def _shutdown_runtime() -> None:
    _C.shutdown()
