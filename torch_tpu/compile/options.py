"""What `torch.compile(backend="tpu")` takes as `mode=` and `options=`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

# XLA compiles a whole program in one way: the modes that PyTorch names are accepted, and mean the same here.
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@dataclass(frozen=True)
class Options:
    """`options=` by name, with defaults. Names are those of the original package."""

    async_compile: bool = False  # programs are compiled when they are first called, in either case
    num_dynamic_buckets: int = 1
    bucket_size: int = 128
    serializable: bool = True
    debug_callback: Callable[[Any], None] | None = None
    custom_module_name: str | None = None
    name: str | None = None
    max_programs: int = 64  # per graph; past it a call runs its ops one by one


def parse(mode: str | None, options: Mapping[str, Any] | None) -> Options:
    """Checks names, types and ranges; raises ValueError or TypeError that names what there is."""
    if mode is not None and mode not in MODES:
        raise ValueError(f"torch.compile(backend='tpu'): expected mode to be one of {', '.join(MODES)}, got {mode!r}")
    given = dict(options or {})
    known = {field.name for field in fields(Options)}
    unknown = sorted(map(str, given.keys() - known))
    if unknown:
        raise ValueError(
            f"torch.compile(backend='tpu'): expected options among {', '.join(sorted(known))}, got {', '.join(unknown)}"
        )
    _check(given, "async_compile", bool)
    _check(given, "serializable", bool)
    _check(given, "num_dynamic_buckets", int, 1, 8)
    _check(given, "bucket_size", int, 1)
    _check(given, "max_programs", int, 1)
    _check(given, "name", str)
    _check(given, "custom_module_name", str)
    callback = given.get("debug_callback")
    if callback is not None and not callable(callback):
        raise TypeError(f"torch.compile(backend='tpu'): expected debug_callback to be callable, got {callback!r}")
    return Options(**given)


def _check(given: Mapping[str, Any], name: str, kind: type, low: int | None = None, high: int | None = None) -> None:
    value = given.get(name)
    if value is None:
        return
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(
            f"torch.compile(backend='tpu'): expected {name} to be of type {kind.__name__}, got {type(value).__name__}"
        )
    if isinstance(value, int) and low is not None and (value < low or (high is not None and value > high)):
        bounds = f"{low} to {high}" if high is not None else f"at least {low}"
        raise ValueError(f"torch.compile(backend='tpu'): expected {name} to be {bounds}, got {value}")
