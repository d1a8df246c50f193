"""A step as one program: the tensors it holds become abstract, it runs once on a recorder, and everything is put back."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch_tpu import _C


@dataclass
class Captured:
    """StableHLO of a step. `names[i]` is PyTorch's name of argument i ("0.weight", "input 0"); `inputs` say which
    argument each of the program's inputs is (-1: a number, or the random state); `stores` are arguments that the step
    gives a new value (argument, output of the program); `outputs` are the outputs that hold the step's results."""

    stablehlo: str
    names: list[str]
    inputs: list[tuple[int, int, str]]
    outputs: list[int]
    stores: list[tuple[int, int]]
    donated: list[tuple[int, int]]
    ops: int
    constants: list[Any] = field(default_factory=list)


def _held(step: Any, found: dict[int, Any]) -> Iterator[Any]:
    """Modules and optimizers that a callable holds: itself, bound methods, partials, closures, globals it names."""
    if id(step) in found:
        return
    found[id(step)] = step
    if isinstance(step, (torch.nn.Module, torch.optim.Optimizer)):
        yield step
    elif isinstance(step, functools.partial):
        for each in (step.func, *step.args, *step.keywords.values()):
            yield from _held(each, found)
    elif inspect.ismethod(step):
        yield from _held(step.__self__, found)
        yield from _held(step.__func__, found)
    elif inspect.isfunction(step):
        variables = inspect.getclosurevars(step)
        for each in (*variables.nonlocals.values(), *variables.globals.values(), *(step.__defaults__ or ())):
            yield from _held(each, found)
    elif isinstance(step, (list, tuple)):
        for each in step:
            yield from _held(each, found)


class _Abstract:
    """Tensors of modules and optimizers, each replaced by an abstract one while a step is recorded."""

    def __init__(self, holders: Sequence[Any]) -> None:
        self.holders = holders
        self.replaced: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.names: list[str] = []

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Every tensor that lasts from step to step, once, with its name."""
        seen: set[int] = set()
        names: dict[int, str] = {}
        for holder in self.holders:
            if isinstance(holder, torch.nn.Module):
                for name, tensor in (*holder.named_parameters(), *holder.named_buffers()):
                    if id(tensor) not in seen:
                        seen.add(id(tensor))
                        names[id(tensor)] = name
                        yield name, tensor
        for holder in self.holders:
            if not isinstance(holder, torch.optim.Optimizer):
                continue
            for group in holder.param_groups:
                for parameter in group["params"]:
                    for key, value in holder.state.get(parameter, {}).items():
                        # A step count on the host stays there, as in eager mode.
                        if isinstance(value, torch.Tensor) and value.dim() and id(value) not in seen:
                            seen.add(id(value))
                            yield f"{names.get(id(parameter), 'parameter')}.{key}", value

    def place(self, step: _C.Step, tensor: torch.Tensor) -> None:
        """`tensor` becomes an argument of the step, its object stays the same."""
        argument = step.argument(tensor)
        other: torch.Tensor = argument.detach()  # an object that nothing else holds, on the same storage
        if isinstance(tensor, torch.nn.Parameter):
            other = torch.nn.Parameter(argument, requires_grad=tensor.requires_grad)
        elif tensor.requires_grad:
            other = other.requires_grad_()
        torch.utils.swap_tensors(tensor, other)
        self.replaced.append((tensor, other))

    def restore(self) -> None:
        """Puts everything back."""
        for tensor, other in reversed(self.replaced):
            tensor.grad = None
            torch.utils.swap_tensors(tensor, other)
        self.replaced.clear()


def capture(step: Callable[..., Any], example_inputs: Sequence[Any] = (), *, tpu: bool = True) -> Captured:
    """Records `step(*example_inputs)` as one program, without data: tensors may be on `meta`, fake, on CPU or on `tpu`.

    Modules and optimizers that `step` holds are found in its closure, globals, defaults, and bound arguments. With an
    optimizer the second step is captured, whose state is there already. Gradients that the step itself clears are no
    outputs. Raises what the step raises, and RuntimeError naming the op where the step reads a value on the host.
    """
    holders = list(_held(step, {}))
    abstract = _Abstract(holders)
    optimizers = [holder for holder in holders if isinstance(holder, torch.optim.Optimizer)]
    before = [(optimizer, dict(optimizer.state)) for optimizer in optimizers]
    gradients = [(tensor, tensor.grad) for _, tensor in abstract.tensors() if tensor.grad is not None]
    for tensor, _ in gradients:
        tensor.grad = None
    try:
        if optimizers:
            _record(abstract, step, example_inputs, tpu)
            abstract.replaced, kept = [], abstract.replaced
            try:
                return _record(abstract, step, example_inputs, tpu)
            finally:
                abstract.restore()
                abstract.replaced = kept
        return _record(abstract, step, example_inputs, tpu)
    finally:
        abstract.restore()
        for optimizer, state in before:
            optimizer.state.clear()
            optimizer.state.update(state)
        for tensor, gradient in gradients:
            tensor.grad = gradient


def _record(abstract: _Abstract, step: Callable[..., Any], example_inputs: Sequence[Any], tpu: bool) -> Captured:
    recorder = _C.Step()
    names = []
    for name, tensor in list(abstract.tensors()):
        abstract.place(recorder, tensor)
        names.append(name)
    flat, spec = pytree.tree_flatten(tuple(example_inputs))
    arguments = []
    for index, value in enumerate(flat):
        if isinstance(value, torch.Tensor):
            names.append(f"input {index}")
            value = recorder.argument(value.detach()).requires_grad_(value.requires_grad)
        arguments.append(value)
    result = recorder.run(lambda: step(*pytree.tree_unflatten(arguments, spec)))
    outputs = [value.detach() for value in pytree.tree_leaves(result) if isinstance(value, torch.Tensor)]
    row = recorder.finish(outputs, tpu)
    return Captured(row["stablehlo"], names, row["inputs"], row["outputs"], row["stores"], row["donated"], row["ops"])
