"""`torch.compile(backend="tpu")`: AOTAutograd's graphs as one program each.

PyTorch finds the backend by its entry point (group `torch_dynamo_backends`) when it is first asked for; importing this module
registers it too, for a tree that is not installed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

__all__ = ["backend", "register"]


def backend(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
    """The dynamo backend: `torch.compile(backend="tpu", mode=..., options=...)`. See docs/compile.md."""
    from .backend import compile_graph

    return compile_graph(gm, example_inputs, **kwargs)


def register() -> None:
    """Makes "tpu" a name that `torch.compile` knows. Idempotent."""
    from torch._dynamo.backends import registry

    # Found by its entry point, it is registered by whoever asked for it, once this import is over.
    if "tpu" not in registry._BACKENDS:
        registry.register_backend(backend, name="tpu")


if "torch._dynamo" in sys.modules:
    register()
