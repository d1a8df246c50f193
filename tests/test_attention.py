"""Scaled dot-product attention with masks, causality, grouped heads and gradients."""

from __future__ import annotations

import pytest
import torch
from compare import both
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.attention import SDPBackend, sdpa_kernel


def masked() -> torch.Tensor:
    mask = torch.randn(2, 1, 7, 9) > 0
    mask[0, 0, 3] = False  # a row that sees nothing
    return mask


# query, key and value, mask, options
CASES = {
    "plain": ((2, 4, 7, 8), (2, 4, 7, 8), None, {}),
    "causal": ((2, 4, 7, 8), (2, 4, 9, 8), None, {"is_causal": True}),
    "scale": ((2, 4, 7, 8), (2, 4, 9, 8), None, {"scale": 0.3}),
    "bias": ((2, 4, 7, 8), (2, 4, 9, 8), lambda: torch.randn(7, 9), {}),
    "batched bias": ((2, 4, 7, 8), (2, 4, 9, 8), lambda: torch.randn(2, 1, 7, 9), {}),
    "mask": ((2, 4, 7, 8), (2, 4, 9, 8), masked, {}),
    "grouped": ((2, 4, 7, 8), (2, 2, 7, 8), None, {"is_causal": True, "enable_gqa": True}),
    "one head": ((2, 7, 8), (2, 9, 8), None, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_attention(mode: str, name: str) -> None:
    query, key, make_mask, options = CASES[name]
    q, k, v = torch.randn(query), torch.randn(key), torch.randn(key)
    mask = make_mask() if make_mask else None
    upstream = torch.randn(query)

    def work(device: str) -> list[torch.Tensor]:
        leaves = [t.detach().to(device).requires_grad_() for t in (q, k, v)]
        bias = None
        if mask is not None:
            bias = mask.to(device).requires_grad_(mask.is_floating_point())
        out = F.scaled_dot_product_attention(*leaves, attn_mask=bias, **options)
        out.backward(upstream.to(device))
        gradients = [leaf.grad for leaf in leaves]
        return [out, *gradients, *([bias.grad] if bias is not None and bias.requires_grad else [])]

    both(work, atol=2e-5, rtol=1e-4)


def biased(*shape: int) -> torch.Tensor:
    bias = torch.randn(shape)
    bias[..., 0, :] = float("-inf")  # a row that sees nothing
    return bias


@pytest.mark.parametrize("bias", [(1, 4, 5, 9), (2, 1, 1, 9), (5, 9), (2, 4, 5, 9)])
@pytest.mark.parametrize("heads", [4, 2, 1])
@pytest.mark.parametrize("positions_first", [True, False])
def test_bias_learns_with_grouped_heads_in_both_layouts(mode: str, bias: tuple, heads: int, positions_first: bool) -> None:
    q, k, v = torch.randn(2, 5, 4, 8), torch.randn(2, 9, heads, 8), torch.randn(2, 9, heads, 6)
    start = biased(*bias) if bias[-2] == 5 else torch.randn(bias)
    upstream = torch.randn(2, 4, 5, 6)

    def work(device: str) -> list[torch.Tensor]:
        leaves = [t.detach().to(device).transpose(1, 2) for t in (q, k, v)]
        leaves = [(t if positions_first else t.contiguous()).requires_grad_() for t in leaves]
        learned = start.detach().to(device).requires_grad_()
        out = F.scaled_dot_product_attention(*leaves, attn_mask=learned, enable_gqa=heads != 4)
        out.backward(upstream.to(device))
        return [out, *(leaf.grad for leaf in leaves), learned.grad]

    both(work, atol=2e-5, rtol=1e-4)


def test_the_result_is_laid_out_as_the_query() -> None:
    projected = torch.randn(2, 7, 4, 8, device="tpu").transpose(1, 2)
    out = F.scaled_dot_product_attention(projected, projected, projected)
    assert out.transpose(1, 2).is_contiguous(), "so that .transpose(1, 2).view(b, s, h * d) costs nothing"
    dense = projected.contiguous()
    assert F.scaled_dot_product_attention(dense, dense, dense).is_contiguous()


def test_probabilities_are_not_kept_for_the_backward() -> None:
    q = torch.randn(1, 2, 256, 8, device="tpu", requires_grad=True)
    torch.tpu.synchronize()
    before = torch.tpu.memory_allocated()
    out = F.scaled_dot_product_attention(q, q, q)
    assert torch.tpu.memory_allocated() - before < 2 * 256 * 256 * 4
    out.sum().backward()


def test_the_user_may_ask_for_the_composite() -> None:
    q = torch.randn(1, 2, 5, 8, device="tpu", requires_grad=True)
    with sdpa_kernel(SDPBackend.MATH):
        out = F.scaled_dot_product_attention(q, q, q)
    assert "Overrideable" not in type(out.grad_fn).__name__
    fused = F.scaled_dot_product_attention(q, q, q)
    assert "Overrideable" in type(fused.grad_fn).__name__
    torch.testing.assert_close(out.cpu(), fused.cpu())
    vmapped = torch.vmap(F.scaled_dot_product_attention)(*(torch.randn(3, 1, 2, 5, 8, device="tpu") for _ in range(3)))
    assert vmapped.shape == (3, 1, 2, 5, 8)


@pytest.mark.parametrize("name", ["causal", "mask", "batched bias", "grouped"])
def test_compiled(name: str) -> None:
    torch._dynamo.reset()
    query, key, make_mask, options = CASES[name]
    q, k, v = torch.randn(query), torch.randn(key), torch.randn(key)
    mask = make_mask() if make_mask else None

    def work(device: str) -> list[torch.Tensor]:
        fn = F.scaled_dot_product_attention
        fn = torch.compile(fn, backend="tpu") if device == "tpu" else fn
        leaves = [t.detach().to(device).requires_grad_() for t in (q, k, v)]
        out = fn(*leaves, attn_mask=None if mask is None else mask.to(device), **options)
        out.square().sum().backward()
        return [out, *(leaf.grad for leaf in leaves)]

    both(work, atol=2e-5, rtol=1e-4)


def test_compiled_for_any_size() -> None:
    torch._dynamo.reset()
    fn = torch.compile(lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True), backend="tpu", dynamic=True)
    for heads, keys in ((4, 7), (2, 9)):
        q, k = torch.randn(2, 4, 7, 8), torch.randn(2, heads, keys, 8)
        want = F.scaled_dot_product_attention(q, k, k, enable_gqa=True)
        torch.testing.assert_close(fn(q.to("tpu"), k.to("tpu")).cpu(), want, atol=2e-5, rtol=1e-4)


def test_bfloat16(mode: str) -> None:
    q, k, v = (torch.randn(2, 4, 7, 8).bfloat16() for _ in range(3))
    both(lambda d: F.scaled_dot_product_attention(q.to(d), k.to(d), v.to(d), is_causal=True), atol=2e-2, rtol=2e-2)


def test_dropout_drops_and_keeps_the_mean(mode: str) -> None:
    q, k = torch.zeros(1, 1, 64, 8), torch.zeros(1, 1, 64, 8)
    v = torch.ones(1, 1, 64, 64)
    out = F.scaled_dot_product_attention(q.to("tpu"), k.to("tpu"), v.to("tpu"), dropout_p=0.5).cpu()
    assert out.std() > 0 and abs(out.mean() - 1) < 0.1


def test_dropout_has_the_gradient_of_what_it_kept(mode: str) -> None:
    # With uniform scores, v's gradient is the column sums of the kept probabilities: out of ones shows their row sums.
    q, k = (torch.zeros(1, 1, 32, 8, device="tpu") for _ in range(2))
    v = torch.ones(1, 1, 32, 4, device="tpu", requires_grad=True)
    out = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    out.sum().backward()
    torch.testing.assert_close(v.grad.cpu().sum(), out.detach().cpu().sum())


def test_multihead_module_trains(mode: str) -> None:
    state = nn.MultiheadAttention(16, 4, batch_first=True).state_dict()
    x = torch.randn(2, 5, 16)

    def work(device: str) -> list[torch.Tensor]:
        layer = nn.MultiheadAttention(16, 4, batch_first=True).to(device)
        layer.load_state_dict(state)
        data = x.to(device)
        out, _ = layer(data, data, data, need_weights=False)
        out.square().sum().backward()
        return [out, *(p.grad for p in layer.parameters())]

    both(work, atol=1e-4, rtol=1e-4)
