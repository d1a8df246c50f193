"""What is measured: each case makes its tensors on a device and gives a function that does the work `n` times."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

Work = Callable[[int], Any]


def add(device: str) -> Work:
    """`a + b` on 16x16 floats, with creation and release of the result."""
    a, b = torch.rand(16, 16).to(device), torch.rand(16, 16).to(device)

    def work(n: int) -> torch.Tensor:
        out = a
        for _ in range(n):
            out = a + b
        return out

    return work


def chain(device: str) -> Work:
    """A chain of 100 dependent ops on 16x16 floats."""
    a, b = torch.rand(16, 16).to(device), torch.rand(16, 16).to(device)

    def work(n: int) -> torch.Tensor:
        x = a
        for _ in range(n):
            x = a
            for _ in range(25):
                x = torch.tanh((x * b + a) - b)
        return x

    return work


def matmul(device: str) -> Work:
    """1024x1024 float32 matrix product."""
    a, b = torch.rand(1024, 1024).to(device), torch.rand(1024, 1024).to(device)

    def work(n: int) -> torch.Tensor:
        out = a
        for _ in range(n):
            out = a @ b
        return out

    return work


def matmul_bf16(device: str) -> Work:
    """1024x1024 bfloat16 matrix product."""
    a, b = (torch.rand(1024, 1024).bfloat16().to(device) for _ in range(2))

    def work(n: int) -> torch.Tensor:
        out = a
        for _ in range(n):
            out = a @ b
        return out

    return work


def _training(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss_of: Callable[[], torch.Tensor]) -> Work:
    def work(n: int) -> torch.Tensor:
        loss = torch.zeros(())
        for _ in range(n):
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            optimizer.step()
        return loss

    return work


def mlp(device: str) -> Work:
    """A training step of an MLP 256-512-256: batch 64, AdamW."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)).to(device)
    x, y = torch.randn(64, 256).to(device), torch.randn(64, 256).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return _training(model, optimizer, lambda: F.mse_loss(model(x), y))


def mlp_small(device: str) -> Work:
    """A training step of a small MLP: batch 8, SGD."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to(device)
    x, y = torch.randn(8, 8).to(device), torch.randn(8, 4).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    return _training(model, optimizer, lambda: F.mse_loss(model(x), y))


def digits(device: str) -> Work:
    """A training step of the digits example: batch 64, SGD with momentum."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
    from digits import DigitNet

    torch.manual_seed(0)
    model = DigitNet().to(device)
    images, labels = torch.rand(64, 1, 8, 8).to(device), torch.randint(0, 10, (64,)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    return _training(model, optimizer, lambda: F.cross_entropy(model(images), labels))


def gpt2(device: str) -> Work:
    """A training step of GPT-2: 4 layers, width 256, batch 4 of 128 tokens, AdamW."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=4,
        n_embd=256,
        n_head=4,
        vocab_size=1024,
        n_positions=128,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        attn_implementation="eager",
    )
    model = GPT2LMHeadModel(config).to(device)
    tokens = torch.randint(0, 1024, (4, 128)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return _training(model, optimizer, lambda: model(tokens, labels=tokens).loss)


def _llama(device: str) -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        num_hidden_layers=4,
        hidden_size=256,
        intermediate_size=688,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=1024,
        max_position_embeddings=128,
        attn_implementation="eager",
    )
    return LlamaForCausalLM(config).to(device)


def llama(device: str) -> Work:
    """A training step of Llama: 4 layers, width 256, batch 4 of 128 tokens, AdamW."""
    model = _llama(device)
    tokens = torch.randint(0, 1024, (4, 128)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return _training(model, optimizer, lambda: model(tokens, labels=tokens).loss)


def llama_forward(device: str) -> Work:
    """A forward pass of the same Llama, without gradients."""
    model = _llama(device).eval()
    tokens = torch.randint(0, 1024, (4, 128)).to(device)

    def work(n: int) -> torch.Tensor:
        logits = torch.zeros(())
        with torch.no_grad():
            for _ in range(n):
                logits = model(tokens, use_cache=False).logits
        return logits

    return work


def resnet18(device: str) -> Work:
    """A training step of ResNet-18 (Transformers' ResNet): batch 8 of 3x64x64, SGD."""
    from transformers import ResNetConfig, ResNetForImageClassification

    torch.manual_seed(0)
    config = ResNetConfig(
        depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic", num_labels=10, embedding_size=64
    )
    model = ResNetForImageClassification(config).to(device)
    images, labels = torch.rand(8, 3, 64, 64).to(device), torch.randint(0, 10, (8,)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return _training(model, optimizer, lambda: F.cross_entropy(model(images).logits, labels))


CASES: dict[str, Callable[[str], Work]] = {
    case.__name__: case
    for case in (add, chain, matmul, matmul_bf16, mlp, mlp_small, digits, gpt2, llama, llama_forward, resnet18)
}
