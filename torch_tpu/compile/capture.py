"""Runs an FX graph once on abstract tensors, so that the C++ recorder sees its ops; finds what no program can hold."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.passes.split_module import split_module
from torch_tpu import _C

_ABSTRACT = "got an abstract one"  # the recorder's text for a read of a value that is not there yet


class NeedsValue(Exception):
    """An op that looks at values, or runs on the host: it cannot be a part of a program."""

    def __init__(self, node: torch.fx.Node) -> None:
        super().__init__(f"{node.target}: needs values while its program is made")
        self.node = node


class Recorder(torch.fx.Interpreter):
    """Calls every op of a graph as eager mode would, on the device that the program is made for."""

    def __init__(self, gm: torch.fx.GraphModule, device: torch.device) -> None:
        super().__init__(gm)
        self.device = device

    def run_node(self, n: torch.fx.Node) -> Any:
        """Runs one node; an op that asks for a value raises NeedsValue."""
        try:
            return super().run_node(n)
        except RuntimeError as error:
            if _ABSTRACT in str(error):
                raise NeedsValue(n) from error
            raise

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The op with CPU factories moved: a graph's small host tensors are computed where the program runs."""
        if isinstance(target, torch._ops.HigherOrderOperator) and (method := _HIGHER_ORDER.get(target.name())):
            return method(self, *args, **kwargs)
        if kwargs and isinstance(kwargs.get("device"), torch.device) and kwargs["device"].type == "cpu":
            kwargs = kwargs | {"device": self.device}
        if target is torch.ops.prims.device_put.default and args[1].type == "cpu":
            args = (args[0], self.device, *args[2:])
        return super().call_function(target, args, kwargs)

    def _cond(self, predicate: Any, on_true: Any, on_false: Any, operands: Sequence[Any]) -> tuple[Any, ...]:
        if not isinstance(predicate, torch.Tensor):
            return tuple((on_true if predicate else on_false)(*operands))
        return tuple(_C.record_cond(predicate, self._body(on_true), self._body(on_false), list(operands)))

    def _while_loop(
        self, condition: Any, body: Any, carried: Sequence[Any], others: Sequence[Any] = (), mutated_arg_indices: str = ""
    ) -> tuple[Any, ...]:
        return tuple(_C.record_while(self._body(condition), self._body(body), list(carried), list(others)))

    def _save_random_state(self, op: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return _C.save_random_state(), op(*args, **kwargs)

    def _replay_random_state(self, state: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        _C.use_random_state(state)
        try:
            return op(*args, **kwargs)
        finally:
            _C.use_random_state(None)

    def _body(self, gm: Any) -> Callable[..., Any]:
        return Recorder(gm, self.device).run if isinstance(gm, torch.fx.GraphModule) else gm

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Constants of the graph; host tensors with dims move."""
        value = super().get_attr(target, args, kwargs)
        if isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.dim() > 0:
            return value.to(self.device)
        return value


# Higher-order ops that programs have a form for; the others run as PyTorch's own dense implementations do.
_HIGHER_ORDER: dict[str, Callable[..., Any]] = {
    "cond": Recorder._cond,
    "while_loop": Recorder._while_loop,
    "run_and_save_rng_state": Recorder._save_random_state,
    "run_with_rng_state": Recorder._replay_random_state,
}


class Captured:
    """One FX graph as a callable that takes a list of arguments (boxed): programs in C++, made when they are needed."""

    def __init__(self, gm: torch.fx.GraphModule, name: str, device: torch.device, max_programs: int) -> None:
        self.gm = gm
        self.name = name
        self.device = device
        self.max_programs = max_programs
        self.host_outputs = _host_outputs(gm)
        self.graph = _C.CompiledGraph(self.record, name, device.index or 0)

    def record(self, arguments: list[Any]) -> tuple[list[Any], list[bool]] | Callable[[list[Any]], list[Any]]:
        """Called by C++ for arguments that no program fits, with abstract tensors in their place."""
        if len(self.graph.programs()) >= self.max_programs:
            return self._one_by_one()
        # The graph has been through autograd and autocast already.
        with torch.no_grad(), torch._C._DisableAutocast(), torch._C._AutoDispatchBelowAutograd():
            try:
                outputs = Recorder(self.gm, self.device).run(*arguments)
            except NeedsValue as found:
                return split(self.gm, found.node, self)
        if not isinstance(outputs, (tuple, list)):
            outputs = (outputs,)
        return list(outputs), self.host_outputs

    def _one_by_one(self) -> Callable[[list[Any]], list[Any]]:
        warnings.warn(
            f"torch.compile(backend='tpu'): {self.name} has {self.max_programs} programs, one for each size it was called with; "
            "from now on its ops run one by one. Pad the inputs to a few sizes, or raise options={'max_programs': ...}; "
            "torch._dynamo.mark_dynamic alone does not make a program for all sizes.",
            stacklevel=2,
        )

        def run(arguments: list[Any]) -> list[Any]:
            given = list(arguments)
            arguments.clear()
            with torch.no_grad(), torch._C._DisableAutocast():
                outputs = self.gm(*given)
            return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]

        return run


def _host_outputs(gm: torch.fx.GraphModule) -> list[bool]:
    (output,) = (node for node in gm.graph.nodes if node.op == "output")
    results = output.args[0]
    if not isinstance(results, (tuple, list)):
        results = (results,)
    flags = []
    for node in results:
        value = node.meta.get("val") if isinstance(node, torch.fx.Node) and not _is_random_state(node) else None
        flags.append(isinstance(value, torch.Tensor) and value.device.type == "cpu")
    return flags


def _is_random_state(node: torch.fx.Node) -> bool:
    # PyTorch takes a generator's state to be a host tensor; in programs it is a value like others.
    source = node.args[0] if node.args and isinstance(node.args[0], torch.fx.Node) else None
    return bool(source and source.target is torch.ops.higher_order.run_and_save_rng_state and node.args[1] == 0)


def split(gm: torch.fx.GraphModule, node: torch.fx.Node, whole: Captured) -> Callable[[list[Any]], list[Any]]:
    """The graph as programs around the ops like `node`, which run one by one."""
    part = 0
    parts: dict[torch.fx.Node, int] = {}
    eager: set[int] = set()
    for each in gm.graph.nodes:
        if each.op in ("placeholder", "output"):
            continue
        if each.target is operator.getitem and each.args[0] in parts:
            parts[each] = parts[each.args[0]]  # programs pass tensors to each other, not tuples
        elif each.target is node.target and each.op == node.op:
            eager.add(part + 1)
            parts[each] = part + 1
            part += 2
        else:
            parts[each] = part
    pieces = split_module(gm, gm, lambda n: parts[n], keep_original_order=True)
    for child, module in list(pieces.named_children()):
        if isinstance(module, torch.fx.GraphModule) and child.startswith("submod_"):
            if int(child.removeprefix("submod_")) not in eager:
                pieces.add_submodule(child, _Piece(module, f"{whole.name}.{child}", whole))

    def run(arguments: list[Any]) -> list[Any]:
        given = list(arguments)
        arguments.clear()
        with torch.no_grad(), torch._C._DisableAutocast():
            outputs = pieces(*given)
        return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]

    return run


class _Piece(torch.nn.Module):
    def __init__(self, gm: torch.fx.GraphModule, name: str, whole: Captured) -> None:
        super().__init__()
        (output,) = (node for node in gm.graph.nodes if node.op == "output")
        self.single = not isinstance(output.args[0], (tuple, list))
        self.captured = Captured(gm, name, whole.device, whole.max_programs)

    def forward(self, *arguments: Any) -> Any:
        outputs = self.captured.graph(list(arguments))
        return outputs[0] if self.single else outputs


def device_of(values: Sequence[Any]) -> torch.device | None:
    """The `tpu` device among tensors, if any."""
    for value in values:
        if isinstance(value, torch.Tensor) and value.device.type == "tpu":
            return value.device
    return None
