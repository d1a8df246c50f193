"""Histograms, bincount, unique, segments, bags: results by counting, against CPU."""

from __future__ import annotations

import itertools

import pytest
import torch
from compare import both, fresh, same
from torch.nn import functional as F  # noqa: N812

CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def test_histogram_of_integers(mode: str) -> None:
    """The CPU refuses them, other accelerators count: Transformers counts the tokens of each expert so."""
    for dtype in (torch.int32, torch.int64):
        x = torch.randint(-2, 9, (200,), dtype=dtype)
        got = torch.histc(x.to("tpu"), bins=7, min=0, max=6)
        assert got.dtype == dtype
        same(got, torch.bincount(x[(x >= 0) & (x <= 6)], minlength=7).to(dtype))
    same(torch.histc(torch.tensor([2, 9, 9, 4], device="tpu"), bins=7), torch.tensor([1, 0, 1, 0, 0, 0, 2]))


def test_histograms(mode: str) -> None:
    x, weight = torch.randn(40), torch.rand(40)
    x[3] = float("inf")
    edges = torch.tensor([-1.0, -0.2, 0.0, 0.7, 2.0])
    both(
        lambda d: [
            *torch.histogram(x.to(d), 7, range=(-2.0, 2.0)),
            *torch.histogram(x.to(d)[4:], 5),
            *torch.histogram(x.to(d), edges.to(d), weight=weight.to(d)),
            *torch.histogram(x.to(d), edges.to(d), density=True),
            torch.histc(x.to(d), 6, -1, 1),
        ],
        **CLOSE,
    )
    points = torch.randn(30, 2)
    both(lambda d: [(r := torch.histogramdd(points.to(d), [3, 4])).hist, *r.bin_edges], **CLOSE)
    both(lambda d: torch.histogramdd(points.to(d), [edges.to(d), edges.to(d)], density=True).hist, **CLOSE)


def test_bincount(mode: str) -> None:
    x = torch.tensor([1, 5, 5, 0, 1, 1])
    both(lambda d: [torch.bincount(x.to(d)), torch.bincount(x.to(d), minlength=9), torch.bincount(x.to(d)[:0])])
    both(lambda d: torch.bincount(x.to(d), weights=torch.arange(6.0).to(d)))
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.bincount(torch.tensor([-1]).to("tpu"))


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_unique(mode: str, dim: int | None) -> None:
    x = torch.tensor([[3, 1, 3], [0, 1, 0], [3, 1, 3], [3, 1, 2]])
    for values in (x, x.float(), x > 1):
        for inverse, counts in itertools.product([False, True], repeat=2):
            options = {"return_inverse": inverse, "return_counts": counts, "dim": dim}
            both(lambda d: torch.unique(values.to(d), **options))  # noqa: B023
            both(lambda d: torch.unique_consecutive(values.to(d), **options))  # noqa: B023
    none = torch.zeros(0, 3)
    both(lambda d: torch.unique(none.to(d), dim=0 if dim is not None else None))


def test_nonzero(mode: str) -> None:
    x = torch.tensor([[0, 2, 0], [1, 0, 3]])
    both(lambda d: [x.to(d).nonzero(), x.to(d).argwhere(), *x.to(d).nonzero(as_tuple=True), torch.tensor(1).to(d).nonzero()])
    both(lambda d: [torch.nonzero_static(x.to(d), size=n, fill_value=-7) for n in (0, 2, 5)])
    both(lambda d: torch.nonzero(x.to(d), out=torch.empty(0, dtype=torch.long, device=d)))
    both(lambda d: torch.hash_tensor(x.to(d).float()))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(mode: str, reduce: str) -> None:
    data = torch.randn(7, 2).abs() + 0.1
    data[1] = data[0]
    data[5, 0] = 0.0
    lengths, offsets = torch.tensor([2, 0, 4, 1]), torch.tensor([0, 2, 2, 6, 7])

    def run(d: str, named: dict[str, torch.Tensor], initial: float | None) -> list[torch.Tensor]:
        x = fresh(data, d).requires_grad_()
        y = torch.segment_reduce(x, reduce, **{k: v.to(d) for k, v in named.items()}, initial=initial, axis=0)
        finite = y.isfinite()
        torch.where(finite, y * torch.arange(1, 9, device=d).reshape(4, 2), 0).sum().backward()
        return [y, x.grad]

    both(lambda d: run(d, {"lengths": lengths}, None), **CLOSE)
    both(lambda d: run(d, {"offsets": offsets}, 1.0), **CLOSE)


@pytest.mark.parametrize("bag", ["sum", "mean", "max"])
@pytest.mark.parametrize("last", [False, True])
def test_bags(mode: str, bag: str, last: bool) -> None:
    table = torch.randn(6, 3)
    index, offsets = torch.tensor([1, 4, 4, 0, 5, 2, 1]), torch.tensor([0, 3, 3, 5, 7] if last else [0, 3, 3, 5])
    weights = torch.rand(7) if bag == "sum" else None

    def run(d: str) -> list[torch.Tensor]:
        leaves = [fresh(table, d).requires_grad_()]
        if weights is not None:
            leaves.append(fresh(weights, d).requires_grad_())
        y = F.embedding_bag(
            index.to(d), leaves[0], offsets.to(d), mode=bag, include_last_offset=last, padding_idx=1,
            per_sample_weights=leaves[1] if weights is not None else None, scale_grad_by_freq=False,
        )  # fmt: skip
        (y * torch.arange(1.0, 13, device=d).reshape(4, 3)).sum().backward()
        return [y, *[x.grad for x in leaves]]

    both(run, **CLOSE)


def test_bags_by_rows_and_norm(mode: str) -> None:
    table, index = torch.randn(6, 3), torch.tensor([[1, 1, 4], [0, 5, 5]])

    def run(d: str) -> list[torch.Tensor]:
        x = fresh(table, d).requires_grad_()
        y = F.embedding_bag(index.to(d), x, mode="mean")
        y.pow(2).sum().backward()
        return [y, x.grad, F.embedding(index.to(d), fresh(table, d), max_norm=0.5)]

    both(run, **CLOSE)


def test_indices_out_of_range_are_found_in_debug_mode() -> None:
    before = torch.tpu.eager_mode
    torch.tpu.eager_mode = torch.tpu.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING
    try:
        x, far = torch.zeros(3, 3, device="tpu"), torch.tensor([[7]], device="tpu")
        calls = {
            "gather": lambda d: x.to(d).gather(0, far.to(d)),
            "scatter": lambda d: x.to(d).scatter(0, far.to(d), 1.0),
            "scatter_add": lambda d: x.to(d).scatter_add(0, far.to(d), x.to(d)),
            "index_select": lambda d: x.to(d).index_select(0, far[0].to(d)),
            "index_add": lambda d: x.to(d).index_add(0, far[0].to(d), x[:1].to(d)),
            "take": lambda d: x.to(d).take(far.to(d) * 5),
            "embedding": lambda d: F.embedding(far.to(d), x.to(d)),
        }
        for name, call in calls.items():
            for device in ("cpu", "tpu"):  # CPU's type depends on the kernel that it chose
                with pytest.raises((IndexError, RuntimeError), match="out of bounds|out of range|out of DATA bounds"):
                    call(device)
                    pytest.fail(name)
    finally:
        torch.tpu.eager_mode = before
