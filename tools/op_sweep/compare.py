"""Is a result what CPU PyTorch gave: dtype, shape, strides, values.

Values agree when each element is within the tolerance of CPU's. Where one is not, both results are held against what CPU PyTorch
gives for the same arguments in float64 (complex128): they agree as well when the device's largest error, as a multiple of the
tolerance, is at most one, or no larger than CPU's own largest error. Such samples are counted as `better`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
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


def _largest_error(x: torch.Tensor, exact: torch.Tensor, rtol: float, atol: float) -> float | None:
    """As a multiple of the tolerance; None when they are not finite in the same places."""
    rounded = exact.to(x.dtype)
    finite = torch.isfinite(rounded)
    odd = ~finite
    if not torch.equal(torch.isfinite(x), finite) or not torch.isclose(x[odd], rounded[odd], equal_nan=True).all():
        return None
    error = (x.to(exact.dtype) - exact).abs()[finite] / (atol + rtol * exact.abs()[finite])
    return float(error.max()) if error.numel() else 0.0


@dataclasses.dataclass
class Reference:
    """The float64 result, computed when first needed. `used` tells whether it decided."""

    compute: Callable[[], Any]
    used: bool = False

    def settles(self, i: int, got: torch.Tensor, want: torch.Tensor, rtol: float, atol: float) -> bool:
        """Whether result i is right though not CPU's."""
        if not (got.dtype.is_floating_point or got.dtype.is_complex) or got.dtype in (torch.float64, torch.complex128):
            return False
        try:
            leaves, _ = tree_flatten(self.compute())
            exact = leaves[i].detach()
            mine = _largest_error(got, exact, rtol, atol)
            self.used = mine is not None and mine <= max(1.0, _largest_error(want, exact, rtol, atol) or 0.0)
        except Exception:  # no float64 form of this call: CPU's result stands
            return False
        return self.used


def strides_that_matter(x: torch.Tensor) -> tuple[int, ...]:
    """Strides of dims of size one, or of tensors without elements, say nothing."""
    if x.numel() == 0:
        return ()
    return tuple(stride for size, stride in zip(x.shape, x.stride(), strict=True) if size != 1)


def difference_of_tensors(
    got: torch.Tensor,
    want: torch.Tensor,
    tolerance: Tolerance,
    device: str,
    *,
    values: bool,
    strides: bool,
    reference: Reference | None,
    index: int,
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
    got, want = got.detach().cpu(), want.detach()
    try:
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)
    except AssertionError as error:
        if reference is not None and reference.settles(index, got, want, rtol, atol):
            return ""
        return "values: " + " ".join(str(error).split())[:200]
    return ""


def difference(
    got: Any,
    want: Any,
    tolerance: Tolerance,
    device: str,
    *,
    values: bool = True,
    strides: bool = True,
    reference: Reference | None = None,
) -> str:
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
            text = difference_of_tensors(g, w, tolerance, device, values=values, strides=strides, reference=reference, index=i)
            if text:
                return where + text
        elif isinstance(w, float) and values:
            if abs(g - w) > 1e-4 * abs(w) + 1e-5:
                return f"{where}value: expected {w}, got {g}"
        elif values and g != w and not isinstance(w, torch.device):
            return f"{where}value: expected {w}, got {g}"
    return ""
