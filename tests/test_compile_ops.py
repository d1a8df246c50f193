"""PyTorch's operator database under torch.compile(backend="tpu"), fullgraph: a spread of entries, forward and backward."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_tpu
import torch_tpu.compile
from compare import same
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_map

torch_tpu.compile.register()

NAMES = """
add exp where clamp floor_divide sum var_mean argmax cumsum softmax sort topk matmul addmm einsum linalg.inv linalg.cholesky
cat permute index_select gather scatter_add index_put masked_fill flip nn.functional.linear nn.functional.conv2d
nn.functional.max_pool2d nn.functional.layer_norm nn.functional.batch_norm nn.functional.gelu nn.functional.cross_entropy
nn.functional.embedding nn.functional.interpolate nn.functional.pad fft.fft
""".split()
ENTRIES = {op.name: op for op in reversed(op_db) if op.name in NAMES}


def moved(value: Any, device: str) -> Any:
    def move(x: Any) -> Any:
        return x.detach().to(device).requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x

    return tree_map(move, value)


def run(op: Any, sample: Any, device: str, compile_it: bool) -> list[Any]:
    first, args, kwargs = (moved(part, device) for part in (sample.input, sample.args, sample.kwargs))

    def call(first: Any, args: Any, kwargs: Any) -> Any:
        return op(first, *args, **kwargs)

    fn = torch.compile(call, backend="tpu", fullgraph=True) if compile_it else call
    result = fn(first, args, kwargs)
    leaves = [x for x in torch.utils._pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]
    inputs = [
        x for x in torch.utils._pytree.tree_leaves((first, args, kwargs)) if isinstance(x, torch.Tensor) and x.requires_grad
    ]
    total = [x.sum() for x in leaves if x.requires_grad and not x.is_complex()]
    gradients = torch.autograd.grad(sum(total), inputs, allow_unused=True) if total and inputs else ()
    return [leaves, list(gradients)]


@pytest.mark.parametrize("name", NAMES)
def test_an_entry(name: str) -> None:
    op = ENTRIES[name]
    torch._dynamo.reset()
    samples = list(
        op.sample_inputs("cpu", torch.float32 if torch.float32 in op.dtypes else torch.int64, requires_grad=op.supports_autograd)
    )
    sample = samples[min(1, len(samples) - 1)]
    torch_tpu.reset_fallback_counts()
    got = run(op, sample, "tpu", True)
    want = run(op, sample, "cpu", False)
    same(got, want, atol=2e-5, rtol=1e-4)
    assert torch_tpu.fallback_counts() == {}
