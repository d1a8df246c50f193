"""Views: reads through every kind of stride, and writes through them, as on CPU."""

from __future__ import annotations

import pytest
import torch
from compare import both, same

# Each makes a view of a (4, 6, 5) tensor.
VIEWS = {
    "whole": lambda x: x,
    "row": lambda x: x[2],
    "column": lambda x: x[:, 3],
    "slice": lambda x: x[1:3, 2:5],
    "steps": lambda x: x[::2, 1::3, ::2],
    "transposed": lambda x: x.transpose(0, 2),
    "permuted": lambda x: x.permute(2, 0, 1)[1:4],
    "reshaped": lambda x: x.view(8, 3, 5)[3:7, 1:],
    "merged": lambda x: x.view(24, 5)[5:17],
    "flat": lambda x: x.view(-1)[7:90],
    "flat steps": lambda x: x.view(-1)[3::7],
    "heads": lambda x: x.view(4, 2, 3, 5).transpose(1, 2)[:, 1:],
    "diagonal": lambda x: x.diagonal(1, 0, 1),
    "diagonal of last": lambda x: x.diagonal(0, 1, 2),
    "select after transpose": lambda x: x.transpose(1, 2)[:, 2, 1:5],
    "as_strided": lambda x: x.as_strided((3, 4), (31, 7), 2),
    "unsqueezed": lambda x: x[1].unsqueeze(1).unsqueeze(0),
    "squeezed": lambda x: x[1:2, :, 3:4].squeeze(),
    "unflattened": lambda x: x.unflatten(1, (2, 3)).movedim(1, 3)[..., 1],
    "split": lambda x: x.split([2, 3, 1], 1)[1],
    "chunk": lambda x: x.view(4, 30).chunk(3, -1)[2].view(4, 2, 5),
    "scalar": lambda x: x[3, 5, 4],
    "empty": lambda x: x[2:2, :3],
    "negative index": lambda x: x[-1, -3:-1],
    "real of complex": lambda x: torch.view_as_complex(x.view(4, 15, 2)[:, :, :]).real[1:, 3:9],
}
READ_ONLY = {
    "expanded": lambda x: x[:, :1].expand(4, 6, 5),
    "windows": lambda x: x.view(-1).unfold(0, 7, 3),
    "overlapping": lambda x: x.as_strided((5, 4), (2, 1), 3),
    "broadcast row": lambda x: x[1, 2].expand(3, 2, 5),
}


def base(device: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(120).to(dtype).view(4, 6, 5).to(device)


@pytest.mark.parametrize("name", [*VIEWS, *READ_ONLY])
def test_reads(name: str, mode: str) -> None:
    view = {**VIEWS, **READ_ONLY}[name]

    def run(device: str):
        v = view(base(device))
        return v, v + 1, v.contiguous(), [v.size(), v.stride(), v.storage_offset()]

    both(run)


@pytest.mark.parametrize("name", VIEWS)
def test_writes_reach_every_alias(name: str, mode: str) -> None:
    def run(device: str):
        x = base(device)
        other = x.view(-1)[10:50]
        v = VIEWS[name](x)
        v.mul_(2).sub_(3)
        v.copy_(v + 1)
        v.fill_(7) if v.dim() == 0 else v[..., :1].fill_(7)
        return x, v, other

    both(run)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.int64, torch.bfloat16, torch.float64, torch.complex64])
def test_write_of_a_slice_keeps_the_rest(dtype: torch.dtype, mode: str) -> None:
    def run(device: str):
        x = base(device, torch.int64).to(dtype)
        x[1:3, ::2, 1:4] = 1
        x.view(-1)[::11].fill_(0)
        return x

    both(run)


def test_chain_of_views_and_slots(mode: str) -> None:
    def run(device: str):
        cache = torch.zeros(2, 8, 3, device=device)
        for i in range(8):
            cache[:, i].copy_(torch.full((2, 3), float(i), device=device))
            cache[1, i, 1:] += 10
        return cache, cache[:, 2:5].transpose(1, 2).reshape(6, -1)

    both(run)


