"""The same work on `tpu` and on PyTorch's CPU, compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def host(value: Any) -> Any:
    """Tensors, and those in tuples, lists and dicts, as detached CPU tensors."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, (tuple, list)):
        return [host(v) for v in value]
    if isinstance(value, dict):
        return {k: host(v) for k, v in value.items()}
    return value


def same(got: Any, want: Any, atol: float = 0.0, rtol: float = 0.0) -> None:
    """Equal value, dtype and shape; NaN equals NaN; nested tuples, lists and dicts allowed. Exact unless told otherwise."""
    got, want = host(got), host(want)
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), (got, want)
        for g, w in zip(got, want, strict=True):
            same(g, w, atol, rtol)
    elif isinstance(want, dict):
        assert got.keys() == want.keys(), (got.keys(), want.keys())
        for key in want:
            same(got[key], want[key], atol, rtol)
    elif isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want, atol=atol, rtol=rtol, equal_nan=True)
    else:
        assert got == want, (got, want)


def both(fn: Callable[[str], Any], atol: float = 0.0, rtol: float = 0.0) -> Any:
    """Runs `fn("tpu")` and `fn("cpu")`, compares them, gives the former's result back on the host."""
    got = host(fn("tpu"))
    same(got, fn("cpu"), atol, rtol)
    return got


def on(device: str, values: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor made on the host and moved."""
    return torch.tensor(values, dtype=dtype).to(device)


def fresh(value: torch.Tensor, device: str) -> torch.Tensor:
    """A copy on `device` that nothing else sees: `.to("cpu")` of a host tensor is the tensor itself."""
    return value.detach().clone().to(device)
