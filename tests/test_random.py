"""Random ops: ranges, moments, rules for edge probabilities, and the stream itself."""

from __future__ import annotations

import pytest
import torch

N = 100_000
WORD = 0xFFFFFFFF


def philox(seed: int, offset: int, count: int) -> list[int]:
    """Philox 4x32-10 in plain integers: the definition of the stream."""
    words: list[int] = []
    for block in range(offset // 4, offset // 4 + (count + 3) // 4):
        c, key = [block & WORD, block >> 32, 0, 0], [seed & WORD, seed >> 32]
        for _ in range(10):
            p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
            c = [(q >> 32) ^ c[1] ^ key[0], q & WORD, (p >> 32) ^ c[3] ^ key[1], p & WORD]
            key = [(key[0] + 0x9E3779B9) & WORD, (key[1] + 0xBB67AE85) & WORD]
        words += c
    return words[:count]


def test_stream_is_philox(mode: str) -> None:
    assert philox(0, 0, 4) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # Random123's known answer
    torch.tpu.manual_seed(0x123456789ABCDEF1)
    got = torch.rand(9, device="tpu").cpu()
    assert got.tolist() == [(w >> 8) * 2.0**-24 for w in philox(0x123456789ABCDEF1, 0, 9)]


def test_seed_decides_and_the_stream_moves_on(mode: str) -> None:
    torch.manual_seed(5)
    first, second = torch.rand(100, device="tpu").cpu(), torch.rand(100, device="tpu").cpu()
    torch.manual_seed(5)
    assert torch.equal(first, torch.rand(100, device="tpu").cpu())
    assert not torch.equal(first, second)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_distributions(dtype: torch.dtype) -> None:
    e = torch.empty(N, dtype=dtype, device="tpu")
    u = e.clone().uniform_(-1, 3).cpu().double()
    assert u.min() >= -1 and u.max() < 3 and abs(u.mean() - 1) < 0.03 and abs(u.std() - 4 / 12**0.5) < 0.02
    z = (e.clone().normal_(1, 2).cpu().double() - 1) / 2
    assert abs(z.mean()) < 0.02 and abs(z.std() - 1) < 0.02 and abs((z**4).mean() - 3) < 0.15
    assert abs(torch.corrcoef(torch.stack([z[:-1], z[1:]]))[0, 1]) < 0.02
    x = e.clone().exponential_(2).cpu().double()
    assert x.min() > 0 and abs(x.mean() - 0.5) < 0.02 and abs(x.var() - 0.25) < 0.02
    g = e.clone().geometric_(0.25).cpu().double()
    assert g.min() == 1 and abs(g.mean() - 4) < 0.1
    assert abs(e.clone().cauchy_(1, 2).cpu().double().median() - 1) < 0.06
    assert abs(e.clone().log_normal_(1, 0.5).cpu().double().median() - 2.718) < 0.05


def test_integers(mode: str) -> None:
    x = torch.randint(-5, 5, (N,), device="tpu").cpu()
    values, counts = x.unique(return_counts=True)
    assert values.tolist() == list(range(-5, 5)) and (counts - N / 10).abs().max() < 600
    for dtype, top in ((torch.bool, 1), (torch.uint8, 255), (torch.int8, 127), (torch.int32, 2**31 - 1), (torch.float32, 2**24)):
        r = torch.empty(N, dtype=dtype, device="tpu").random_().cpu().double()
        assert r.min() >= 0 and r.max() <= top and abs(r.mean() / top - 0.5) < 0.01


def test_coins_and_dropout(mode: str) -> None:
    assert torch.bernoulli(torch.tensor([0.0, 1.0], device="tpu")).cpu().tolist() == [0.0, 1.0]
    assert abs(torch.empty(N, device="tpu").bernoulli_(0.3).cpu().mean() - 0.3) < 0.01
    x = torch.ones(N, device="tpu", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    y.sum().backward()
    assert abs((y.detach().cpu() > 0).float().mean() - 0.75) < 0.01
    torch.testing.assert_close(y.detach().cpu(), x.grad.cpu())
    torch.testing.assert_close(y.detach().cpu().unique(), torch.tensor([0.0, 4 / 3]))
    assert torch.equal(torch.nn.functional.dropout(x, 0.25, training=False).detach().cpu(), torch.ones(N))


def test_multinomial(mode: str) -> None:
    weights = torch.tensor([[0.0, 1, 2, 0, 3, 4, 0], [1, 0, 0, 0, 0, 0, 1]], device="tpu")
    drawn = torch.multinomial(weights, 20_000, replacement=True).cpu()
    counts = torch.stack([row.bincount(minlength=7) for row in drawn])
    expected = weights.cpu() / weights.cpu().sum(1, keepdim=True) * 20_000
    assert counts[weights.cpu() == 0].sum() == 0 and (counts - expected).abs().max() < 500
    assert sorted(torch.multinomial(weights[0], 4).cpu().tolist()) == [1, 2, 4, 5]
    first = torch.multinomial(weights[:1].expand(20_000, 7), 1).cpu()[:, 0].bincount(minlength=7)
    assert (first - expected[0]).abs().max() < 500


def test_permutations(mode: str) -> None:
    p = torch.randperm(1000, device="tpu").cpu()
    assert p.dtype == torch.int64 and torch.equal(p.sort()[0], torch.arange(1000))
    assert not torch.equal(p, torch.arange(1000))
    assert torch.randperm(0, device="tpu").numel() == 0
