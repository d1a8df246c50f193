"""Inductor on `tpu` tensors fails with advice.

PyTorch registers its Pallas code generator for device type "tpu", which needs JAX and a kernel service that is not there, and
fails with the first import it misses. Inductor's own registry of code generators is asked first: ours is put there, through
its public function, when Inductor is first imported.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .after_import import after_import

ADVICE = (
    'torch.compile: inductor has no code generator for the tpu device. Use torch.compile(..., backend="tpu"), which compiles '
    "the same graphs with XLA; docs/compile.md says what it takes."
)


def _no_scheduling(scheduling: Any) -> Any:
    raise RuntimeError(ADVICE)


class _NoWrapper:
    supports_caching = False  # Inductor asks before it makes one

    @staticmethod
    def create(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(ADVICE)


def _register(common: ModuleType) -> None:
    common.register_backend_for_device("tpu", _no_scheduling, _NoWrapper)


def install() -> None:
    """Waits for Inductor to be imported."""
    after_import("torch._inductor.codegen.common", _register)
