"""Random numbers: one counter-based generator a device, with a state of 16 bytes (seed and offset, both uint64).

Nothing here starts the client.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from .. import _C
from ._device import current_device, device_count
from ._utils import _get_device_index


def _generator(device: Any) -> torch.Generator:
    index = _get_device_index(device, optional=True)
    if not 0 <= index < max(device_count(), 1):
        raise RuntimeError(f"tpu: invalid device ordinal, expected 0 to {device_count() - 1}, got {index}")
    return _C.default_generator(index)


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator. No-op without a device."""
    if device_count():
        _generator(current_device()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds all devices' generators. No-op without a device; `torch.manual_seed` calls it."""
    for index in range(device_count()):
        _generator(index).manual_seed(int(seed))


def seed() -> None:
    """Seeds the current device's generator with a random number. No-op without a device."""
    if device_count():
        _generator(current_device()).seed()


def seed_all() -> None:
    """Seeds all devices' generators with one random number. No-op without a device."""
    count = device_count()
    if count:
        number = _generator(0).seed()
        for index in range(1, count):
            _generator(index).manual_seed(number)


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _generator(None).initial_seed()


def get_rng_state(device: Any = "tpu") -> torch.Tensor:
    """The state of a device's generator: uint8[16] on the CPU."""
    return _generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices' generators."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: torch.Tensor, device: Any = "tpu") -> None:
    """Sets the state of a device's generator (uint8[16], as `get_rng_state` gives it)."""
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all devices' generators."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def default_generators() -> tuple[torch.Generator, ...]:
    """One generator a device."""
    return tuple(_generator(index) for index in range(device_count()))
