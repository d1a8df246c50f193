"""Behaviours that users of PyTorch devices reported as broken; each is checked against CPU PyTorch and literal values.

Matrix-like tests use small integers, which bfloat16 holds exactly, so that they hold on a device that rounds its inputs.
"""

from __future__ import annotations

import copy
import io

import pytest
import torch
import torch.nn.functional as F
import torch_tpu.compile
from compare import both, host, on, same
from torch import nn

pytestmark = pytest.mark.usefixtures("mode")
torch_tpu.compile.register()
NAN = float("nan")


# --- views and aliasing


def test_data_writes_show_in_views_and_swaps_do_not() -> None:
    x = torch.zeros(4, device="tpu")
    view = x.view(2, 2)
    x.data.add_(1)
    same(view, torch.ones(2, 2))
    x.data = x.data + 5
    same(view, torch.ones(2, 2))
    same(x, torch.full((4,), 6.0))
    view.sub_(1)
    same(x, torch.full((4,), 6.0))


def test_data_swap_takes_another_shape_and_dtype() -> None:
    p = nn.Parameter(torch.zeros(3, device="tpu"))
    p.data = torch.ones(2, dtype=torch.bfloat16, device="tpu")
    assert p.shape == (2,) and p.dtype == torch.bfloat16
    same(p.detach() + 1, torch.full((2,), 2.0, dtype=torch.bfloat16))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.float32])
@pytest.mark.parametrize(("low", "high"), [(1, 16), (3, 7), (15, 16), (5, 5)])
def test_fill_of_an_offset_view(dtype: torch.dtype, low: int, high: int) -> None:
    def run(device: str) -> torch.Tensor:
        x = torch.zeros(16, dtype=dtype, device=device)
        x[low:high].fill_(1)
        return x

    assert both(run).tolist() == [1 if low <= n < high else 0 for n in range(16)]


def test_masked_fill_in_place_on_a_transposed_tensor() -> None:
    def run(device: str) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.arange(6.0, device=device).view(2, 3).t()
        x.masked_fill_(on(device, [[True], [False], [True]]), -1.0)
        return x, x.t().contiguous()

    same(both(run)[0], torch.tensor([[-1.0, -1.0], [1.0, 4.0], [-1.0, -1.0]]))


def test_addcdiv_in_place_on_transposed_tensors() -> None:
    def run(device: str) -> torch.Tensor:
        x = torch.zeros(2, 3, device=device).t()
        numerator = torch.arange(6.0, device=device).view(2, 3).t()
        denominator = torch.full((3, 2), 2.0, device=device)
        return x.addcdiv_(numerator, denominator, value=2).add_(numerator, alpha=-1)

    same(both(run), torch.zeros(3, 2))


def test_write_through_a_transpose() -> None:
    def run(device: str) -> torch.Tensor:
        x = torch.arange(4.0, device=device).view(2, 2)
        x.t().mul_(on(device, [[1.0, 10.0], [100.0, 1000.0]]))
        return x

    same(both(run), torch.tensor([[0.0, 100.0], [20.0, 3000.0]]))


def test_convolution_with_a_strided_slice_as_kernel() -> None:
    def run(device: str) -> torch.Tensor:
        weight = torch.arange(24.0, device=device).view(2, 2, 3, 1, 2) - 12
        return F.conv2d(torch.arange(16.0, device=device).view(1, 2, 2, 4), weight[:, :, 1])

    both(run)


def test_linear_with_skipped_rows_and_a_stride_of_zero() -> None:
    def run(device: str) -> tuple[torch.Tensor, torch.Tensor]:
        weight = torch.arange(24.0, device=device).view(6, 4)[::2]
        x = torch.arange(8.0, device=device).as_strided((3, 2, 4), (0, 4, 1))
        return F.linear(x, weight), x.expand(3, 2, 4).sum((0, 1))

    both(run)


# --- numbers and dtypes


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_integer_division_rounds_to_the_right_side(dtype: torch.dtype) -> None:
    def run(device: str) -> list[torch.Tensor]:
        a = on(device, [-47, -7, 7, -7, -1, 6], dtype)
        b = on(device, [47, 2, -2, -2, 3, -3], dtype)
        return [
            torch.div(a, b),
            torch.div(a, b, rounding_mode="trunc"),
            torch.div(a, b, rounding_mode="floor"),
            torch.floor_divide(a, b),
            torch.remainder(a, b),
            torch.fmod(a, b),
            a // 2,
            a % 3,
            -7 % b,
        ]

    got = both(run, rtol=1e-6)
    assert got[1].tolist() == [-1, -3, -3, 3, 0, -2] and got[1].dtype == dtype
    assert got[2].tolist() == [-1, -4, -4, 3, -1, -2]
    assert got[4].tolist() == [0, 1, -1, -1, 2, 0]
    assert got[5].tolist() == [0, -1, 1, -1, -1, 0]


