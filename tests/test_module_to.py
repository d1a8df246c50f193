"""`Module.to("tpu")` keeps what users hold on to: the parameters themselves, ties, hooks, optimizers."""

from __future__ import annotations

import copy
import weakref

import pytest
import torch
from compare import same
from torch import nn
from torch.nn.utils import parametrizations


class Tied(nn.Module):
    """A language model's first and last layer, sharing their weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        self.head = nn.Linear(4, 8, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(x))


@pytest.mark.parametrize("move", [lambda m, d: m.to(d), lambda m, d: m.tpu() if d == "tpu" else m.cpu()])
def test_parameters_stay_the_same_objects(move) -> None:
    model = nn.Linear(2, 3)
    before = dict(model.named_parameters())
    values = {name: p.detach().clone() for name, p in before.items()}
    for device in ("tpu", "cpu", "tpu"):
        assert move(model, device) is model
        for name, parameter in model.named_parameters():
            assert parameter is before[name] and parameter.device.type == device
            assert type(parameter) is nn.Parameter and parameter.requires_grad and parameter.is_leaf
            same(parameter, values[name])


def test_tied_weights_stay_tied_and_train() -> None:
    def losses(device: str) -> list[float]:
        torch.manual_seed(0)
        model = Tied().to(device)
        assert model.head.weight is model.embed.weight
        tokens = torch.arange(8).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        found = []
        for _ in range(5):
            loss = nn.functional.cross_entropy(model(tokens), tokens.roll(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        assert model.head.weight.data_ptr() == model.embed.weight.data_ptr()
        return found

    torch.testing.assert_close(torch.tensor(losses("tpu")), torch.tensor(losses("cpu")), rtol=1e-4, atol=0)


def test_an_optimizer_made_before_the_move_updates_the_model() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.to("tpu")
    before = model.weight.detach().cpu()
    model(torch.ones(1, 2, device="tpu")).sum().backward()
    optimizer.step()
    same(model.weight, before - 1.0)


def test_weak_references_live_on() -> None:
    model = nn.Linear(2, 2)
    reference = weakref.ref(model.weight)
    model.to("tpu")
    assert reference() is model.weight and model.weight.is_tpu
    model.to("cpu")
    assert reference() is model.weight


def test_after_a_backward_gradients_move_along() -> None:
    model = nn.Linear(2, 1)
    loss = model(torch.ones(1, 2)).sum()
    loss.backward()
    model.to("tpu")
    assert model.weight.grad is not None and model.weight.grad.is_tpu
    same(model.weight.grad, torch.ones(1, 2))
    model(torch.ones(1, 2, device="tpu")).sum().backward()
    same(model.weight.grad, torch.full((1, 2), 2.0))
    model.to("cpu")
    model(torch.ones(1, 2)).sum().backward()
    same(model.weight.grad, torch.full((1, 2), 3.0))


def test_hooks_of_a_parameter_live_on() -> None:
    model = nn.Linear(2, 1, bias=False)
    model.weight.register_hook(lambda grad: grad * 10)
    seen = []
    model.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p))
    model.to("tpu")
    model(torch.ones(1, 2, device="tpu")).sum().backward()
    same(model.weight.grad, torch.full((1, 2), 10.0))
    assert len(seen) == 1 and seen[0] is model.weight


def test_attributes_of_a_parameter_live_on() -> None:
    model = nn.Linear(2, 1)
    model.weight.is_special = True
    model.to("tpu")
    assert model.weight.is_special


def test_parametrized_modules() -> None:
    def build(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        model = parametrizations.weight_norm(nn.Linear(3, 2))
        original = model.parametrizations.weight.original0
        model.to(device)
        assert model.parametrizations.weight.original0 is original
        return model(torch.ones(1, 3, device=device))

    same(build("tpu"), build("cpu"), rtol=1e-5, atol=1e-6)


def test_deepcopy_of_a_moved_module_is_independent() -> None:
    model = Tied().to("tpu")
    other = copy.deepcopy(model)
    assert other.head.weight is other.embed.weight and other.head.weight.is_tpu
    with torch.no_grad():
        other.head.weight.zero_()
    assert model.head.weight.abs().sum().item() > 0


def test_buffers_and_dtype_move_too() -> None:
    model = nn.BatchNorm1d(2).to("tpu", torch.bfloat16)
    assert model.running_mean.is_tpu and model.running_mean.dtype == torch.bfloat16
    assert model.weight.dtype == torch.bfloat16 and model.num_batches_tracked.dtype == torch.int64


def test_frozen_parameters_stay_frozen() -> None:
    model = nn.Linear(2, 2).requires_grad_(False).to("tpu")
    assert not model.weight.requires_grad and model.weight.grad is None


def test_modules_that_stay_on_the_cpu_keep_pytorchs_rules() -> None:
    model = nn.Linear(2, 2)
    weight, reference = model.weight, weakref.ref(model.weight)
    model.to(torch.float64)
    assert model.weight is weight is reference() and not torch.__future__.get_swap_module_params_on_conversion()


def test_assigning_data_across_devices() -> None:
    parameter = nn.Parameter(torch.zeros(2))
    parameter.data = torch.ones(3, device="tpu")
    assert parameter.is_tpu and parameter.shape == (3,) and parameter.requires_grad
    parameter.data = torch.ones(1)
    assert parameter.device.type == "cpu"


def test_to_empty_and_meta() -> None:
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    model.to_empty(device="tpu")
    assert model.weight.is_tpu and model.weight.shape == (2, 2)


@pytest.mark.timeout(600)
def test_tied_gpt2_trains_as_on_the_cpu() -> None:
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
    model = GPT2LMHeadModel(config)
    tokens = torch.randint(0, 1024, (4, 128)).to("tpu")
    model.to("tpu")
    assert model.lm_head.weight is model.transformer.wte.weight
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(14):
        loss = model(tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.testing.assert_close(torch.tensor([losses[0], losses[13]]), torch.tensor([6.9986, 2.7718]), rtol=1e-3, atol=0)
