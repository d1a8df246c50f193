"""Reading images at positions: grid_sample, interpolate with antialias, fractional pools, unpool; and ctc, RNNs, float8 products."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch_tpu
from compare import both, fresh
from torch.nn import functional as F  # noqa: N812

CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("how", ["bilinear", "nearest", "bicubic"])
def test_grid_sample_and_its_gradients(mode: str, how: str, padding: str) -> None:
    image, grid = torch.randn(2, 3, 4, 5), torch.rand(2, 3, 2, 2) * 3 - 1.5

    def run(d: str, align: bool) -> list[torch.Tensor]:
        x, g = fresh(image, d).requires_grad_(), fresh(grid, d).requires_grad_()
        y = F.grid_sample(x, g, mode=how, padding_mode=padding, align_corners=align)
        (y * y).sum().backward()
        return [y, x.grad, g.grad]

    for align in (False, True):
        both(lambda d, a=align: run(d, a), **CLOSE)


def test_grid_sample_of_volumes(mode: str) -> None:
    image, grid = torch.randn(1, 2, 3, 4, 5), torch.rand(1, 2, 2, 2, 3) * 2.4 - 1.2

    def run(d: str) -> list[torch.Tensor]:
        x, g = fresh(image, d).requires_grad_(), fresh(grid, d).requires_grad_()
        y = F.grid_sample(x, g, align_corners=False)
        (y * y).sum().backward()
        return [y, x.grad, g.grad]

    both(run, **CLOSE)


@pytest.mark.parametrize("how", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 4), (9, 11)])
def test_antialias(mode: str, how: str, size: tuple[int, int]) -> None:
    image = torch.rand(1, 3, 7, 8)

    def run(d: str, align: bool) -> list[torch.Tensor]:
        x = fresh(image, d).requires_grad_()
        y = F.interpolate(x, size, mode=how, antialias=True, align_corners=align)
        (y * y).sum().backward()
        return [y, x.grad]

    for align in (False, True):
        both(lambda d, a=align: run(d, a), **CLOSE)
    both(lambda d: F.interpolate((image * 255).byte().to(d), size, mode=how, antialias=True))


def test_fractional_pools(mode: str) -> None:
    flat, deep = torch.randn(2, 3, 9, 10), torch.randn(1, 2, 6, 7, 8)
    samples, deep_samples = torch.rand(2, 3, 2), torch.rand(1, 2, 3)

    def run(d: str) -> list[torch.Tensor]:
        x, y = fresh(flat, d).requires_grad_(), fresh(deep, d).requires_grad_()
        a = F.fractional_max_pool2d(x, (2, 3), output_size=(4, 3), return_indices=True, _random_samples=samples.to(d))
        b = F.fractional_max_pool3d(y, 2, output_size=(3, 3, 4), return_indices=True, _random_samples=deep_samples.to(d))
        (a[0].sum() + (b[0] ** 2).sum()).backward()
        return [*a, *b, x.grad, y.grad]

    both(run, **CLOSE)


def test_unpool_keeps_channels_last(mode: str) -> None:
    x = torch.randn(2, 3, 4, 6).to(memory_format=torch.channels_last)

    def run(d: str) -> torch.Tensor:
        return F.max_unpool2d(*F.max_pool2d(x.to(d), 2, return_indices=True), 2)

    both(run)
    assert run("tpu").stride() == run("cpu").stride()


@pytest.mark.parametrize("blank", [0, 4])
@pytest.mark.parametrize("flat", [False, True])
def test_ctc(mode: str, blank: int, flat: bool) -> None:
    logits = torch.randn(9, 3, 5)
    targets = torch.tensor([[1, 2, 2, 3], [3, 1, 1, 1], [2, 1, 3, 1]])
    lengths, steps = torch.tensor([4, 2, 0]), torch.tensor([9, 4, 7])
    if flat:
        targets = torch.cat([row[:n] for row, n in zip(targets, lengths, strict=True)])

    def run(d: str, reduction: str) -> list[torch.Tensor]:
        x = fresh(logits, d).requires_grad_()
        loss = F.ctc_loss(x.log_softmax(-1), targets.to(d), steps, lengths, blank=blank, reduction=reduction, zero_infinity=True)
        (loss * torch.arange(1, loss.numel() + 1, device=d).reshape(loss.shape)).sum().backward()
        return [loss, x.grad]

    for reduction in ("none", "mean"):
        both(lambda d, r=reduction: run(d, r), **CLOSE)


@pytest.mark.parametrize("kind", [torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU])
def test_recurrent_modules(mode: str, kind: type[torch.nn.Module]) -> None:
    x = torch.randn(5, 2, 4)
    module = kind(4, 3, num_layers=2, bidirectional=True)

    def run(d: str) -> list[torch.Tensor]:
        moved = kind(4, 3, num_layers=2, bidirectional=True)
        moved.load_state_dict(module.state_dict())
        moved.to(d)
        y, state = moved(x.to(d))
        (y**2).sum().backward()
        return [y, *(state if isinstance(state, tuple) else (state,)), *[p.grad for p in moved.parameters()]]

    both(run, **CLOSE)


def test_rrelu(mode: str) -> None:
    x = torch.randn(200)
    both(lambda d: F.rrelu(x.to(d), 0.1, 0.3), **CLOSE)
    y = F.rrelu(x.to("tpu"), 0.1, 0.3, training=True).cpu()
    slope = (y / x)[x < 0]
    assert torch.equal(y[x >= 0], x[x >= 0]) and 0.1 <= slope.min() < slope.max() <= 0.3 + 1e-6


def test_narrow_products(mode: str) -> None:
    a, b = torch.randn(32, 64), torch.randn(16, 64)
    scale, rows, columns = torch.tensor(0.5), torch.rand(32, 1) + 0.5, torch.rand(1, 16) + 0.5
    low, high = torch.randint(-128, 127, (32, 64), dtype=torch.int8), torch.randint(-128, 127, (64, 16), dtype=torch.int8)

    def run(d: str) -> list[torch.Tensor]:
        x, y = a.to(d).to(torch.float8_e4m3fn), b.to(d).to(torch.float8_e4m3fn).t()
        found = [torch._scaled_mm(x, y, s.to(d), t.to(d), out_dtype=torch.bfloat16) for s, t in ((scale, scale), (rows, columns))]
        return [*found, torch._int_mm(low.to(d), high.to(d)), x.float(), a.to(d).to(torch.float8_e5m2).float()]

    both(run, rtol=1e-2, atol=1e-2)


def test_grouped_products(mode: str) -> None:
    a, b = torch.randn(2, 8, 16).bfloat16(), torch.randn(2, 16, 8).bfloat16()
    rows, offsets = torch.randn(16, 16).bfloat16(), torch.tensor([5, 16], dtype=torch.int32)
    both(lambda d: [torch._grouped_mm(a.to(d), b.to(d)), torch._grouped_mm(rows.to(d), b.to(d), offs=offsets.to(d))], rtol=2e-2)


@pytest.mark.parametrize(
    ("rows", "groups", "ends"),
    [(8, 4, [2, 2, 5, 8]), (300, 3, [1, 150, 300]), (8, 9, [0, 0, 0, 2, 5, 5, 5, 8, 8]), (16, 4, [4, 4, 8, 12]), (300, 2, [0, 299])],
)
def test_grouped_products_of_all_sizes(mode: str, rows: int, groups: int, ends: list[int]) -> None:
    """Empty groups, one group with nearly all rows, more groups than rows, rows of no group: one program for all divisions."""
    x, w, g = torch.randn(rows, 16), torch.randn(groups, 16, 24), torch.randn(rows, 24)
    turned, columns = torch.randn(groups, 12, 16), torch.randn(16, rows)
    last = ends[-1]

    def run(d: str) -> list[torch.Tensor]:
        a, b, offsets = fresh(x, d).requires_grad_(), fresh(w, d).requires_grad_(), torch.tensor(ends, dtype=torch.int32).to(d)
        y = F.grouped_mm(a, b, offs=offsets)[:last]
        (y * g.to(d)[:last]).sum().backward()
        return [y, a.grad[:last], b.grad, torch._grouped_mm(turned.to(d), columns.to(d), offs=offsets)[:, :last]]

    torch_tpu.reset_fallback_counts()
    both(run, rtol=1e-4, atol=1e-4)
    assert torch_tpu.fallback_counts() == {}


def test_grouped_products_that_do_not_fit() -> None:
    x, offsets = torch.randn(4, 8, device="tpu"), torch.tensor([1, 4], dtype=torch.int32, device="tpu")
    with pytest.raises(RuntimeError, match="contraction dim"):
        torch._grouped_mm(x, torch.randn(2, 4, 8, device="tpu"), offs=offsets)
    with pytest.raises(RuntimeError):
        torch._grouped_mm(x, torch.randn(2, 8, 8, device="tpu"))


@pytest.mark.parametrize(("n", "k"), [(50, 7), (300, 5), (5000, 3), (1000, 900)])
def test_topk_of_long_rows(mode: str, n: int, k: int) -> None:
    x = torch.randint(-40, 40, (3, n)).float()
    x[0, 5], x[1, ::2], x[2, 7] = float("nan"), -0.0, float("-inf")
    for dtype, largest in itertools.product(
        (torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.uint8), (True, False)
    ):
        t = x.to(dtype) if dtype.is_floating_point else x.nan_to_num(0, 0, 0).abs().to(dtype)
        want = t.topk(k, largest=largest).values
        got, index = t.to("tpu").topk(k, largest=largest)
        torch.testing.assert_close(got.cpu(), want, rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(t.gather(1, index.cpu()), want, rtol=0, atol=0, equal_nan=True)
        assert len(index[0].cpu().unique()) == k