def test_float_remainders_take_the_right_sign() -> None:
    got = both(
        lambda d: [
            torch.remainder(on(d, [-1.5, 5.5]), on(d, [1.0, -2.0])),
            torch.fmod(on(d, [-1.5, 5.5]), on(d, [1.0, -2.0])),
        ]
    )
    same(got, [torch.tensor([0.5, -0.5]), torch.tensor([-0.5, 1.5])])


def test_scalars_and_zero_dim_tensors_do_not_widen() -> None:
    def run(device: str) -> list[torch.Tensor]:
        half = on(device, [1.0, 2.0], torch.float16)
        bf16 = on(device, [1.0, 3.0], torch.bfloat16)
        i32 = on(device, [[478, 1896]], torch.int32)
        return [
            half * on(device, 10.0, torch.float64),
            half.clone().mul_(on(device, 10.0, torch.float64)),
            bf16.clone().mul_(0.5),
            i32 + on(device, 1),
            (i32 + on(device, 1)).long(),
            i32 + 1,
            i32 / 4,
            i32 * 2.5,
            i32 > 500.5,
            on(device, [True]) + on(device, [True]),
            torch.where(on(device, [True, False]), half, 0.0),
            on(device, [5, 6, 7], torch.uint8)[on(device, [0, 2])],
        ]

    got = both(run)
    assert [g.dtype for g in got] == [
        torch.float16,
        torch.float16,
        torch.bfloat16,
        torch.int32,
        torch.int64,
        torch.int32,
        torch.float32,
        torch.float32,
        torch.bool,
        torch.bool,
        torch.float16,
        torch.uint8,
    ]
    same(got[3], torch.tensor([[479, 1897]], dtype=torch.int32))


def test_large_integers_stay_exact() -> None:
    def run(device: str) -> list[torch.Tensor]:
        ids = on(device, [[49406, 320, 1125, 539, 2368, 49407], [49407, 320, 1125, 539, 1929, 49406]])
        return [
            ids.argmax(-1),
            ids.int().argmax(-1),
            ids.float().argmax(-1),
            *ids.max(-1),
            ids.gather(1, on(device, [[5], [0]])),
        ]

    got = both(run)
    assert got[0].tolist() == got[1].tolist() == got[2].tolist() == [5, 0]
    assert got[5].tolist() == [[49407], [49407]]


def test_argmax_shapes() -> None:
    def run(device: str) -> list[torch.Tensor]:
        logits = on(device, [[-1.0, 0.0], [1.0, -1.0], [-2.0, 2.0]])
        return [torch.argmax(on(device, [[1, 5], [9, 2]]), keepdim=True), F.softmax(logits, 1).argmax(1)]

    got = both(run)
    assert got[0].tolist() == [[2]] and got[1].tolist() == [1, 0, 1]


# --- layers


def test_layer_norm_of_a_tiny_variance() -> None:
    def run(device: str) -> list[torch.Tensor]:
        return [
            F.layer_norm(on(device, [[-9.9e-4, -9.9e-4, 9.9e-4, 9.9e-4]]), (4,), eps=1e-12),
            F.layer_norm(on(device, [[1.0, 1.001, 0.999, 1.0]]), (4,), eps=1e-7),
        ]

    same(both(run, atol=2e-3)[0], torch.tensor([[-1.0, -1.0, 1.0, 1.0]]), atol=2e-3)


def test_layer_norm_gives_gradients_to_its_parameters_alone() -> None:
    def run(device: str) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        x = on(device, [[1.0, 2.0, 3.0, 6.0], [0.0, 0.0, 4.0, 4.0]])
        weight = torch.ones(4, device=device, requires_grad=True)
        bias = torch.zeros(4, device=device, requires_grad=True)
        F.layer_norm(x, (4,), weight, bias).sum().backward()
        return weight.grad, bias.grad

    same(both(run, atol=1e-4)[1], torch.full((4,), 2.0))


