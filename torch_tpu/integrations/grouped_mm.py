"""Fake tensors of `tpu` have grouped products in every floating dtype.

PyTorch's meta kernel of `_grouped_mm` states another device's limits (bfloat16, rows of 16 bytes), and a graph is
traced with it although the op runs here without them. Fake tensors have a registry of implementations that is asked
first.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch

from .after_import import after_import


def _shape(a: torch.Tensor, b: torch.Tensor, offs: torch.Tensor | None) -> tuple[int, ...]:
    """[rows, k] x [groups, k, n], [groups, m, k] x [k, columns], [m, rows] x [rows, n], [groups, m, k] x [groups, k,
    n]."""
    if a.dim() == 2 and b.dim() == 2 and offs is not None:
        return offs.size(0), a.size(0), b.size(1)
    if a.dim() == 3 and b.dim() == 3:
        return a.size(0), a.size(1), b.size(2)
    return a.size(-2), b.size(-1)


def _register(module: ModuleType) -> None:
    @module.register_op_impl(torch.ops.aten._grouped_mm.default)
    def grouped_mm(
        fake_mode: Any,
        func: Any,
        a: torch.Tensor,
        b: torch.Tensor,
        offs: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
        out_dtype: torch.dtype | None = None,
    ) -> Any:
        if a.device.type != "tpu":
            return NotImplemented
        if a.dim() not in (2, 3) or b.dim() not in (2, 3):
            raise RuntimeError(f"_grouped_mm: expected operands of 2 or 3 dims, got {a.dim()} and {b.dim()}")
        torch._check(a.size(-1) == b.size(-2), lambda: "contraction dimension of mat_a and mat_b must match")
        with fake_mode:
            return torch.empty(_shape(a, b, offs), dtype=out_dtype or a.dtype, device=a.device)


def install() -> None:
    """Waits for the module to be imported."""
    after_import("torch._subclasses.fake_impls", _register)
