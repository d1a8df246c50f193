"""`torch.tpu`: devices, streams, random numbers, memory and modes of the `tpu` device."""

from __future__ import annotations

import sys
from types import ModuleType

import torch

from . import _device, _utils, memory, modes, random, streams
from ._device import (
    DeviceProperties,
    _get_autocast_dtype,
    _is_in_bad_fork,
    _lazy_init,
    _shutdown_runtime,
    current_device,
    device,
    device_count,
    device_of,
    get_amp_supported_dtype,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    synchronize,
)
from .cache import _clear_cache, _get_cache_hits, _get_cache_misses, _get_cache_requests, _get_cache_stats
from .memory import (
    _hbm_usage_summary,
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from .modes import EagerMode, Precision, precision, set_eager_mode
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream

__all__ = [
    "DeviceProperties",
    "EagerMode",
    "Event",
    "Precision",
    "Stream",
    "StreamContext",
    "_clear_cache",
    "_device",
    "_get_autocast_dtype",
    "_get_cache_hits",
    "_get_cache_misses",
    "_get_cache_requests",
    "_get_cache_stats",
    "_hbm_usage_summary",
    "_is_in_bad_fork",
    "_lazy_init",
    "_shutdown_runtime",
    "_utils",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "modes",
    "precision",
    "random",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_eager_mode",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]


class _TpuModule(ModuleType):
    @property
    def eager_mode(self) -> EagerMode:
        """The process's mode; assigning an EagerMode sets it."""
        return modes.get_eager_mode()

    @eager_mode.setter
    def eager_mode(self, mode: EagerMode) -> None:
        modes.set_global_eager_mode(mode)

    @property
    def _initialized(self) -> bool:
        # Read by torch.utils.checkpoint to decide whether there is an RNG state to replay: there is one before any client.
        return device_count() > 0

    @property
    def default_generators(self) -> tuple[torch.Generator, ...]:
        """One generator a device."""
        return random.default_generators()


sys.modules[__name__].__class__ = _TpuModule
