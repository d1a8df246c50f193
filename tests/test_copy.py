"""Copies between host, device and devices: values at the time of the call, across dtypes and strides."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
import torch.multiprocessing  # noqa: F401 - teaches the pickler about tensors
from child import run as child
from compare import both, same

DTYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
          torch.float64, torch.complex64, torch.complex128, torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn,
          torch.float8_e5m2]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip(dtype: torch.dtype) -> None:
    for shape in ((), (0,), (1,), (3, 5), (2, 0, 3), (2, 3, 4, 5)):
        x = (torch.rand(shape) * 50).to(dtype)
        for made in (x, x.transpose(0, -1) if x.dim() > 1 else x, x[..., ::2] if x.dim() else x):
            got = made.to("tpu")
            assert got.dtype == dtype and got.device == torch.device("tpu", 0) and got.stride() == made.to("cpu", copy=True).stride()
            back = got.cpu()
            assert back.dtype == dtype and back.shape == made.shape
            # Bit for bit: what uint8 views show.
            dense = [t.clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8) for t in (back, made)]
            assert torch.equal(*dense)


@pytest.mark.parametrize("source", [torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16, torch.uint8], ids=str)
def test_casts_on_the_device_are_the_hosts(source: torch.dtype, mode: str) -> None:
    x = torch.tensor([0.0, -0.0, 1.0, -1.5, 2.5, 100.7, -3.99]).to(source)

    def run(device: str):
        y = x.to(device)
        unsigned = not (source.is_floating_point and bool((x < 0).any()))
        wanted = [torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.bool, torch.bfloat16,
                  torch.float16, torch.complex64] + ([torch.uint8] if unsigned else [])
        return [y.to(d) for d in wanted]

    both(run)


def test_upload_takes_the_value_at_the_call() -> None:
    for non_blocking in (False, True):
        host = torch.zeros(1 << 16)
        device = host.to("tpu", non_blocking=non_blocking)
        host.fill_(9)
        same(device, torch.zeros(1 << 16))
        target = torch.ones(1 << 16, device="tpu")
        target.copy_(host, non_blocking=non_blocking)
        host.fill_(3)
        same(target, torch.full((1 << 16,), 9.0))


def test_download_is_a_copy(mode: str) -> None:
    x = torch.arange(8.0, device="tpu")
    host = x.cpu()
    host.add_(1)
    same(x, torch.arange(8.0))
    x.add_(5)
    same(host, torch.arange(8.0) + 1)
    into = torch.empty(2, 4).t()
    into.copy_(x.view(4, 2))
    same(into, (torch.arange(8.0) + 5).view(4, 2))


def test_a_copy_and_its_source_go_separate_ways(mode: str) -> None:
    x = torch.arange(6.0, device="tpu")
    y, z = x.clone(), torch.empty_like(x).copy_(x)
    x.add_(1)
    y[2:].mul_(3)
    same(z, torch.arange(6.0))
    same(x, torch.arange(6.0) + 1)
    same(y, torch.tensor([0.0, 1, 6, 9, 12, 15]))


def test_broadcast_and_mixed_copies(mode: str) -> None:
    def run(device: str):
        x = torch.zeros(3, 4, device=device)
        x.copy_(torch.arange(4, device=device))
        x[:, 1:3] = torch.tensor([[5], [6], [7]])
        x[0] = 2
        x.t()[2:].copy_(torch.ones(3, dtype=torch.bool, device=device))
        h = torch.zeros(3, 4, dtype=torch.int32)
        h.copy_(x)
        return x, h

    both(run)
    with pytest.raises(RuntimeError):
        torch.zeros(3, device="tpu").copy_(torch.zeros(4))


def test_devices_of_one_process() -> None:
    out = child(
        """
        import torch, torch_tpu
        assert torch.tpu.device_count() == 2
        a = torch.arange(6.0, device="tpu:0"); b = a.to("tpu:1")
        assert b.device == torch.device("tpu", 1)
        a.add_(1); b.t_() if b.dim() > 1 else None
        c = (b * 2).view(2, 3).t()
        d = torch.empty(3, 2, device="tpu:0").copy_(c)
        print(d.cpu().tolist(), b.cpu().tolist(), a.cpu().tolist())
        try:
            a + b
        except RuntimeError as error:
            assert "at least two devices, tpu:0 and tpu:1" in str(error), error
        else:
            raise AssertionError("expected an error")
        with torch.accelerator.device_index(1):
            e = torch.ones(2, device="tpu")
        print(e.device, (e + 1).device)
        """,
        TORCH_TPU_NUM_DEVICES="2",
    )
    assert "[[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]] [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]" in out
    assert "tpu:1 tpu:1" in out


def test_save_load_pickle_deepcopy(mode: str) -> None:
    x = torch.arange(12.0, device="tpu").view(3, 4)
    blob = io.BytesIO()
    torch.save({"x": x, "part": x[1:, ::2], "n": torch.tensor([1, 2], device="tpu")}, blob)
    for where in (None, "cpu", "tpu", "tpu:0", torch.device("tpu"), {"tpu:0": "cpu"}, lambda storage, location: storage):
        blob.seek(0)
        got = torch.load(blob, map_location=where, weights_only=not callable(where))
        same(got["x"], x)
        same(got["part"], x[1:, ::2])
        got["part"].fill_(9)
        assert got["x"][1, 0].item() == 9
    same(pickle.loads(pickle.dumps(x)), x)
    both_parts = copy.deepcopy([x, x[0]])
    both_parts[1].fill_(7)
    assert both_parts[0].device.type == "tpu" and both_parts[0][0, 0].item() == 7 and x[0, 0].item() == 0


def test_sharing_with_another_process_is_refused_clearly() -> None:
    x = torch.ones(3, device="tpu")
    assert x.share_memory_() is x  # PyTorch's own no-op for devices that are not the host
    with pytest.raises(RuntimeError, match="only available on CPU"):
        ForkingPickler.dumps(x)


def test_numpy_and_lists() -> None:
    x = torch.arange(3.0, device="tpu")
    with pytest.raises(TypeError, match="(?i)cpu"):
        x.numpy()
    assert x.tolist() == [0.0, 1.0, 2.0] and x.cpu().numpy().tolist() == [0.0, 1.0, 2.0]
    assert "device='tpu:0'" in repr(x) and "1." in repr(x)
    assert float(x.sum()) == 3.0 and int(x.max()) == 2 and bool(x[0] == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(torch.from_numpy(x.cpu().numpy()).to("tpu"), x)