def test_batch_norm_statistics_and_its_gradient_in_eval() -> None:
    def run(device: str) -> list[torch.Tensor]:
        norm = nn.BatchNorm1d(2, momentum=0.5).to(device)
        norm(on(device, [[1.0, 2.0], [3.0, 6.0]]))
        stats = [norm.running_mean.clone(), norm.running_var.clone(), norm.num_batches_tracked.clone()]
        norm.eval()
        x = on(device, [[1.0, 2.0], [3.0, 4.0]]).requires_grad_()
        norm(x).sum().backward()
        return [*stats, x.grad, norm.running_mean]

    got = both(run, atol=1e-5)
    same(got[:3], [torch.tensor([1.0, 2.0]), torch.tensor([1.5, 4.5]), torch.tensor(1)])


# --- indexing


def test_index_put_tells_masks_from_indices() -> None:
    def run(device: str) -> list[torch.Tensor]:
        a = torch.ops.aten.index_put(on(device, [[1, 2], [3, 4]]), [on(device, [True, False]), None], on(device, 0))
        b = on(device, [5.0, 6.0, 7.0, 8.0])
        b[b > 6.5] = on(device, [99.0, 98.0])
        c = torch.arange(6.0, device=device).view(3, 2)
        c[on(device, [False, True, False])] = -1
        return [a, b, c]

    got = both(run)
    same(got[0], torch.tensor([[0, 0], [3, 4]]))
    same(got[1], torch.tensor([5.0, 6.0, 99.0, 98.0]))


def test_repeated_indices_accumulate_where_asked() -> None:
    def run(device: str) -> list[torch.Tensor]:
        source = on(device, [1.0, 2.0, 4.0, 8.0])
        a = torch.zeros(3, device=device).index_add_(0, on(device, [1, 1, 1, 2]), source)
        b = torch.zeros(3, device=device)
        b.index_put_((on(device, [1, 1, -1]),), on(device, [1.0, 2.0, 4.0]), accumulate=True)
        c = torch.arange(3.0, device=device)
        c[on(device, [0, 0])] += 5
        d = torch.zeros(3, dtype=torch.bool, device=device)
        d.scatter_add_(0, on(device, [0, 0, 2]), on(device, [True, True, True]))
        return [a, b, c, d]

    got = both(run)
    same(got[0], torch.tensor([0.0, 7.0, 8.0]))
    same(got[1], torch.tensor([0.0, 3.0, 4.0]))
    same(got[2], torch.tensor([5.0, 1.0, 2.0]))


def test_indices_beside_slices() -> None:
    def run(device: str) -> list[torch.Tensor]:
        a = torch.zeros(2, 3, device=device)
        a[True] = -torch.ones(1, 2, 3, device=device)
        x = torch.arange(24, device=device).view(2, 3, 4)
        return [a, x[:, on(device, [2, 0]), 1:3], x[on(device, [0, 1]), :, on(device, [3, 0])]]

    both(run)


def test_gradient_of_a_repeated_gather_adds() -> None:
    x = on("tpu", [0.5]).requires_grad_()
    x.gather(0, on("tpu", [0, 0])).backward(on("tpu", [0.25, 0.5]))
    same(x.grad, torch.tensor([0.75]))


# --- random numbers


def test_certain_draws_are_certain() -> None:
    assert torch.equal(torch.bernoulli(torch.ones(64, device="tpu")).cpu(), torch.ones(64))
    assert not torch.bernoulli(torch.zeros(64, device="tpu")).any().item()
    picks = torch.multinomial(on("tpu", [0.0, 0.5, 0.0, 0.5]), 200, replacement=True).cpu()
    assert set(picks.tolist()) == {1, 3}
    order = torch.multinomial(torch.ones(8, device="tpu"), 8).cpu()
    assert sorted(order.tolist()) == list(range(8))


