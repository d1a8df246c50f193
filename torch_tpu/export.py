"""`torch.export` programs as StableHLO."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.export.graph_signature import InputKind


@dataclass(frozen=True)
class Input:
    """An input of the program: its name in the exported graph, and its value when it is a weight or a constant."""

    name: str
    kind: str  # "user", "parameter", "buffer", "constant"
    value: torch.Tensor | None = field(repr=False)


@dataclass(frozen=True)
class StableHlo:
    """A program as text, and what goes in and out of `main`, in order."""

    text: str
    inputs: list[Input]
    outputs: list[str]  # names in the exported graph; a buffer's new value has the buffer's name

    def save(self, folder: str | Path) -> None:
        """Writes `program.mlir`, `program.json` (inputs, outputs) and `weights.npz`: nothing that needs PyTorch to be read."""
        import numpy

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "program.mlir").write_text(self.text)
        inputs = [{"name": i.name, "kind": i.kind} for i in self.inputs]
        (folder / "program.json").write_text(json.dumps({"inputs": inputs, "outputs": self.outputs}, indent=1))
        weights = {i.name: _numpy(i.value) for i in self.inputs if i.value is not None}
        numpy.savez(folder / "weights.npz", **weights)


def to_stablehlo(exported: torch.export.ExportedProgram) -> StableHlo:
    """StableHLO of an exported program, from the ops and the table that eager mode uses. Compiles and runs nothing.

    Weights are inputs of the program. Needs static sizes and no random numbers; raises RuntimeError with the op's name for
    an op that looks at values.
    """
    from . import _C
    from .compile.backend import decompositions
    from .compile.capture import NeedsValue, Recorder

    program = exported.run_decompositions(decompositions())
    gm = program.graph_module
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    values = [node.meta["val"] for node in placeholders]
    for node, value in zip(placeholders, values, strict=True):
        if not isinstance(value, torch.Tensor) or any(isinstance(size, torch.SymInt) for size in value.shape):
            raise RuntimeError(f"export: expected tensors of static sizes, got {node.name} = {value}")
    like = [torch.empty(value.shape, dtype=value.dtype, device="meta") for value in values]

    def run(*arguments: torch.Tensor) -> list[torch.Tensor]:
        with torch.no_grad(), torch._C._AutoDispatchBelowAutograd():
            return list(Recorder(gm, torch.device("tpu:0")).run(*arguments))

    try:
        lowered = _C.lower_function(run, like)
    except NeedsValue as error:
        raise RuntimeError(f"export: {error}") from error
    specs = program.graph_signature.input_specs
    inputs = [
        Input(f"constant{k}", "constant", value.cpu()) if value is not None else _input(program, specs[index])
        for k, (index, value) in enumerate(lowered["inputs"])
    ]
    names = [str(spec.target or getattr(spec.arg, "name", "")) for spec in program.graph_signature.output_specs]
    order = lowered["outputs"]
    outputs = [""] * (max(order, default=-1) + 1)
    for name, position in zip(names, order, strict=True):
        outputs[position] = name
    return StableHlo(lowered["stablehlo"], inputs, outputs)


_KINDS = {
    InputKind.USER_INPUT: "user",
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}


def _input(program: torch.export.ExportedProgram, spec: Any) -> Input:
    kind = _KINDS.get(spec.kind)
    if kind is None:
        raise RuntimeError(f"export: expected tensors as inputs, got {spec.arg} of kind {spec.kind}")
    if kind == "user":
        return Input(spec.arg.name, kind, None)
    value = program.state_dict.get(spec.target)
    if value is None:
        value = program.constants[spec.target]
    return Input(spec.target, kind, value.detach().cpu())


def _numpy(value: torch.Tensor | None) -> Any:
    assert value is not None
    if value.dtype == torch.bfloat16:  # numpy has no such type: its bits
        return value.view(torch.uint16).numpy()
    return value.numpy()
