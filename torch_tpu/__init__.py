"""PyTorch's `tpu` device over the PJRT C API.

`import torch` loads this package by itself (entry point group `torch.backends`); importing it by hand does the same and is
what a process with `TORCH_DEVICE_BACKEND_AUTOLOAD=0` does.

Raises:
    ImportError: the installed torch is not the release this build was compiled for, or the extension cannot be loaded.
        While `import torch` itself runs, the same text is a warning instead, so that torch stays usable without `tpu`.
"""

from __future__ import annotations

import sys as _sys
from pathlib import Path as _Path

if not any(any(_Path(folder).glob("_C.*.so")) for folder in __path__):
    # A source checkout first on sys.path (a shell in the clone) hides the installed package, and only that one has the extension.
    __path__.extend(str(found.parent) for entry in _sys.path for found in _Path(entry, "torch_tpu").glob("_C.*.so"))

import torch as _torch

from . import _loader as _loader
from ._version import __version__ as __version__

_loader.load()
if _loader.problem is not None and not getattr(_torch.__spec__, "_initializing", False):
    raise ImportError(_loader.problem)


def fallback_counts() -> dict[str, int]:
    """How often each op (by schema name, `aten::median`) ran on the host, because it has no lowering, since the last reset."""
    from . import _C

    return dict(_C.fallback_counts())


def host_kernel_counts() -> dict[str, int]:
    """How often each host kernel (`convolution`, `svd`, ...) ran inside a program since the last reset.

    A program of a CPU plugin may call PyTorch's own CPU kernels where XLA's code is slow or has no form; see
    `set_host_kernels`. On a TPU the table is always empty. Counts are of finished and running work: synchronize first.
    """
    from . import _C

    return dict(_C.host_kernel_counts())


def reset_host_kernel_counts() -> None:
    """Sets the counts of `host_kernel_counts` to zero."""
    from . import _C

    _C.reset_host_kernel_counts()


def set_host_kernels(enabled: bool) -> None:
    """Whether programs made from now on may call host kernels. `TORCH_TPU_HOST_KERNELS=0` is the same from the start.

    Programs of the two kinds have different keys, so switching back finds what was compiled before.
    """
    from . import _C

    _C.set_host_kernels(enabled)


def explain(device: int = 0) -> str:
    """What fused mode (`EagerMode.DEFER_AND_FUSE`) ran on tpu:`device` since the last call, as a table.

    A line stands for the flushes of one kind: why they happened, their number of ops, inputs, outputs and donated inputs, how
    often, how many of them had to be lowered and compiled, the time on the host in ms (the programs run behind it), and the
    device memory that the program takes in MiB: inputs, outputs and temporaries.
    """
    from . import _C

    lines: dict[tuple[str, int, int, int, int, int], list[float]] = {}
    for reason, ops, inputs, outputs, donated, compiled, milliseconds, memory in _C.take_flush_records(device):
        line = lines.setdefault((reason, ops, inputs, outputs, donated, memory), [0, 0, 0.0])
        line[0] += 1
        line[1] += compiled
        line[2] += milliseconds
    head = f" {'why':20}{'ops':>7}{'inputs':>9}{'outputs':>9}{'donated':>9}{'times':>7}{'compiled':>10}{'ms':>10}{'MiB':>9}"
    rows = [
        f" {reason:20}{ops:>7}{inputs:>9}{outputs:>9}{donated:>9}{times:>7.0f}{compiled:>10.0f}{ms:>10.1f}{memory / 2**20:>9.1f}"
        for (reason, ops, inputs, outputs, donated, memory), (times, compiled, ms) in lines.items()
    ]
    return "\n".join([head, *rows]) if rows else "fused mode ran nothing since the last call"


def explain_cache() -> str:
    """Why programs were compiled since the last call, as a table: what differs from the most similar entry of the disk cache.

    A key has named parts: the program and its outputs, compile options, plugin, platform, device kind and the host's CPU. A line
    names the parts in which the program's key differs from its nearest relative's, with both values.
    """
    from . import _C

    rows = []
    for entry, seconds, compared, differences in _C.take_cache_misses():
        why = ", ".join(part for part, _, _ in differences) if compared else "the cache was empty"
        rows.append(f" {entry[:16]:18}{seconds * 1e3:>9.1f}  {why}")
        if [part for part, _, _ in differences] != ["program"]:
            rows += [f"   {part}: {here!r}, there {there!r}" for part, here, there in differences if part != "program"]
    head = f" {'entry':18}{'ms':>9}  what no entry on disk shares"
    return "\n".join([head, *rows]) if rows else "nothing was compiled since the last call"


def reset_fallback_counts() -> None:
    """Sets the counts of `fallback_counts` to zero. Warnings that were already given are not given again."""
    from . import _C

    _C.reset_fallback_counts()
