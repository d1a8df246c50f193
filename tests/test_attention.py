"""Scaled dot-product attention with masks, causality, grouped heads and gradients."""

from __future__ import annotations

import pytest
import torch
from compare import both
from torch import nn
from torch.nn import functional as F  # noqa: N812


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


def test_bfloat16(mode: str) -> None:
    q, k, v = (torch.randn(2, 4, 7, 8).bfloat16() for _ in range(3))
    both(lambda d: F.scaled_dot_product_attention(q.to(d), k.to(d), v.to(d), is_causal=True), atol=2e-2, rtol=2e-2)


def test_dropout_drops_and_keeps_the_mean(mode: str) -> None:
    q, k = torch.zeros(1, 1, 64, 8), torch.zeros(1, 1, 64, 8)
    v = torch.ones(1, 1, 64, 64)
    out = F.scaled_dot_product_attention(q.to("tpu"), k.to("tpu"), v.to("tpu"), dropout_p=0.5).cpu()
    assert out.std() > 0 and abs(out.mean() - 1) < 0.1


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
