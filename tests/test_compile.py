"""torch.compile(backend="tpu"): effects, aliases, random numbers, sizes, control flow, and what users get wrong."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import child
import pytest
import torch
import torch.nn.functional as F
import torch_tpu
import torch_tpu.compile
from compare import same
from torch import nn
from torch.utils.checkpoint import checkpoint

torch_tpu.compile.register()


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch_tpu.reset_fallback_counts()
    yield


def compiled(fn: Any, **kwargs: Any) -> Any:
    return torch.compile(fn, backend="tpu", fullgraph=True, **kwargs)


def requests() -> int:
    return torch_tpu._C.cache_stats()["requests"]


# --- effects and aliases


def test_a_cache_that_is_written_is_donated() -> None:
    cache = torch.zeros(4, 8, device="tpu")

    def write(cache, i, x):
        cache[i] = x
        return cache.sum()

    program = compiled(write)
    for i in range(4):
        assert program(cache, torch.tensor([i], device="tpu"), torch.ones(8, device="tpu")).item() == 8.0 * (i + 1)
    same(cache, torch.ones(4, 8))
    view = cache[1]  # an alias sees what the program writes
    program(cache, torch.tensor([1], device="tpu"), torch.zeros(8, device="tpu"))
    same(view, torch.zeros(8))


def test_batch_norm_statistics() -> None:
    reference = nn.BatchNorm1d(4)
    model = copy.deepcopy(reference).to("tpu")
    program = compiled(model)
    for _ in range(3):
        x = torch.randn(5, 4)
        same(program(x.to("tpu")), reference(x), atol=1e-5, rtol=1e-5)
    same(dict(model.named_buffers()), dict(reference.named_buffers()), atol=1e-6)


def test_outputs_that_alias() -> None:
    y = torch.randn(2, 3).to("tpu")
    same_one, flat, other, turned = compiled(lambda a: (a, a.view(-1), a + 1, a.t()))(y)
    assert same_one is y and flat.data_ptr() == y.data_ptr() == turned.data_ptr() and other.data_ptr() != y.data_ptr()

    def parts(a):
        b = a + 1
        return b, b[0], b.t()

    whole, row, turned = compiled(parts)(y)
    whole.zero_()
    same([row, turned], [torch.zeros(3), torch.zeros(3, 2)])
    assert turned.stride() == (1, 3)


def test_arguments_may_be_views() -> None:
    base = torch.randn(4, 6)
    program = compiled(lambda x: x * 2 + 1)
    for view in (lambda t: t, lambda t: t.t(), lambda t: t[1:3], lambda t: t[:, ::2], lambda t: t.expand(2, 4, 6)):
        got = program(view(base.to("tpu")))
        want = view(base) * 2 + 1
        same(got, want)
        assert got.stride() == want.stride()


def test_host_tensors_meet_device_tensors() -> None:
    x, scale = torch.randn(3), torch.tensor(2.0)
    program = compiled(lambda x, s: x * s + s)
    same(program(x.to("tpu"), scale), x * 2 + 2)
    scale.fill_(3.0)
    same(program(x.to("tpu"), scale), x * 3 + 3, atol=1e-6)
    made, counted = compiled(lambda x: (x + 1, torch.arange(3)))(x.to("tpu"))
    assert made.device.type == "tpu" and counted.device.type == "cpu"
    same(compiled(lambda x: x + 1)(x), x + 1)  # a graph without the device


def test_fused_mode_meets_compiled_graphs() -> None:
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_AND_FUSE):
        x = torch.randn(3)
        y = compiled(lambda y: y + 1)(x.to("tpu") * 2)
        same(y * 2, (x * 2 + 1) * 2)


# --- random numbers


def test_dropout_follows_eagers_stream() -> None:
    x = torch.ones(64, 64, device="tpu")
    program = compiled(lambda x: F.dropout(x, 0.5))
    torch.manual_seed(0)
    first, second = program(x).cpu(), program(x).cpu()
    assert (first != second).any()
    torch.manual_seed(0)
    same([F.dropout(x, 0.5), F.dropout(x, 0.5)], [first, second])


def test_dropout_backward_has_the_same_mask() -> None:
    x = torch.ones(64, 64, device="tpu").requires_grad_()
    y = compiled(lambda x: F.dropout(x, 0.5))(x)
    y.sum().backward()
    same(x.grad, y)


def test_recomputation_draws_the_same_numbers() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.GELU()).to("tpu")

    def loss(x):
        return checkpoint(model, x, use_reentrant=False).sum()

    x = torch.randn(4, 8).to("tpu")
    gradients = []
    for fn in (loss, compiled(loss)):
        given = x.clone().requires_grad_()
        torch.manual_seed(0)
        fn(given).backward()
        gradients.append(given.grad)
    same(gradients[1], gradients[0], atol=1e-6)


# --- sizes and numbers


def test_dynamic_sizes_are_one_graph() -> None:
    def fn(x):
        return (x * x.shape[0]).sum(-1)

    program = compiled(fn, dynamic=True)
    for n in (3, 4, 9, 3):
        x = torch.randn(n, 4)
        before = requests()
        same(program(x.to("tpu")), fn(x), atol=1e-5)
    assert requests() == before, "a size that comes again has its program"


def test_too_many_programs_warn_once() -> None:
    program = torch.compile(lambda x: x * 2, backend="tpu", dynamic=True, options={"max_programs": 2})
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in range(2, 8):
            same(program(torch.ones(n, device="tpu")), torch.full((n,), 2.0))
    texts = [str(w.message) for w in seen if "max_programs" in str(w.message)]
    assert len(texts) == 1 and "mark_dynamic" in texts[0]


def test_python_numbers() -> None:
    program = torch.compile(lambda x, k: x * k + 1, backend="tpu")
    x = torch.randn(3)
    for k in (1.5, 2.5, 3, 4, 5.5):
        same(program(x.to("tpu"), k), x * k + 1, atol=1e-6)


# --- training


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.AdamW(p, lr=1e-2),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.Adam(p, fused=True),
    ],
    ids=["adamw", "sgd", "fused_adam"],
)
def test_an_optimizer_step(make: Callable[[Any], torch.optim.Optimizer]) -> None:
    reference = nn.Linear(4, 4)
    model = copy.deepcopy(reference).to("tpu")
    optimizers = make(reference.parameters()), make(model.parameters())
    step = torch.compile(lambda: optimizers[1].step(), backend="tpu")
    x = torch.randn(3, 4)
    for _ in range(3):
        for m, o, run in ((reference, optimizers[0], optimizers[0].step), (model, optimizers[1], step)):
            o.zero_grad()
            m(x.to(m.weight.device)).square().sum().backward()
            run()
    same(dict(model.named_parameters()), dict(reference.named_parameters()), atol=1e-5, rtol=1e-5)


def test_autocast_inside_and_around() -> None:
    model = nn.Linear(4, 4).to("tpu")

    def inside(x):
        with torch.autocast("tpu"):
            return model(x)

    assert compiled(inside)(torch.randn(2, 4).to("tpu")).dtype == torch.bfloat16
    program = compiled(lambda x: model(x))
    with torch.autocast("tpu"):
        assert program(torch.randn(2, 4).to("tpu")).dtype == torch.bfloat16


def test_function_transforms() -> None:
    x = torch.randn(3, 2)

    def cubes(x):
        return torch.func.vmap(torch.func.grad(lambda v: (v**3).sum()))(x)

    same(compiled(cubes)(x.to("tpu")), cubes(x), atol=1e-6, rtol=1e-5)

    def forward(x):
        return torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1]

    same(compiled(forward)(x.to("tpu")), x.cos(), atol=1e-6)


# --- control flow


@pytest.mark.parametrize("taken", [True, False])
def test_cond_is_one_program(taken: bool) -> None:
    table = torch.arange(40.0).view(4, 10)  # a constant that is too large to be a literal

    def fn(p, x):
        return torch.cond(p, lambda x: x.sin() * table.to(x.device)[0, :3], lambda x: x.cos() * 2, (x,))

    x = torch.randn(3)
    given, reference = x.to("tpu").requires_grad_(), x.clone().requires_grad_()
    program = compiled(fn)
    before = requests()
    got = program(torch.tensor(taken).to("tpu"), given)
    assert requests() - before <= 2, "no branch is run by itself"
    got.sum().backward()
    want = fn(torch.tensor(taken), reference)
    want.sum().backward()
    same([got, given.grad], [want, reference.grad], atol=1e-6)


def test_while_loop_is_one_program() -> None:
    from torch._higher_order_ops.while_loop import while_loop

    def fn(i, x, y):
        return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2 + y), (i, x))

    i, x, y = torch.tensor(0), torch.randn(3), torch.randn(3)
    same(list(compiled(fn)(i.to("tpu"), x.to("tpu"), y.to("tpu"))), list(fn(i, x, y)), atol=1e-5)


def test_scan_and_map() -> None:
    from torch._higher_order_ops.map import map as mapped
    from torch._higher_order_ops.scan import scan

    x, y = torch.randn(5, 3), torch.randn(3)

    def fn(y, x):
        return scan(lambda c, x: (c + x, c * x), y, x)

    same(list(compiled(fn)(y.to("tpu"), x.to("tpu"))), list(fn(y, x)), atol=1e-6)
    same(compiled(lambda x, y: mapped(torch.mul, x, y))(x.to("tpu"), y.to("tpu")), x * y)


def test_flex_attention() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    def causal(q, k, v):
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf")))

    q, k, v = (torch.randn(1, 2, 128, 16) for _ in range(3))
    want = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    given = [t.to("tpu").requires_grad_() for t in (q, k, v)]
    reference = [t.clone().requires_grad_() for t in (q, k, v)]
    got = compiled(causal)(*given)
    same(got, want, atol=1e-5, rtol=1e-5)
    got.square().sum().backward()
    F.scaled_dot_product_attention(*reference, is_causal=True).square().sum().backward()
    same([t.grad for t in given], [t.grad for t in reference], atol=1e-4, rtol=1e-4)


# --- what cannot be a program


def test_a_branch_on_data_breaks_the_graph() -> None:
    def fn(x):
        y = x * 2
        return y + 1 if y.sum().item() > 0 else y - 1

    x = torch.ones(3)
    same(torch.compile(fn, backend="tpu")(x.to("tpu")), fn(x))
    same(torch.compile(lambda x: torch.nonzero(x > 0) * 2, backend="tpu")(x.to("tpu")), torch.nonzero(x > 0) * 2)


def test_an_op_that_reads_values_runs_between_programs() -> None:
    calls = []

    @torch.library.custom_op("torch_tpu_tests::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.cpu().numpy() * 2)
        return torch.from_numpy(calls[-1]).to(x.device)

    double.register_fake(torch.empty_like)
    x = torch.randn(3)
    program = compiled(lambda x: double(x + 1) * 3)
    for _ in range(2):
        same(program(x.to("tpu")), (x + 1) * 6, atol=1e-6)
    assert len(calls) == 2


def test_an_abstract_value_cannot_be_read() -> None:
    from torch_tpu.compile.capture import NeedsValue, Recorder

    graph = torch.fx.symbolic_trace(lambda x: x + x.sum().item())
    seen = []

    def record(arguments):
        with pytest.raises(NeedsValue) as caught:
            Recorder(graph, torch.device("tpu:0")).run(*arguments)
        seen.append(str(caught.value.__cause__))
        return [arguments[0]], [False]

    x = torch.ones(2, device="tpu")
    (out,) = torch_tpu._C.CompiledGraph(record, "test", 0)([x])
    same(out, torch.ones(2))
    assert "expected a tensor with a value, got an abstract one" in seen[0]


@pytest.mark.parametrize(
    "kwargs, text",
    [
        ({"mode": "zoom"}, "expected mode to be one of default, reduce-overhead"),
        ({"options": {"nope": 1}}, "expected options among async_compile, bucket_size.*got nope"),
        ({"options": {"bucket_size": 0}}, "expected bucket_size to be at least 1, got 0"),
        ({"options": {"num_dynamic_buckets": 9}}, "expected num_dynamic_buckets to be 1 to 8, got 9"),
        ({"options": {"name": 3}}, "expected name to be of type str, got int"),
    ],
)
def test_wrong_options_name_the_right_ones(kwargs: dict[str, Any], text: str) -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=text):
        torch.compile(lambda x: x + 1, backend="tpu", **kwargs)(torch.ones(3, device="tpu"))


@pytest.mark.parametrize("name", ["reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "default"])
def test_modes_are_accepted(name: str) -> None:
    same(torch.compile(lambda x: x + 1, backend="tpu", mode=name)(torch.ones(3, device="tpu")), torch.full((3,), 2.0))


def test_shape_mistakes_are_eagers() -> None:
    with pytest.raises((RuntimeError, torch._dynamo.exc.TorchRuntimeError), match="size|shape"):
        compiled(torch.mm)(torch.ones(2, 3, device="tpu"), torch.ones(2, 3, device="tpu"))


def test_inductor_gives_advice() -> None:
    with pytest.raises(
        Exception, match=r'inductor has no code generator for the tpu device. Use torch.compile\(..., backend="tpu"\)'
    ):
        torch.compile(lambda x: x + 1, backend="inductor")(torch.ones(3, device="tpu"))


def test_compiler_marks_are_harmless() -> None:
    @torch.compiler.disable
    def aside(x):
        return x + 1

    def fn(x):
        torch.compiler.cudagraph_mark_step_begin()
        return aside(x * 2) * 3

    same(torch.compile(fn, backend="tpu")(torch.ones(2, device="tpu")), torch.full((2,), 9.0))


def test_the_backend_is_found_by_its_name_alone() -> None:
    child.run(
        """
        import torch, torch_tpu
        double = torch.compile(lambda x: x + x, backend="tpu")
        assert double(torch.ones(2, device="tpu")).cpu().tolist() == [2, 2]
        assert "tpu" in torch.compiler.list_backends()
        """
    )
