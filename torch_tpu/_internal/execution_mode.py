"""`eager_mode`, `set_eager_mode` and the switch of the host fallback, as attributes of this module."""

from __future__ import annotations

import sys
from types import ModuleType

from .. import _C
from ..tpu.modes import EagerMode, get_eager_mode, set_eager_mode, set_global_eager_mode

__all__ = ["EagerMode", "set_eager_mode"]


_WARN, _ERROR = 0, 1


class _ExecutionMode(ModuleType):
    @property
    def eager_mode(self) -> EagerMode:
        """The mode in force; assigning sets it for the whole process."""
        return get_eager_mode()

    @eager_mode.setter
    def eager_mode(self, mode: EagerMode) -> None:
        set_global_eager_mode(mode)

    @property
    def enable_cpu_fallback(self) -> bool:
        """Whether an op without a lowering runs on the host (True, the default) or raises."""
        return _C.fallback_policy() != _ERROR

    @enable_cpu_fallback.setter
    def enable_cpu_fallback(self, value: bool) -> None:
        _C.set_fallback_policy(_WARN if value else _ERROR)


sys.modules[__name__].__class__ = _ExecutionMode
