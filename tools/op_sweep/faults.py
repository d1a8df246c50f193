"""Faults put into results on purpose, so that a test can see the sweep find them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map


def _shift(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if x.dtype != torch.bool else ~x


def _other_dtype(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float64 if x.dtype != torch.float64 else torch.float32)


def _other_strides(x: torch.Tensor) -> torch.Tensor:
    return x if x.dim() < 2 else x.transpose(0, -1).contiguous().transpose(0, -1) if x.is_contiguous() else x.contiguous()


def _other_shape(x: torch.Tensor) -> torch.Tensor:
    return x.unsqueeze(0)


FAULTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "value": _shift,
    "dtype": _other_dtype,
    "stride": _other_strides,
    "shape": _other_shape,
}
NAMES = (*FAULTS, "gradient")


def plant(fault: str | None, results: Any) -> Any:
    """Results with the fault in each tensor."""
    if fault not in FAULTS:
        return results
    change = FAULTS[fault]
    return tree_map(lambda x: change(x) if isinstance(x, torch.Tensor) else x, results)


def plant_gradient(fault: str | None, gradients: list[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """ "gradient" loses the first one."""
    if fault != "gradient":
        return gradients
    kept = list(gradients)
    for i, gradient in enumerate(kept):
        if gradient is not None:
            kept[i] = None
            break
    return kept
