"""From Dynamo's graph to AOTAutograd's, and from each of these to a program."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd
from torch_tpu import _C

from .capture import Captured, device_of
from .options import Options, parse

_numbers = itertools.count()


def compile_graph(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Dynamo's entry: see docs/compile.md for what `mode` and `options` mean."""
    chosen = parse(mode, options)
    name = chosen.name or f"graph{next(_numbers)}"
    compiler = aot_autograd(
        fw_compiler=functools.partial(_compile, f"{name}.forward", chosen),
        bw_compiler=functools.partial(_compile, f"{name}.backward", chosen),
        inference_compiler=functools.partial(_compile, name, chosen),
        partition_fn=min_cut_rematerialization_partition,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )
    return compiler(gm, example_inputs)


def _compile(name: str, options: Options, gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    values = [node.meta.get("val") for node in gm.graph.nodes]
    device = device_of([*example_inputs, *values])
    if device is None:  # a graph of the CPU alone is none of ours
        return make_boxed_func(gm.forward)
    graph = Captured(gm, name, device, options.max_programs).graph

    def call(arguments: list[Any]) -> list[Any]:  # a function: Dynamo's wrappers carry only a function's marks along
        return graph(arguments)

    call._boxed_call = True
    return call


@functools.cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions of the ops that neither the table nor a composite kernel covers."""
    ours = set(_C.registered_ops())
    table = {}
    for op, function in torch._decomp.decomposition_table.items():
        if not isinstance(op, torch._ops.OpOverload):
            continue
        name = op._schema.name.removeprefix("aten::") + ("." + op._overloadname if op._overloadname != "default" else "")
        if name in ours or _has_kernel(op):
            continue
        table[op] = function
    return table


def _has_kernel(op: torch._ops.OpOverload) -> bool:
    return any(
        torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key)
        for key in ("PrivateUse1", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
    )
