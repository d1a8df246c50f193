"""Joining, rearranging, padding, windows, factories and searching, against CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from compare import both, fresh, same


def test_cat_and_stack(mode: str) -> None:
    x, y, whole = torch.randn(3, 4, 5), torch.randn(3, 2, 5), torch.arange(60).reshape(3, 4, 5)
    both(
        lambda d: [
            torch.cat([x.to(d), y.to(d)], 1),
            torch.cat([x.to(d), whole.to(d)], -1),
            torch.cat([torch.empty(0).to(d), x.to(d)], 2),
            torch.cat([x.to(d).transpose(0, 2), x.to(d).transpose(0, 2)]),
            torch.stack([x.to(d), x.to(d) * 2], -1),
            torch.hstack([x.to(d), y.to(d)]),
        ]
    )


def test_rearranging(mode: str) -> None:
    x, square = torch.randn(3, 4, 5), torch.randn(4, 6)
    image = torch.randn(2, 8, 3, 4)
    both(
        lambda d: [
            x.to(d).flip(0, -1),
            x.to(d).roll(2),
            x.to(d).roll((1, -2), (0, 2)),
            x.to(d).repeat(2, 1, 3, 1),
            x.to(d).repeat_interleave(2, 1),
            square.to(d).rot90(),
            square.to(d).tril(-1),
            fresh(square, d).triu_(1),
            F.pixel_shuffle(image.to(d), 2),
            F.pixel_unshuffle(image.to(d)[..., :2, :], 2),
            F.channel_shuffle(image.to(d), 4),
            torch.kron(square.to(d), square.to(d)),
            torch.block_diag(square.to(d), square.to(d)),
        ]
    )
    both(lambda d: [square.to(d).trace(), torch.linalg.cross(x.to(d), x.to(d).flip(0), dim=0)], atol=1e-6, rtol=1e-6)
    both(lambda d: torch.arange(24, dtype=torch.int32).reshape(4, 6).to(d).trace())


def test_padding_and_its_gradients(mode: str) -> None:
    x = torch.randn(2, 3, 5, 6)

    def run(device: str) -> list[torch.Tensor]:
        results = []
        for kind, pads in (
            ("constant", (1, -1, 2, 0)),
            ("reflect", (3, 2, 1, 0)),
            ("replicate", (3, 2, 1, 4)),
            ("circular", (1, 2, 3, 0)),
        ):
            leaf = fresh(x, device).requires_grad_()
            y = F.pad(leaf, pads, kind)
            (y * y).sum().backward()
            results += [y, leaf.grad]
        return results

    both(run, atol=1e-5, rtol=1e-5)
    both(lambda d: F.pad(torch.arange(6).to(d), (1, 2), value=7))


def test_windows_and_their_gradients(mode: str) -> None:
    x, line = torch.randn(2, 3, 7, 8), torch.randn(3, 9)

    def run(device: str) -> list[torch.Tensor]:
        leaf, long = fresh(x, device).requires_grad_(), fresh(line, device).requires_grad_()
        columns = F.unfold(leaf, (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1))
        (columns * columns).sum().backward()
        windows = long.unfold(1, 3, 2)
        (windows * windows).sum().backward()
        folded = F.fold(columns.detach(), (7, 8), (3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1))
        return [columns, leaf.grad, windows, long.grad, folded]

    both(run, atol=1e-4, rtol=1e-5)


def test_factories(mode: str) -> None:
    both(
        lambda d: [
            torch.arange(7, device=d),
            torch.arange(1, 16, 3, device=d, dtype=torch.int32),
            torch.arange(5, -5, -2, device=d),
            torch.full((2, 3), 2.5, device=d),
            torch.full((), 7, device=d),
            torch.ones(3, device=d, dtype=torch.bool),
            torch.zeros(2, 0, device=d),
            torch.eye(3, 4, device=d),
            torch.tril_indices(4, 5, 1, device=d),
            torch.triu_indices(4, 5, -1, device=d),
        ]
    )
    both(
        lambda d: [
            torch.arange(0.1, 300.0, 0.3, device=d),
            torch.linspace(-3, 7, 13, device=d),
            torch.linspace(-3, 7, 1, device=d),
        ],
        atol=1e-6,
        rtol=1e-6,
    )
    ends = torch.linspace(0.1, 0.7, 11, device="tpu").cpu()
    same(ends[[0, -1]], torch.tensor([0.1, 0.7]))


def test_searching(mode: str) -> None:
    few, many = torch.randn(7).sort()[0], torch.randn(50).sort()[0]
    rows = torch.randn(3, 40)
    wanted = torch.cat([torch.randn(20), many[:3], torch.tensor([float("nan"), float("inf")])])
    for right in (False, True):
        both(
            lambda d: [
                torch.searchsorted(many.to(d), wanted.to(d), right=right),  # noqa: B023
                torch.bucketize(wanted.to(d), few.to(d), out_int32=True, right=right),  # noqa: B023
            ]
        )
    both(lambda d: torch.searchsorted(rows.to(d).sort(-1)[0], rows.to(d)[:, :5].contiguous()))
