"""Steps captured ahead of time: the program, run on this host's plugin with real values, does what eager CPU PyTorch does."""

from __future__ import annotations

import copy
import functools

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch_tpu import aot


class Block(torch.nn.Module):
    def __init__(self, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.embed = torch.nn.Embedding(50, width)
        self.norm = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width, bias=False)  # a key's bias has no gradient but noise
        self.out = torch.nn.Linear(width, width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        h = self.embed(ids)
        b, t, d = h.shape
        q, k, v = (x.view(b, t, self.heads, d // self.heads).transpose(1, 2) for x in self.qkv(self.norm(h)).split(d, -1))
        h = h + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return h @ self.embed.weight.T  # tied


def train_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer):
    def step(ids: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids).flatten(0, 1), target.flatten())
        loss.backward()
        optimizer.step()
        return loss

    return step


def named_state(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None) -> dict[str, torch.Tensor]:
    found = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for name, parameter in model.named_parameters():
        for key, value in (optimizer.state[parameter] if optimizer else {}).items():
            found[f"{name}.{key}"] = value
    return found


OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-2),
    "one by one": lambda p: torch.optim.Adam(p, lr=1e-2, foreach=False),
}


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_the_steady_step_does_what_eager_does(name: str) -> None:
    model = Block()
    optimizer = OPTIMIZERS[name](model.parameters())
    step = train_step(model, optimizer)
    ids, target = torch.randint(50, (2, 8)), torch.randint(50, (2, 8))

    fresh = copy.deepcopy(model)
    captured = aot.capture(train_step(fresh, OPTIMIZERS[name](fresh.parameters())), (ids, target), tpu=False)
    step(ids, target)
    values = {key: value.detach().clone() for key, value in named_state(model, optimizer).items()}
    values |= {"input 0": ids, "input 1": target}
    want = step(ids, target)

    arguments = [values[key].to("tpu") for key in captured.inputs]
    (loss,) = captured.run(arguments)
    torch.testing.assert_close(loss.cpu(), want, rtol=1e-5, atol=1e-6)
    after = named_state(model, optimizer)
    updated = [captured.inputs[i] for i, _ in captured.updates]
    assert {"embed.weight", "out.bias", "norm.weight"} <= set(updated)
    for key, value in zip(captured.inputs, arguments, strict=True):
        if key in updated:
            torch.testing.assert_close(value.cpu(), after[key], rtol=1e-3, atol=1e-5, msg=lambda text, key=key: f"{key}: {text}")
    assert captured.outputs.count("result 0") == 1
    assert not [output for output in captured.outputs if output.endswith(".grad")]  # the step clears them


def test_meta_and_real_tensors_give_the_same_program() -> None:
    real = Block()
    with torch.device("meta"):
        meta = Block()
    ids = torch.zeros(2, 8, dtype=torch.int64)
    a = aot.capture(real, (ids,), tpu=False)
    b = aot.capture(meta, (ids.to("meta"),), tpu=False)
    assert a == b
    assert a.inputs[0] == "embed.weight" and a.inputs[-1] == "input 0"


def test_fake_tensors_suffice() -> None:
    with FakeTensorMode():
        fake, x = torch.nn.Linear(16, 8), torch.empty(4, 16)
    captured = aot.capture(fake, (x,), tpu=False)
    assert sorted(captured.inputs) == ["bias", "input 0", "weight"]
    assert type(fake.weight.data).__name__ == "FakeTensor" and fake.weight.shape == (8, 16)


def test_everything_is_put_back() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, 0.5, total_iters=2)
    x = torch.randn(8, 4)

    def step(x: torch.Tensor) -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    step(x)
    identities = [id(p) for p in model.parameters()]
    before = {key: value.detach().clone() for key, value in named_state(model, optimizer).items()}
    gradients = [p.grad.clone() for p in model.parameters()]
    rate = optimizer.param_groups[0]["lr"]
    aot.capture(step, (x,))
    assert [id(p) for p in model.parameters()] == identities
    for key, value in named_state(model, optimizer).items():
        assert value.device.type == "cpu"
        torch.testing.assert_close(value.detach(), before[key], rtol=0, atol=0)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=0, atol=0)
    assert optimizer.param_groups[0]["lr"] == rate
    scheduler.step()
    step(x)  # and goes on

    with pytest.raises(ZeroDivisionError):
        aot.capture(lambda: (optimizer.step(), 1 / 0)[0])
    assert all(p.device.type == "cpu" for p in model.parameters())


def test_gradients_that_stay_are_outputs() -> None:
    model = torch.nn.Linear(4, 2)
    x = torch.randn(3, 4)

    def accumulate(x: torch.Tensor) -> None:
        model(x).square().sum().backward()

    captured = aot.capture(accumulate, (x,), tpu=False)
    assert captured.outputs == ["weight.grad", "bias.grad"]
    start = {"weight.grad": torch.randn(2, 4), "bias.grad": torch.randn(2)}
    values = {"input 0": x, **dict(model.named_parameters()), **start}
    arguments = [values[name].detach().to("tpu") for name in captured.inputs]
    assert captured.run(arguments) == []
    accumulate(x)
    for name, value in zip(captured.inputs, arguments, strict=True):
        if name.endswith(".grad"):
            parameter = dict(model.named_parameters())[name.removesuffix(".grad")]
            torch.testing.assert_close(value.cpu(), start[name] + parameter.grad)


def test_what_a_step_holds_is_found() -> None:
    scale = torch.full((4,), 2.0)
    layer = torch.nn.Linear(4, 4)

    class Trainer:
        def __init__(self) -> None:
            self.parts = {"layer": layer}

        def step(self, x: torch.Tensor) -> torch.Tensor:
            return self.parts["layer"](x)

    def by_default(x: torch.Tensor, model: torch.nn.Module = layer) -> torch.Tensor:
        return model(x)

    x = torch.ones(2, 4)
    for step in (Trainer().step, by_default, functools.partial(lambda m, x: m(x), layer), layer.forward):
        assert sorted(aot.capture(step, (x,)).inputs) == ["bias", "input 0", "weight"]
    captured = aot.capture(lambda x: x * scale, (x,), tpu=False)
    assert captured.inputs in (["input 0", "scale"], ["scale", "input 0"])
    order = {"input 0": x.to("tpu"), "scale": scale.to("tpu")}
    assert captured.run([order[name] for name in captured.inputs])[0].cpu().tolist() == [[2.0] * 4] * 2


def test_random_state_is_an_input() -> None:
    captured = aot.capture(torch.nn.Dropout(0.5), (torch.ones(100, 100),), tpu=False)
    assert captured.inputs == ["input 0", "random state"]
    state = torch.tensor([7, 0], dtype=torch.uint64).to("tpu")
    (dropped,) = captured.run([torch.ones(100, 100, device="tpu"), state])
    assert 0.4 < (dropped.cpu() == 0).float().mean() < 0.6


def test_a_read_on_the_host_names_the_line() -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match=r"test_aot_capture.py:\d+ \(`return x if x.sum\(\) > 0 else -x`\) reads a value"):
        aot.capture(step, (torch.ones(3),))


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="expected a callable step, got int"):
        aot.capture(3, ())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected example_inputs as a tuple, got Tensor"):
        aot.capture(torch.tanh, torch.ones(2))
    captured = aot.capture(torch.tanh, (torch.ones(2),), tpu=False)
    with pytest.raises(ValueError, match=r"expected 1 arguments \(input 0, ...\), got 0"):
        captured.run([])
    with pytest.raises(RuntimeError, match="expected tensors on tpu, got one on cpu"):
        captured.run([torch.ones(2)])
