"""A step as one program: the tensors it holds become abstract, it runs on a recorder, and everything is put back."""

from __future__ import annotations

import functools
import inspect
import linecache
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch_tpu import _C


@dataclass(frozen=True)
class Captured:
    """A step as StableHLO.

    `inputs[i]` says what the program's input i is: PyTorch's name of a tensor ("0.weight", "input 0"), "random state", or
    "constant"; `types[i]` is its type. `outputs[i]` says what output i is: "result 0", or the name of a tensor with a new value;
    `output_types[i]` is its type. `donated` are (input, output) that share memory. `ops` counts the recorded ops.
    """

    stablehlo: str
    inputs: list[str]
    types: list[str]
    outputs: list[str]
    output_types: list[str]
    donated: list[tuple[int, int]]
    ops: int

    @property
    def updates(self) -> list[tuple[int, int]]:
        """(input, output) where the output is the input's new value."""
        place = {name: index for index, name in enumerate(self.inputs)}
        return [(place[name], index) for index, name in enumerate(self.outputs) if name in place]

    def run(self, arguments: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Runs the program on this process's `tpu` device, whatever plugin that is.

        `arguments` are `inputs`' values, in order, on `tpu`; those with a new value are changed in place. Gives the other
        outputs, in order. Raises ValueError for a wrong number of arguments, RuntimeError where compiling or running fails.
        """
        return execute(_C.LoadedProgram(self.stablehlo, False, like(self.output_types)), self, arguments)


_DTYPES = {"i1": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "ui8": torch.uint8,
           "ui16": torch.uint16, "ui32": torch.uint32, "ui64": torch.uint64, "f16": torch.float16, "bf16": torch.bfloat16,
           "f32": torch.float32, "f64": torch.float64, "complex<f32>": torch.complex64,
           "complex<f64>": torch.complex128}  # fmt: skip


def like(types: Sequence[str]) -> list[torch.Tensor]:
    """Meta tensors of StableHLO types such as `tensor<2x3xf32>`."""
    found = []
    for text in types:
        *dims, name = text.removeprefix("tensor<").removesuffix(">").split("x") if "complex" not in text else _complex(text)
        found.append(torch.empty([int(dim) for dim in dims], dtype=_DTYPES[name], device="meta"))
    return found


def _complex(text: str) -> list[str]:
    dims, _, name = text.removeprefix("tensor<").removesuffix(">").partition("complex")
    return [*dims.split("x")[:-1], f"complex{name}"]


def execute(program: _C.LoadedProgram, captured: Captured, arguments: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Calls a loaded program of `captured`. See `Captured.run`."""
    if len(arguments) != len(captured.inputs):
        names = ", ".join(captured.inputs[:8])
        raise ValueError(f"aot: expected {len(captured.inputs)} arguments ({names}, ...), got {len(arguments)}")
    return program(list(arguments), captured.updates)


_Holder = torch.nn.Module | torch.optim.Optimizer | torch.Tensor


def _held(step: Any, name: str, seen: dict[int, Any]) -> Iterator[tuple[str, _Holder]]:
    """Modules, optimizers and tensors that a callable holds: itself, a bound method's object, arguments of a partial, closure
    variables, globals it names, and what lies in lists, dicts and attributes of those."""
    if id(step) in seen or inspect.ismodule(step) or isinstance(step, type):
        return
    seen[id(step)] = step
    if isinstance(step, (torch.nn.Module, torch.optim.Optimizer, torch.Tensor)):
        yield name, step
        hooks = getattr(step, "forward", None) if isinstance(step, torch.nn.Module) else None
        if inspect.isfunction(hooks):
            yield from _held(hooks, name, seen)
    elif isinstance(step, functools.partial):
        for each in (step.func, *step.args, *step.keywords.values()):
            yield from _held(each, name, seen)
    elif inspect.ismethod(step):
        yield from _held(step.__self__, name, seen)
        yield from _held(step.__func__, name, seen)
    elif inspect.isfunction(step):
        if (step.__module__ or "").split(".")[0] in ("torch", "torch_tpu", "numpy", "transformers"):
            return
        for variable, value in _variables(step):
            yield from _held(value, variable, seen)
    elif isinstance(step, (list, tuple)):
        for index, each in enumerate(step):
            yield from _held(each, f"{name}[{index}]", seen)
    elif isinstance(step, dict):
        for key, each in step.items():
            yield from _held(each, f"{name}[{key!r}]", seen)
    elif hasattr(step, "__dict__") and not (type(step).__module__ or "").startswith(("torch.", "builtins")):
        for key, each in vars(step).items():
            yield from _held(each, f"{name}.{key}" if name else key, seen)
        if callable(step):
            yield from _held(type(step).__call__, name, seen)


def _variables(function: Any) -> Iterator[tuple[str, Any]]:
    wrapped = inspect.unwrap(function)
    for each in {function, wrapped}:
        code = each.__code__
        for name, cell in zip(code.co_freevars, each.__closure__ or (), strict=True):
            try:
                yield name, cell.cell_contents
            except ValueError:
                continue  # a variable that is not set yet
        names = set(code.co_names)
        for inner in code.co_consts:
            if inspect.iscode(inner):
                names |= set(inner.co_names)
        for name in sorted(names):
            if name in each.__globals__:
                yield name, each.__globals__[name]
        for value in (*(each.__defaults__ or ()), *(each.__kwdefaults__ or {}).values()):
            yield "default", value


class _Abstract:
    """Tensors that last from step to step, each replaced by an abstract one while a step is recorded."""

    def __init__(self, holders: Sequence[tuple[str, _Holder]]) -> None:
        self.holders = holders
        self.replaced: list[tuple[torch.Tensor, torch.Tensor]] = []

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        return [holder for _, holder in self.holders if isinstance(holder, torch.optim.Optimizer)]

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Every tensor once, with its name; leaves before the state of optimizers."""
        seen: set[int] = set()
        names: dict[int, str] = {}
        modules = [pair for pair in self.holders if isinstance(pair[1], torch.nn.Module)]
        for where, holder in self.holders:
            found: list[tuple[str, torch.Tensor]] = []
            if isinstance(holder, torch.nn.Module):
                prefix = f"{where}." if len(modules) > 1 and where else ""
                found = [(prefix + name, tensor) for name, tensor in (*holder.named_parameters(), *holder.named_buffers())]
            elif isinstance(holder, torch.Tensor) and _moves(holder):
                found = [(where, holder)]
            for name, tensor in found:
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    names[id(tensor)] = name
                    yield name, tensor
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    name = names.get(id(parameter), "parameter")
                    if id(parameter) not in seen:
                        seen.add(id(parameter))
                        yield name, parameter
                    for key, value in optimizer.state.get(parameter, {}).items():
                        if isinstance(value, torch.Tensor) and _moves(value) and id(value) not in seen:
                            seen.add(id(value))
                            yield f"{name}.{key}", value

    def place(self, step: _C.Step, tensor: torch.Tensor) -> None:
        """`tensor` becomes an argument of the step; its object stays the same."""
        argument = step.argument(tensor)
        other: torch.Tensor = argument.detach()  # an object that nothing else holds, on the same storage
        if isinstance(tensor, torch.nn.Parameter):
            other = torch.nn.Parameter(other, requires_grad=tensor.requires_grad)
        elif tensor.requires_grad:
            other = other.requires_grad_()
        gradient, tensor.grad = tensor.grad, None
        _swap(tensor, other)
        tensor.grad = None if gradient is None else step.argument(gradient)
        self.replaced.append((tensor, other))

    def restore(self) -> None:
        """Puts everything back."""
        for tensor, other in reversed(self.replaced):
            tensor.grad = None
            _swap(tensor, other)
        self.replaced.clear()


def _swap(a: torch.Tensor, b: torch.Tensor) -> None:
    """Exchanges what two tensors are. Unlike torch.utils.swap_tensors with weak references to them too (fake tensors have
    some): they are put back before anyone looks."""
    if not weakref.getweakrefs(a) and not weakref.getweakrefs(b):
        torch.utils.swap_tensors(a, b)
        return
    a.__class__, b.__class__ = b.__class__, a.__class__
    a.__dict__, b.__dict__ = b.__dict__, a.__dict__
    torch._C._swap_tensor_impl(a, b)


def _moves(tensor: torch.Tensor) -> bool:
    """Whether a tensor that a step holds becomes an argument. A scalar on the host, as an optimizer's count of steps, stays."""
    return tensor.device.type != "cpu" or tensor.dim() > 0


def capture(step: Callable[..., Any], example_inputs: Sequence[Any] = (), *, tpu: bool = True) -> Captured:
    """Records `step(*example_inputs)` as one program, without data: tensors may be on `meta`, fake, on CPU or on `tpu`.

    Modules, optimizers and tensors that `step` holds are found in its closure, globals, defaults and bound arguments. What is
    captured is the steady step: if the first one leaves optimizer state or gradients behind, the second one, which finds them
    there. Gradients that the step itself clears are no outputs. `tpu=False` gives plain StableHLO, for any target.

    Raises:
        TypeError: `step` is not callable.
        RuntimeError: the step reads a value on the host; the text names the op.
        Whatever the step itself raises.
    """
    if not callable(step):
        raise TypeError(f"aot.capture: expected a callable step, got {type(step).__name__}")
    if not isinstance(example_inputs, (list, tuple)):
        raise TypeError(f"aot.capture: expected example_inputs as a tuple, got {type(example_inputs).__name__}")
    abstract = _Abstract(list(_held(step, "", {})))
    optimizers = [_OptimizerState(optimizer) for optimizer in abstract.optimizers]
    gradients = [(tensor, tensor.grad) for _, tensor in abstract.tensors()]
    for tensor, _ in gradients:
        tensor.grad = None
    before = {id(tensor) for _, tensor in abstract.tensors()}
    first = _Abstract(abstract.holders)
    try:
        recorded = _record(first, step, example_inputs)
        after = list(first.tensors())
        if {id(tensor) for _, tensor in after} == before and all(tensor.grad is None for _, tensor in after):
            return _finish(*recorded, tpu)
        del recorded, after
        try:
            return _finish(*_record(abstract, step, example_inputs), tpu)
        finally:
            abstract.restore()
    finally:
        first.restore()
        for state in optimizers:
            state.restore()
        for tensor, gradient in gradients:
            tensor.grad = gradient


class _OptimizerState:
    """What an optimizer holds besides its parameters, to be put back: state, counts on the host, settings of its groups."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.state = {key: dict(value) if isinstance(value, dict) else value for key, value in optimizer.state.items()}
        self.groups = [dict(group) for group in optimizer.param_groups]
        self.counts = [
            (value, value.clone())
            for row in self.state.values()
            if isinstance(row, dict)
            for value in row.values()
            if isinstance(value, torch.Tensor) and not _moves(value)
        ]

    def restore(self) -> None:
        self.optimizer.state.clear()
        self.optimizer.state.update(self.state)
        for group, settings in zip(self.optimizer.param_groups, self.groups, strict=True):
            group.update(settings)
        for value, saved in self.counts:
            value.copy_(saved)


def _record(
    abstract: _Abstract, step: Callable[..., Any], example_inputs: Sequence[Any]
) -> tuple[_C.Step, list[str], list[torch.Tensor]]:
    recorder = _C.Step()
    names = []
    for name, tensor in list(abstract.tensors()):
        names += [name, f"{name}.grad"] if tensor.grad is not None else [name]
        abstract.place(recorder, tensor)
    flat, spec = pytree.tree_flatten(tuple(example_inputs))
    arguments = []
    for index, value in enumerate(flat):
        if isinstance(value, torch.Tensor):
            names.append(f"input {index}")
            value = recorder.argument(value.detach()).requires_grad_(value.requires_grad)
        arguments.append(value)
    try:
        result = recorder.run(lambda: step(*pytree.tree_unflatten(arguments, spec)))
    except RuntimeError as error:
        if "got an abstract one" in str(error):
            raise RuntimeError(
                f"aot.capture: {_place(error)}reads a value on the host, but none is known ahead of time: {error}"
            ) from error
        raise
    outputs = [value.detach() for value in pytree.tree_leaves(result) if isinstance(value, torch.Tensor)]
    return recorder, names, outputs


def _place(error: BaseException) -> str:
    """`file:line (code) ` of the user's frame that an error comes from."""
    ours = (torch.__path__[0], __file__.rsplit("/", 2)[0])
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(ours):
            line = linecache.getline(frame.filename, frame.lineno or 0).strip()
            return f"{frame.filename}:{frame.lineno} (`{line}`) "
    return "the step "


def _finish(recorder: _C.Step, names: list[str], results: list[torch.Tensor], tpu: bool) -> Captured:
    on_device = [(index, value) for index, value in enumerate(results) if value.device.type == "tpu"]
    row = recorder.finish([value for _, value in on_device], tpu)
    inputs = [names[argument] if argument >= 0 else "random state" if random >= 0 else "constant"
              for argument, random, _ in row["inputs"]]  # fmt: skip
    outputs: dict[int, str] = {output: names[argument] for argument, output in row["stores"] if output >= 0}
    for (index, _), output in zip(on_device, row["outputs"], strict=True):
        if output >= 0:
            outputs.setdefault(output, f"result {index}")
    return Captured(
        row["stablehlo"],
        inputs,
        [kind for _, _, kind in row["inputs"]],
        [outputs.get(index, "result") for index in range(len(row["output_types"]))],
        row["output_types"],
        row["donated"],
        row["ops"],
    )