def test_a_moving_slice_compiles_once(mode: str) -> None:
    x = torch.zeros(64, 4, device="tpu")
    x[0] += 1
    y = x[0] * 2
    before = torch_tpu_compilations()
    for i in range(1, 64):
        x[i] += 1
        y = x[i] * 2
    assert torch_tpu_compilations() == before
    same(x, torch.ones(64, 4))
    same(y, torch.full((4,), 2.0))


def torch_tpu_compilations() -> int:
    from torch_tpu import _C

    return _C.cache_stats()["requests"]


@pytest.mark.parametrize("pair", [(torch.float32, torch.int32), (torch.float32, torch.uint8), (torch.int16, torch.int64),
                                  (torch.complex64, torch.float32), (torch.float64, torch.int16), (torch.int8, torch.bool),
                                  (torch.bfloat16, torch.int16), (torch.float32, torch.float16)], ids=str)
def test_views_of_another_dtype(pair: tuple[torch.dtype, torch.dtype], mode: str) -> None:
    first, second = pair

    def run(device: str):
        x = torch.arange(2, 34, device="cpu").remainder(2 if second == torch.bool else 100).to(first).view(4, 8).to(device)
        v = x.view(second)
        out = [v.clone(), v.size(), v.stride()]
        v[1:, ::2] = 1
        return [*out, x.view(second)] if first.is_complex else [*out, x]

    both(run)


def test_view_as_real_and_back(mode: str) -> None:
    def run(device: str):
        z = torch.complex(torch.arange(6.0), -torch.arange(6.0)).view(2, 3).to(device)
        r = torch.view_as_real(z)
        r[..., 1].add_(5)
        z.real.mul_(2)
        return z, r, z.imag, z.conj(), z.conj().imag + 1, z.conj().t() * 2, torch.view_as_complex(r)[1:]

    both(run)


def test_internal_overlap_is_refused_as_on_cpu(mode: str) -> None:
    for device in ("cpu", "tpu"):
        x = torch.zeros(3, 1, device=device).expand(3, 4)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            x.add_(1)


def test_set_resize_and_storage(mode: str) -> None:
    def run(device: str):
        x = torch.arange(6.0, device=device)
        out = []
        y = torch.empty(0, device=device)
        y.set_(x.storage(), 1, (2, 2), (2, 1))
        y.add_(10)
        out += [y, x.clone()]
        x.resize_(2, 2)
        out += [x.clone()]
        x.resize_(9)
        out += [x[:6].clone(), x.numel()]
        z = torch.arange(4.0, device=device)
        storage = z.untyped_storage()
        size = storage.nbytes()
        storage.resize_(0)
        storage.resize_(size)
        z.copy_(torch.arange(4.0) + 1)
        out += [z, y.is_set_to(y), z.is_set_to(x)]
        return out

    both(run)


def test_data_ptr_is_opaque_but_compares_as_on_cpu() -> None:
    x = torch.zeros(4, 4, device="tpu")
    y = torch.zeros(4, 4, device="tpu")
    assert x.data_ptr() != 0 and x.data_ptr() == x.view(-1).data_ptr()
    assert x[1].data_ptr() - x.data_ptr() == 16
    assert x.untyped_storage().data_ptr() == x[2:].untyped_storage().data_ptr() != y.untyped_storage().data_ptr()
    assert abs(x.data_ptr() - y.data_ptr()) >= 64
    pointer = x.data_ptr()
    x.add_(1)
    assert x.data_ptr() == pointer


def test_channels_last_layout(mode: str) -> None:
    def run(device: str):
        x = torch.arange(2 * 3 * 4 * 5.0).view(2, 3, 4, 5).to(device)
        y = x.to(memory_format=torch.channels_last)
        z = y + 1
        return [y, y.stride(), z, z.stride(), z.contiguous().stride(), torch.empty_like(y).stride(), y.clone().stride(),
                y.is_contiguous(memory_format=torch.channels_last), (y * x).stride(), y[:, 1:].stride(), y.sum(1)]

    both(run)


def test_conjugate_views_are_read_as_conjugates(mode: str) -> None:
    def run(device: str):
        z = torch.complex(torch.arange(6.0), torch.arange(6.0).flip(0)).view(2, 3).to(device)
        w = torch.stack([z, z * 2])
        return z @ z.mH, torch.bmm(w, w.mH), z.conj() + 1, z.conj().imag * 2

    both(run, rtol=1e-6, atol=1e-6)
