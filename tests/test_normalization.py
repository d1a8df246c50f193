"""Batch, layer, group, instance and RMS norm, and softmax: values, statistics kept, gradients."""

from __future__ import annotations

import pytest
import torch
from compare import both
from torch import nn
from torch.nn import functional as F  # noqa: N812

LAYERS = {
    "layer": (lambda: nn.LayerNorm(8), (4, 6, 8)),
    "layer of two dims": (lambda: nn.LayerNorm((6, 8)), (4, 6, 8)),
    "layer without bias": (lambda: nn.LayerNorm(8, bias=False), (4, 6, 8)),
    "plain layer": (lambda: nn.LayerNorm(8, elementwise_affine=False), (4, 6, 8)),
    "rms": (lambda: nn.RMSNorm(8, eps=1e-5), (4, 6, 8)),
    "plain rms": (lambda: nn.RMSNorm(8, elementwise_affine=False), (4, 6, 8)),
    "group": (lambda: nn.GroupNorm(4, 8), (3, 8, 5, 4)),
    "plain group": (lambda: nn.GroupNorm(2, 8, affine=False), (3, 8, 5)),
    "instance": (lambda: nn.InstanceNorm2d(6, affine=True), (3, 6, 5, 4)),
    "batch of vectors": (lambda: nn.BatchNorm1d(6), (5, 6)),
    "batch": (lambda: nn.BatchNorm2d(6), (3, 6, 5, 4)),
    "batch of volumes": (lambda: nn.BatchNorm3d(6), (3, 6, 2, 3, 4)),
    "plain batch": (lambda: nn.BatchNorm2d(6, affine=False), (3, 6, 5, 4)),
    "batch without statistics": (lambda: nn.BatchNorm2d(6, track_running_stats=False), (3, 6, 5, 4)),
    "batch, cumulative": (lambda: nn.BatchNorm2d(6, momentum=None), (3, 6, 5, 4)),
}


def train(make, x, device, steps=2, evaluate=False):
    torch.manual_seed(3)
    layer = make()
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, 0.5, 1.5)
    layer.train(not evaluate)
    layer = layer.to(device)
    data = x.detach().to(device).requires_grad_()
    outs = []
    for step in range(steps):
        out = layer(data * (step + 1))
        (out * torch.linspace(-1, 2, out.numel()).reshape(out.shape).to(out.dtype).to(device)).sum().backward()
        outs.append(out)
    return [*outs, data.grad, *(p.grad for p in layer.parameters()), *layer.state_dict().values()]


@pytest.mark.parametrize("name", LAYERS)
def test_training(mode: str, name: str) -> None:
    make, shape = LAYERS[name]
    x = torch.randn(shape) * 2 + 1
    both(lambda d: train(make, x, d), atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("name", [n for n in LAYERS if "batch" in n])
def test_evaluation(mode: str, name: str) -> None:
    make, shape = LAYERS[name]
    x = torch.randn(shape)
    both(lambda d: train(make, x, d, evaluate=True), atol=2e-4, rtol=1e-4)


def test_bfloat16(mode: str) -> None:
    x = torch.randn(3, 8, 5, 4).bfloat16()
    for make in (lambda: nn.BatchNorm2d(8).bfloat16(), lambda: nn.GroupNorm(2, 8).bfloat16()):
        both(lambda d: train(make, x, d, steps=1)[:2], atol=0.1, rtol=3e-2)  # noqa: B023


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax, F.softmin])
def test_softmax(mode: str, function) -> None:
    x = torch.randn(4, 6, 8) * 3

    def work(device: str, dim: int) -> list[torch.Tensor]:
        data = x.detach().to(device).requires_grad_()
        out = function(data, dim=dim)
        (out * x.to(device)).sum().backward()
        return [out, data.grad]

    for dim in (0, 1, -1):
        both(lambda d: work(d, dim), atol=1e-5, rtol=1e-5)  # noqa: B023


def test_softmax_of_special_values(mode: str) -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[-inf, -inf, -inf], [0.0, nan, 1.0], [inf, 0.0, 1.0], [-inf, 0.0, 1.0], [1e30, -1e30, 0.0]])
    both(lambda d: [x.to(d).softmax(1), x.to(d).log_softmax(1)], atol=1e-6, rtol=1e-6)
    both(lambda d: torch.tensor(2.0).to(d).softmax(0))
    both(lambda d: torch.zeros(0, 3).to(d).softmax(1))


def test_softmax_dtypes(mode: str) -> None:
    x = torch.randn(4, 9)
    both(lambda d: x.bfloat16().to(d).softmax(-1), atol=1e-2, rtol=1e-2)
    both(lambda d: x.bfloat16().to(d).softmax(-1, dtype=torch.float32), atol=1e-5, rtol=1e-5)
    both(lambda d: x.double().to(d).softmax(-1), atol=1e-14, rtol=1e-14)


def test_weight_norm(mode: str) -> None:
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(6, 4))
    state, x = layer.state_dict(), torch.randn(3, 6)

    def work(device: str) -> list[torch.Tensor]:
        copy = nn.utils.parametrizations.weight_norm(nn.Linear(6, 4)).to(device)
        copy.load_state_dict(state)
        out = copy(x.to(device))
        out.square().sum().backward()
        return [out, *(p.grad for p in copy.parameters())]

    both(work, atol=1e-4, rtol=1e-4)


def test_wrong_shape_raises_as_on_cpu(mode: str) -> None:
    with pytest.raises(RuntimeError, match="normalized_shape"):
        F.layer_norm(torch.ones(3, 4, device="tpu"), (5,))
