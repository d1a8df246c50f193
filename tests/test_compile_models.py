"""Whole models under torch.compile(backend="tpu"), fullgraph: loss and gradients are CPU eager's, one program each way."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_tpu
import torch_tpu.compile
from compare import same
from torch import nn

torch_tpu.compile.register()

Case = tuple[nn.Module, Callable[[nn.Module, Any], torch.Tensor], Any]


def mlp() -> Case:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    return model, lambda m, x: m(x).square().mean(), torch.randn(3, 8)


def gpt2() -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=32, bos_token_id=0, eos_token_id=0, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    model.loss_type = "ForCausalLM"  # else Transformers logs, and Dynamo breaks the graph at the logger
    return model, lambda m, x: m(x, labels=x).loss, torch.randint(0, 64, (2, 16))


def llama() -> Case:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        num_hidden_layers=2, hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2, vocab_size=64,
        max_position_embeddings=32,
    )  # fmt: skip
    return LlamaForCausalLM(config), lambda m, x: m(x, labels=x).loss, torch.randint(0, 64, (2, 16))


def resnet() -> Case:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(depths=[1, 1], hidden_sizes=[8, 16], layer_type="basic", num_labels=4, embedding_size=8)
    model = ResNetForImageClassification(config)
    return model, lambda m, x: nn.functional.cross_entropy(m(x).logits, x.new_zeros(4).long()), torch.rand(4, 3, 32, 32)


def bert() -> Case:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48, vocab_size=64, max_position_embeddings=32,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    config.problem_type = "single_label_classification"
    return BertForSequenceClassification(config), lambda m, x: m(x, labels=x[:, 0] % 2).loss, torch.randint(0, 64, (2, 16))


def t5() -> Case:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=64, dropout_rate=0.0)
    config.decoder_start_token_id = 0
    return T5ForConditionalGeneration(config), lambda m, x: m(x, labels=x).loss, torch.randint(0, 64, (2, 12))


def vit() -> Case:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48, image_size=32, patch_size=8, num_labels=4,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = ViTForImageClassification(config)
    return model, lambda m, x: nn.functional.cross_entropy(m(x).logits, x.new_zeros(2).long()), torch.rand(2, 3, 32, 32)


@pytest.mark.parametrize("case", [mlp, gpt2, llama, resnet, bert, t5, vit], ids=lambda case: case.__name__)
def test_loss_and_gradients(case: Callable[[], Case]) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    reference, loss_of, x = case()
    reference.train()
    model = copy.deepcopy(reference).to("tpu")
    compiled = torch.compile(loss_of, backend="tpu", fullgraph=True)
    torch_tpu.reset_fallback_counts()
    before = torch_tpu._C.cache_stats()["requests"]
    for step in range(2):
        reference.zero_grad()
        model.zero_grad()
        want = loss_of(reference, x)
        want.backward()
        got = compiled(model, x.to("tpu"))
        got.backward()
        same(got, want, atol=1e-5, rtol=1e-5)
        for (name, p), q in zip(model.named_parameters(), reference.parameters(), strict=True):
            assert (p.grad is None) == (q.grad is None), name
            if q.grad is not None:
                # Accumulation order differs over whole models.
                scale = float(q.grad.abs().max())
                same(p.grad, q.grad, atol=2e-5 * scale + 2e-6, rtol=1e-4)
        same(dict(model.named_buffers()), dict(reference.named_buffers()), atol=1e-6, rtol=1e-5)
        programs = torch_tpu._C.cache_stats()["requests"] - before
        if step == 0:
            first = programs
    assert programs - first <= 1, "a step that comes again makes no program"
    assert torch_tpu.fallback_counts() == {}
