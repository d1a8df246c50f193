"""Random numbers that are the same on both devices, so that models which draw some can be compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_NEW = {torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal}
_LIKE = {torch.rand_like: torch.rand, torch.randn_like: torch.randn}
_IN_PLACE = {
    torch.Tensor.uniform_,
    torch.Tensor.normal_,
    torch.Tensor.exponential_,
    torch.Tensor.bernoulli_,
    torch.Tensor.random_,
}
_OF_TENSOR = {torch.bernoulli, torch.multinomial, torch.Tensor.bernoulli, torch.Tensor.multinomial}


class HostRandoms(TorchFunctionMode):
    """Draws on the CPU's generator and moves the numbers to where the model wants them."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in _NEW:
            device = kwargs.pop("device", None)
            moved = [a.cpu() if isinstance(a, torch.Tensor) else a for a in args]
            drawn = func(*moved, **kwargs)
            return drawn if device is None else drawn.to(device)
        if func in _LIKE:
            device = kwargs.pop("device", args[0].device)
            kwargs.setdefault("dtype", args[0].dtype)
            kwargs.pop("memory_format", None)
            return _LIKE[func](args[0].shape, **kwargs).to(device)
        if func in _IN_PLACE and args[0].device.type == "tpu":
            drawn = func(torch.empty(args[0].shape, dtype=args[0].dtype), *args[1:], **kwargs)
            return args[0].copy_(drawn)
        if func in _OF_TENSOR and args[0].device.type == "tpu":
            return func(args[0].cpu(), *args[1:], **kwargs).to(args[0].device)
        return func(*args, **kwargs)
