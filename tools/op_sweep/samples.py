"""Which samples of an entry run, and how they get to the device."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_flatten, tree_map

# Their further arguments have to be on the host for every device.
TAKES_HOST_ARGUMENTS = ("tensor_split",)
MOST = 400  # generators of some entries give thousands


def entry_name(op: OpInfo) -> str:
    """The name that the results file uses: `linalg.svd`, `norm.fro`."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def size_of(sample: SampleInput) -> int:
    leaves, _ = tree_flatten((sample.input, sample.args, sample.kwargs))
    return sum(x.numel() for x in leaves if isinstance(x, torch.Tensor))


def pick(op: OpInfo, dtype: torch.dtype, requires_grad: bool, count: int, smallest: bool) -> list[SampleInput]:
    """At most `count` samples, spread evenly over what the entry offers, or its smallest ones that are not empty."""
    torch.manual_seed(0)
    found = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=requires_grad), MOST))
    if len(found) <= count:
        return found
    if smallest:
        return sorted(found, key=lambda s: (size_of(s) == 0, size_of(s)))[:count]
    return [found[i * len(found) // count] for i in range(count)]


def move(x: torch.Tensor, device: str) -> torch.Tensor:
    """A copy on the device with the same sizes, strides, offset and requires_grad: a leaf."""
    if x.device.type != "cpu":  # an error input of another device
        return x
    with torch.no_grad():
        if x.layout != torch.strided or x.is_contiguous() or x.is_conj() or x.is_neg():
            copy = x.detach().clone().to(device)
        else:
            count = x.untyped_storage().nbytes() // x.element_size()
            whole = x.detach().as_strided((count,), (1,), 0).clone().to(device)
            copy = whole.as_strided(x.size(), x.stride(), x.storage_offset())
    return copy.requires_grad_(x.requires_grad)


def move_sample(op: OpInfo, sample: SampleInput, device: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """(input, args, kwargs) on the device. Tensors that are the same object stay the same object."""
    moved: dict[int, torch.Tensor] = {}
    keep_args = op.name in TAKES_HOST_ARGUMENTS

    def one(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            if id(x) not in moved:
                moved[id(x)] = move(x, device)
            return moved[id(x)]
        if isinstance(x, torch.device) or x == "cpu":
            return torch.device(device)
        return x

    args = tuple(sample.args) if keep_args else tree_map(one, tuple(sample.args))
    return tree_map(one, sample.input), args, tree_map(one, dict(sample.kwargs))


WIDE = {torch.bfloat16: torch.float64, torch.float16: torch.float64, torch.float32: torch.float64,
        torch.complex64: torch.complex128, torch.complex32: torch.complex128}  # fmt: skip


def widened(arguments: Any) -> Any:
    """The same arguments in float64 or complex128, dtype arguments too."""

    def one(x: Any) -> Any:
        if isinstance(x, torch.dtype):
            return WIDE.get(x, x)
        if not isinstance(x, torch.Tensor) or x.dtype not in WIDE:
            return x
        if id(x) not in made:
            made[id(x)] = x.detach().to(WIDE[x.dtype]).requires_grad_(x.requires_grad)
        return made[id(x)]

    made: dict[int, torch.Tensor] = {}
    return tree_map(one, arguments)


def leaves_with_gradient(arguments: Any) -> list[torch.Tensor]:
    leaves, _ = tree_flatten(arguments)
    seen: dict[int, torch.Tensor] = {}
    for x in leaves:
        if isinstance(x, torch.Tensor) and x.requires_grad:
            seen.setdefault(id(x), x)
    return list(seen.values())
