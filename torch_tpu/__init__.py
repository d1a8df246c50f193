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


def reset_fallback_counts() -> None:
    """Sets the counts of `fallback_counts` to zero. Warnings that were already given are not given again."""
    from . import _C

    _C.reset_fallback_counts()
