"""torch.autocast("tpu"): the default dtype and PyTorch's cast lists."""

from __future__ import annotations

import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32


def _ones(*sizes: int, dtype: torch.dtype = F32) -> torch.Tensor:
    return torch.ones(sizes, dtype=dtype).to("tpu")


def test_default_dtype() -> None:
    assert torch.amp.is_autocast_available("tpu")
    assert torch.get_autocast_dtype("tpu") is BF16
    assert not torch.is_autocast_enabled("tpu")
    with torch.autocast("tpu"):
        assert torch.is_autocast_enabled("tpu") and torch.get_autocast_dtype("tpu") is BF16
    assert not torch.is_autocast_enabled("tpu")


def test_default_dtype_in_a_thread_that_uses_the_device() -> None:
    seen = []

    def work() -> None:
        with torch.tpu.device(0):
            x = _ones(2, 2)
        with torch.autocast("tpu"):
            seen.append((x @ x).dtype)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [BF16]


@pytest.mark.parametrize("dtype", [BF16, F16])
def test_lower_precision_ops(dtype: torch.dtype) -> None:
    x, w = _ones(2, 4), _ones(4, 4)
    with torch.autocast("tpu", dtype=dtype):
        assert (x @ w).dtype is dtype
        assert torch.mm(x, w).dtype is dtype
        assert F.linear(x, w).dtype is dtype
        assert torch.addmm(_ones(4), x, w).dtype is dtype
        assert torch.bmm(_ones(1, 2, 4), _ones(1, 4, 2)).dtype is dtype
        assert F.conv2d(_ones(1, 1, 4, 4), _ones(1, 1, 2, 2)).dtype is dtype
        q = _ones(1, 1, 4, 8)
        assert F.scaled_dot_product_attention(q, q, q).dtype is dtype
    assert (x @ w).dtype is F32


@pytest.mark.parametrize(
    "op",
    [
        torch.exp,
        torch.log,
        torch.rsqrt,
        lambda x: torch.pow(x, 2.5),
        lambda x: F.layer_norm(x, (4,)),
        lambda x: F.mse_loss(x, x),
        lambda x: F.softmax(x, -1),
        lambda x: F.log_softmax(x, -1),
        lambda x: F.cross_entropy(x, torch.zeros(2, dtype=torch.int64).to("tpu")),
        torch.sum,
        lambda x: torch.cumsum(x, 0),
        lambda x: torch.norm(x, 2),
    ],
)
def test_float32_ops(op: object) -> None:
    with torch.autocast("tpu"):
        assert op(_ones(2, 4, dtype=BF16)).dtype is F32  # type: ignore[operator]


def test_promoting_and_other_ops() -> None:
    a, b = _ones(3), _ones(3, dtype=BF16)
    with torch.autocast("tpu"):
        assert torch.addcmul(a, b, b).dtype is F32
        assert torch.dot(b, b).dtype is BF16
        assert (b + b).dtype is BF16 and torch.relu(b).dtype is BF16
        assert (a.double().cpu() @ a.double().cpu()).dtype is torch.float64
        with torch.autocast("tpu", enabled=False):
            assert (_ones(2, 2) @ _ones(2, 2)).dtype is F32
    i = torch.ones(2, 2, dtype=torch.int64).to("tpu")
    with torch.autocast("tpu"):
        assert (i + i).dtype is torch.int64


def test_binary_cross_entropy_is_refused() -> None:
    with torch.autocast("tpu"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        F.binary_cross_entropy(_ones(2) * 0.5, _ones(2))


def test_unsupported_dtype_disables() -> None:
    with pytest.warns(UserWarning, match="dtype is not supported"):
        context = torch.autocast("tpu", dtype=torch.int32)
    with context:
        assert (_ones(2, 2) @ _ones(2, 2)).dtype is F32


def test_training_keeps_float32_gradients() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2)).to("tpu")
    with torch.autocast("tpu"):
        out = model(_ones(3, 4))
        loss = F.cross_entropy(out, torch.tensor([0, 1, 0]).to("tpu"))
    assert out.dtype is BF16 and loss.dtype is F32
    loss.backward()
    assert all(p.grad is not None and p.grad.dtype is F32 and p.grad.is_tpu for p in model.parameters())


def test_values_follow_cpu_autocast() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(8, 16), torch.randn(4, 16)

    def run(device: str) -> torch.Tensor:
        with torch.autocast(device):
            return F.linear(x.to(device), w.to(device)).cpu()

    torch.testing.assert_close(run("tpu"), run("cpu"), atol=0.05, rtol=0.02)


def test_casts_are_cached_within_a_region() -> None:
    w = _ones(4, 4).requires_grad_()
    with torch.autocast("tpu"):
        total = (_ones(2, 4) @ w).sum() + (_ones(2, 4) @ w).sum()
    total.backward()
    assert w.grad is not None and w.grad.cpu().eq(4).all()


def test_each_thread_starts_with_bfloat16() -> None:
    seen: list[torch.dtype] = []
    x = torch.ones(2, 2, device="tpu")

    def work() -> None:
        seen.append(torch.get_autocast_dtype("tpu"))

    def cast() -> None:
        with torch.autocast("tpu"):
            seen.append((x @ x).dtype)

    for target in (work, cast):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    assert seen == [torch.bfloat16, torch.bfloat16]


def test_the_dtype_is_a_constant_of_a_compiled_graph() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("tpu"):
            return (x @ x).to(torch.get_autocast_dtype("tpu"))

    x = torch.ones(2, 2, device="tpu")
    assert torch.compile(fn, backend="tpu", fullgraph=True)(x).dtype is torch.bfloat16