DRAWS = {
    "randn": lambda: torch.randn(64, device="tpu"),
    "rand": lambda: torch.rand(64, device="tpu"),
    "randint": lambda: torch.randint(0, 1 << 20, (64,), device="tpu"),
    "randperm": lambda: torch.randperm(64, device="tpu"),
    "dropout": lambda: F.dropout(torch.ones(256, device="tpu"), 0.3),
    "uniform_": lambda: torch.zeros(64, device="tpu").uniform_(),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_repeats_and_the_stream_moves_on(name: str) -> None:
    torch.manual_seed(7)
    first, second = DRAWS[name]().cpu(), DRAWS[name]().cpu()
    torch.manual_seed(7)
    again = DRAWS[name]().cpu()
    assert not torch.equal(first, second)
    assert torch.equal(first, again)


def test_dropout_keeps_its_share_and_its_mask() -> None:
    kept = F.dropout(torch.ones(4096, device="tpu"), 0.25).cpu()
    assert torch.allclose(kept[kept != 0], torch.tensor(4.0 / 3.0))
    assert 0.6 < (kept > 0).float().mean().item() < 0.9
    x = torch.ones(512, device="tpu", requires_grad=True)
    y = F.dropout(x, 0.5)
    y.sum().backward()
    same(x.grad, host(y))


# --- sorting and sizes that depend on data


def test_sort_topk_nonzero_unique() -> None:
    def run(device: str) -> list[object]:
        return [
            torch.nonzero(on(device, [0, 1, 0, 1, 0], torch.bool)),
            on(device, [3, 1, 3, 2]).unique(return_inverse=True, return_counts=True),
            torch.sort(on(device, [True, False, True, False] * 30)).values,
            torch.sort(on(device, [2, 1, 2, 1]), stable=True),
            torch.sort(on(device, [3.0, NAN, 1.0])),
            torch.topk(on(device, [1.0, NAN, 3.0]), 2),
            on(device, [4.0, 5.0, 6.0])[on(device, [True, False, True])],
            torch.masked_select(on(device, [[1, 2], [3, 4]]), on(device, [[True], [False]])),
        ]

    got = both(run)
    assert got[0].flatten().tolist() == [1, 3]
    assert got[3][1].tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("descending", [False, True])
def test_sort_of_a_shuffle_loses_nothing(descending: bool) -> None:
    wide = ((torch.arange(1024) * 389) % 1024).to("tpu")
    order = torch.sort(wide.float(), descending=descending).indices.cpu()
    assert sorted(order.tolist()) == list(range(1024))
    assert torch.equal(wide.cpu()[order], torch.sort(wide.cpu(), descending=descending).values)


def test_topk_of_nan_gives_valid_indices() -> None:
    found = torch.topk(torch.full((4, 8), NAN).to("tpu"), 3).indices.cpu()
    assert ((found >= 0) & (found < 8)).all()


# --- checkpoints


@pytest.mark.parametrize("where", ["cpu", "tpu"])
def test_state_dict_round_trip(where: str) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).to("tpu")
    blob = io.BytesIO()
    torch.save(model.state_dict(), blob)
    blob.seek(0)
    state = torch.load(blob, map_location=where, weights_only=True)
    assert all(t.device.type == where for t in state.values())
    for name, value in model.state_dict().items():
        same(state[name], host(value))


def test_a_saved_view_stays_a_view() -> None:
    shared = torch.arange(4.0, device="tpu")
    blob = io.BytesIO()
    torch.save([shared, shared[1:3]], blob)
    blob.seek(0)
    whole, part = torch.load(blob, map_location="tpu", weights_only=True)
    part.fill_(9)
    same(whole, torch.tensor([0.0, 9.0, 9.0, 3.0]))


@pytest.mark.parametrize("maker", [copy.copy, copy.deepcopy])
def test_copies_stay_on_the_device(maker) -> None:
    x = torch.arange(4.0, device="tpu")
    assert maker(x).device.type == "tpu"
    same(maker(x), torch.arange(4.0))


def test_a_module_moved_then_cast() -> None:
    half = nn.Linear(2, 2).to("tpu").to(torch.bfloat16)
    assert half(torch.ones(1, 2, dtype=torch.bfloat16, device="tpu")).dtype == torch.bfloat16


# --- compiled


def _turned(a):
    b = a.t()
    b.mul_(2.0)
    return b


def _mixed(a):
    a.index_put_((torch.arange(a.size(0), device=a.device),), a * 2.0)
    a.add_(a.flip(0))
    return a.sum()


def _spread(a, b):
    wide = a.expand(1, 2, 4)
    before = a @ b
    wide[0, 1] = 1
    return before


@pytest.mark.parametrize("fn, shapes", [(_turned, [(2, 3)]), (_mixed, [(3, 4)]), (_spread, [(1, 2, 4), (1, 4, 4)])])
def test_compile_keeps_in_place_effects(fn, shapes, mode: str) -> None:
    torch._dynamo.reset()

    def make() -> list[torch.Tensor]:
        return [torch.arange(float(torch.Size(s).numel())).view(s) + 1 for s in shapes]

    on_cpu, on_tpu = make(), [t.to("tpu") for t in make()]
    want = fn(*on_cpu)
    program = torch.compile(fn, backend="tpu", fullgraph=True)
    same(program(*on_tpu), want, rtol=1e-5)
    same(on_tpu, on_cpu, rtol=1e-5)
    same(program(*[t.to("tpu") for t in make()]), want, rtol=1e-5)  # a second call
