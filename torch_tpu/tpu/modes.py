"""How ops run (`EagerMode`) and how exact float32 matrix products are (`Precision`)."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager

from .. import _C


class EagerMode(enum.Enum):
    """DEFER_NEVER: each op is launched at once (strict). ..._AND_LAUNCH_BLOCKING: and waited for, with checks (debug).

    DEFER_AND_FUSE: ops are recorded and compiled together (fused).
    """

    DEFER_AND_FUSE = 2
    DEFER_NEVER = 0
    DEFER_NEVER_AND_LAUNCH_BLOCKING = 1


class Precision(enum.IntEnum):
    """Passes of a float32 matrix product on a TPU: one in bfloat16, three, or six (full float32)."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def get_eager_mode() -> EagerMode:
    """The mode in force."""
    return EagerMode(_C.eager_mode())


def set_global_eager_mode(mode: EagerMode) -> None:
    """Sets the mode for the whole process.

    Raises TypeError for what is not an EagerMode.
    """
    _C.set_eager_mode(_checked(mode))


def _checked(mode: EagerMode) -> int:
    if not isinstance(mode, EagerMode):
        raise TypeError(f"eager_mode: expected a torch.tpu.EagerMode, got {mode!r}")
    return mode.value


@contextmanager
def set_eager_mode(mode: EagerMode) -> Iterator[None]:
    """Context manager: `mode` inside, for the ops that this thread calls; raises as `set_global_eager_mode` does."""
    before = _C.thread_eager_mode()
    _C.set_thread_eager_mode(_checked(mode))
    try:
        yield
    finally:
        _C.set_thread_eager_mode(before)


@contextmanager
def precision(mode: Precision | str) -> Iterator[None]:
    """Context manager: float32 matrix products and convolutions run with `mode` (a Precision or its name).

    Outside, `torch.set_float32_matmul_precision` decides ("highest" -> HIGHEST, "high" -> HIGH, "medium" -> DEFAULT).
    """
    if isinstance(mode, str):
        if mode.upper() not in Precision.__members__:
            raise ValueError(f"precision: expected one of {', '.join(Precision.__members__)}, got {mode!r}")
        mode = Precision[mode.upper()]
    if not isinstance(mode, Precision):
        raise TypeError(f"precision: expected a torch.tpu.Precision, got {mode!r}")
    before = _C.precision()
    _C.set_precision(int(mode))
    try:
        yield
    finally:
        _C.set_precision(before)
