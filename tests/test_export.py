"""torch.export programs as StableHLO."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy
import pytest
import torch
import torch_tpu
from torch import nn
from torch_tpu.export import to_stablehlo


def test_a_model_is_one_function_with_its_weights_as_inputs(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    before = torch_tpu._C.cache_stats()["requests"]
    program = to_stablehlo(torch.export.export(model, (torch.randn(3, 4),)))
    assert torch_tpu._C.cache_stats()["requests"] == before, "nothing is compiled"
    (signature,) = re.findall(r"func.func @main\((.*?)\) ->", program.text)
    assert signature.count("tensor<") == len(program.inputs) == 5
    assert "tensor<3x2xf32>" in program.text and "custom_call" not in program.text
    assert {i.name for i in program.inputs if i.kind == "parameter"} == set(dict(model.named_parameters()))
    program.save(tmp_path)
    described = json.loads((tmp_path / "program.json").read_text())
    assert [i["name"] for i in described["inputs"]] == [i.name for i in program.inputs]
    weights = numpy.load(tmp_path / "weights.npz")
    assert (weights["0.weight"] == model[0].weight.detach().numpy()).all()


def test_a_buffers_new_value_is_an_output() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen.add_(x)
            return x * 2

    program = to_stablehlo(torch.export.export(Counter(), (torch.ones(3),)))
    assert sorted(program.outputs) == ["mul", "seen"]


def test_what_cannot_be_exported_says_so() -> None:
    dynamic = torch.export.export(nn.ReLU(), (torch.randn(4, 3),), dynamic_shapes=({0: torch.export.Dim("n")},))
    with pytest.raises(RuntimeError, match="export: expected tensors of static sizes"):
        to_stablehlo(dynamic)
