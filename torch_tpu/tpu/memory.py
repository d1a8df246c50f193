"""Device memory, in bytes, over `torch.accelerator.memory`.

`allocated` is what live storages hold by their size; `reserved` is what the device itself counts where its plugin does.
"""

from __future__ import annotations

from typing import Any

import torch

from ._utils import _get_device_index


def _index(device: Any) -> int:
    return _get_device_index(device, optional=True)


def memory_stats(device: Any = None) -> dict[str, Any]:
    """All statistics by name (`allocated_bytes.all.current`, `num_ooms`, ...); those that are not kept are 0 or absent."""
    return dict(torch.accelerator.memory.memory_stats(_index(device)))


def memory_allocated(device: Any = None) -> int:
    """Bytes of live tensors' storages."""
    return torch.accelerator.memory.memory_allocated(_index(device))


def max_memory_allocated(device: Any = None) -> int:
    """Highest `memory_allocated` since the start or the last reset."""
    return torch.accelerator.memory.max_memory_allocated(_index(device))


def memory_reserved(device: Any = None) -> int:
    """Bytes taken from the device."""
    return torch.accelerator.memory.memory_reserved(_index(device))


def max_memory_reserved(device: Any = None) -> int:
    """Highest `memory_reserved` since the start or the last reset."""
    return torch.accelerator.memory.max_memory_reserved(_index(device))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Peaks start again from the present values."""
    torch.accelerator.memory.reset_peak_memory_stats(_index(device))


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Running totals start again from 0."""
    torch.accelerator.memory.reset_accumulated_memory_stats(_index(device))


def empty_cache() -> None:
    """Gives unused memory back to the device. The plugin keeps no cache that PyTorch could empty, so little happens."""
    torch.accelerator.memory.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of the device; of the host on the CPU plugin."""
    return torch.accelerator.memory.get_memory_info(_index(device))


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The statistics as a small table; `abbreviated` leaves out the running totals."""
    stats = memory_stats(device)
    columns = ["current", "peak"] + ([] if abbreviated else ["allocated", "freed"])
    lines = [f"tpu:{_index(device)} memory, bytes", f"{'':<20}" + "".join(f"{c:>16}" for c in columns)]
    for kind in ("allocated_bytes", "reserved_bytes", "active_bytes"):
        row = [stats.get(f"{kind}.all.{column}", 0) for column in columns]
        lines.append(f"{kind:<20}" + "".join(f"{value:>16,}" for value in row))
    return "\n".join(lines)


def _hbm_usage_summary() -> str:
    return memory_summary(abbreviated=True)
