"""Is a result what CPU PyTorch gave: dtype, shape, strides, values."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils._pytree import tree_flatten

# (rtol, atol). float32: sums in another order.
BASE: dict[torch.dtype, tuple[float, float]] = {
    torch.float32: (1e-4, 2e-5),
    torch.complex64: (1e-4, 2e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
    torch.float16: (2e-3, 1e-3),
    torch.bfloat16: (1.6e-2, 1e-2),
}


@dataclasses.dataclass(frozen=True)
class Tolerance:
    rtol: float = 0.0
    atol: float = 0.0

    def of(self, dtype: torch.dtype) -> tuple[float, float]:
        rtol, atol = BASE.get(dtype, (0.0, 0.0))
        if not (dtype.is_floating_point or dtype.is_complex):
            return 0.0, 0.0
        return max(rtol, self.rtol), max(atol, self.atol)


def tolerance_of(op: OpInfo, dtype: torch.dtype) -> Tolerance:
    """The loosest of what the entry itself asks for in PyTorch's own tests."""
    rtol = atol = 0.0
    for decorator in op.decorators:
        for inner in getattr(decorator, "decorators", [decorator]):
            table = getattr(inner, "d", None)
            if not isinstance(table, dict) or dtype not in table:
                continue
            found = table[dtype]
            if isinstance(found, float | int):
                atol = max(atol, float(found))
            else:
                rtol, atol = max(rtol, float(found.rtol)), max(atol, float(found.atol))
    return Tolerance(rtol, atol)


def strides_that_matter(x: torch.Tensor) -> tuple[int, ...]:
    """Strides of dims of size one, or of tensors without elements, say nothing."""
    if x.numel() == 0:
        return ()
    return tuple(stride for size, stride in zip(x.shape, x.stride(), strict=True) if size != 1)


def difference_of_tensors(
    got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance, device: str, *, values: bool, strides: bool
) -> str:
    """ "" when they agree."""
    if got.device.type != device and want.device.type == "cpu" and device != "cpu":
        return f"device: expected {device}, got {got.device.type}"
    if got.dtype != want.dtype:
        return f"dtype: expected {want.dtype}, got {got.dtype}"
    if got.shape != want.shape:
        return f"shape: expected {tuple(want.shape)}, got {tuple(got.shape)}"
    if got.layout != want.layout:
        return f"layout: expected {want.layout}, got {got.layout}"
    if want.layout != torch.strided:
        got, want = got.to_dense(), want.to_dense()
    elif strides and strides_that_matter(got) != strides_that_matter(want):
        return f"strides: expected {want.stride()}, got {got.stride()} (sizes {tuple(want.shape)})"
    if not values:
        return ""
    rtol, atol = tolerance.of(want.dtype)
    try:
        torch.testing.assert_close(got.detach().cpu(), want.detach(), rtol=rtol, atol=atol, equal_nan=True, check_stride=False)
    except AssertionError as error:
        return "values: " + " ".join(str(error).split())[:200]
    return ""


def difference(got: Any, want: Any, tolerance: Tolerance, device: str, *, values: bool = True, strides: bool = True) -> str:
    """Compares two results of any nesting; what is not a tensor is compared with ==."""
    got_leaves, _ = tree_flatten(got)
    want_leaves, _ = tree_flatten(want)
    if len(got_leaves) != len(want_leaves):
        return f"results: expected {len(want_leaves)}, got {len(got_leaves)}"
    for i, (g, w) in enumerate(zip(got_leaves, want_leaves, strict=True)):
        where = f"result {i}: " if len(want_leaves) > 1 else ""
        if isinstance(w, torch.Tensor) != isinstance(g, torch.Tensor):
            return f"{where}type: expected {type(w).__name__}, got {type(g).__name__}"
        if isinstance(w, torch.Tensor):
            text = difference_of_tensors(g, w, tolerance, device, values=values, strides=strides)
            if text:
                return where + text
        elif isinstance(w, float) and values:
            if abs(g - w) > 1e-4 * abs(w) + 1e-5:
                return f"{where}value: expected {w}, got {g}"
        elif values and g != w and not isinstance(w, torch.device):
            return f"{where}value: expected {w}, got {g}"
    return ""
