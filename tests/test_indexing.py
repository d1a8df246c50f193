"""Reads and writes by index, masks, embeddings, and ops whose size depends on data, against CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from compare import both, fresh, same


def test_gather_and_its_gradient(mode: str) -> None:
    x, index = torch.randn(3, 4, 5), torch.randint(0, 4, (3, 6, 5))

    def run(device: str) -> list[torch.Tensor]:
        leaf = fresh(x, device).requires_grad_()
        taken = leaf.gather(1, index.to(device))
        (taken * taken).sum().backward()
        return [taken, leaf.grad, leaf.detach().gather(-2, index[:2, :, :3].to(device))]

    both(run, atol=1e-5, rtol=1e-5)
    both(lambda d: torch.take_along_dim(x.to(d), x.to(d).argsort(1), 1))


def test_scatter(mode: str) -> None:
    x = torch.randn(3, 4, 5)
    for length in (1, 12):  # selects, and a scatter
        index, source = torch.randint(0, 4, (3, length, 5)), torch.randn(3, length, 5)

        def run(d: str) -> list[torch.Tensor]:
            i, s = index.to(d), source.to(d)  # noqa: B023
            results = [x.to(d).scatter(1, i, s), x.to(d).scatter(1, i, 2.5), x.to(d).scatter_add(1, i, s)]
            results += [fresh(x, d).scatter_(1, i, s), fresh(x, d).scatter_add_(1, i[:2, :, :3], s)]
            for reduce in ("sum", "prod", "mean", "amax", "amin"):
                for include in (True, False):
                    results.append(x.to(d).scatter_reduce(1, i, s, reduce, include_self=include))
            return results

        both(run, atol=1e-5, rtol=1e-5)


def test_rows_by_index(mode: str) -> None:
    x, source = torch.randn(3, 4, 5), torch.randn(3, 10, 5)
    index = torch.tensor([2, 0, 2, 1, 3, 3, 0, 1, 2, 3])

    def run(d: str) -> list[torch.Tensor]:
        i, s = index.to(d), source.to(d)
        return [
            x.to(d).index_select(1, i),
            x.to(d).index_add(1, i, s),
            fresh(x, d).index_add_(1, i, s, alpha=2.5),
            x.to(d).index_copy(1, i[1:4], s[:, :3]),
            x.to(d).index_fill(1, i[:2], 7.0),
            fresh(x, d).index_fill_(2, i[:2], torch.tensor(3.0).to(d)),
        ]

    both(run, atol=1e-5, rtol=1e-5)


def test_index_lists(mode: str) -> None:
    x, j = torch.randn(3, 4, 5), torch.tensor([[0, -1], [2, 1]])
    mask = torch.randn(3, 4) > 0

    def run(d: str) -> list[torch.Tensor]:
        t, i, m = x.to(d), j.to(d), mask.to(d)
        results = [t[i], t[:, i], t[..., i], t[i, :, i], t[i, i], t[:, i, i], t[i[0], i], t[m], t[m, 1], t[-1, i], t[[0, 2]]]
        for where in ((i,), (slice(None), i), (i, slice(None), i), (m,), (i, i, i)):
            for accumulate in (False, True):
                copy = t.clone()
                if accumulate:
                    copy[where] += 1.5
                else:
                    copy[where] = 2.0
                results.append(copy)
        results.append(t.index_put((i[0], i[1]), torch.ones(5).to(d), accumulate=True))
        results.append(t.take(i))
        results.append(t.clone().put_(i, torch.arange(4.0).reshape(2, 2).to(d), accumulate=True))
        return results

    both(run, atol=1e-6, rtol=1e-6)


def test_repeated_places_accumulate(mode: str) -> None:
    places, values = torch.randint(0, 5, (300,)), torch.randn(300)
    both(lambda d: torch.zeros(5).to(d).index_put_((places.to(d),), values.to(d), accumulate=True), atol=1e-4, rtol=1e-5)


def test_gradient_of_an_index(mode: str) -> None:
    x, i = torch.randn(6, 4), torch.tensor([0, 2, 2, 5])

    def run(d: str) -> torch.Tensor:
        leaf = fresh(x, d).requires_grad_()
        (leaf[i.to(d)] ** 2).sum().backward()
        return leaf.grad

    both(run, atol=1e-5, rtol=1e-5)


def test_masks(mode: str) -> None:
    x, mask = torch.randn(20, 30), torch.randn(20, 30) > 0.3

    def run(d: str) -> list[torch.Tensor]:
        t, m = x.to(d), mask.to(d)
        return [
            t.masked_select(m),
            t[m],
            m.nonzero(),
            torch.nonzero(t[0] > 0, as_tuple=True)[0],
            torch.argwhere(m[3]),
            t.masked_scatter(m, t.flip(0)),
            t.masked_scatter(m[0], t.flip(0)),
            (t[:0] > 0).nonzero(),
        ]

    both(run)


def test_unique_and_repeats(mode: str) -> None:
    numbers, repeats = torch.randint(0, 9, (40,)), torch.tensor([2, 0, 3, 1])
    both(
        lambda d: [
            *numbers.to(d).unique(return_inverse=True, return_counts=True),
            *torch.unique_consecutive(numbers.to(d).sort()[0], return_inverse=True, return_counts=True),
            torch.repeat_interleave(repeats.to(d)),
            numbers[:4].to(d).repeat_interleave(repeats.to(d)),
        ]
    )


def test_embedding_and_its_gradient(mode: str) -> None:
    weight, tokens = torch.randn(10, 6), torch.randint(0, 10, (3, 40))
    for padding, by_frequency in ((None, False), (3, False), (None, True)):

        def run(d: str) -> list[torch.Tensor]:
            leaf = fresh(weight, d).requires_grad_()
            out = F.embedding(tokens.to(d), leaf, padding_idx=padding, scale_grad_by_freq=by_frequency)  # noqa: B023
            (out * out).sum().backward()
            return [out, leaf.grad]

        both(run, atol=1e-4, rtol=1e-5)
    both(lambda d: F.one_hot(tokens[0].to(d), 10))


def test_out_of_range_writes_change_nothing_else() -> None:
    x = torch.zeros(4, device="tpu")
    mark = torch.full((4,), 9.0, device="tpu")
    try:
        x.index_put_((torch.tensor([7], device="tpu"),), torch.ones(1, device="tpu"))
    except IndexError:
        pass
    same(x, torch.zeros(4))
    same(mark, torch.full((4,), 9.0))
