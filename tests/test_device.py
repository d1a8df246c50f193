"""The device itself: starting, counting, choosing, moving models, saving and loading, ending."""

from __future__ import annotations

import copy
import io
import os
import pickle
import weakref
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import child
import numpy as np
import pytest
import torch
from compare import same
from torch import nn


def test_import_starts_nothing_and_prints_nothing() -> None:
    out = child.run(
        """
        import torch, torch_tpu
        from torch_tpu import _C
        assert torch.tpu.is_available() and torch.tpu.device_count() == 1
        assert torch.device("tpu", 0) == torch.device("tpu:0")
        assert torch.accelerator.current_accelerator() == torch.device("tpu")
        torch.manual_seed(3)
        torch.tpu.synchronize()
        x = torch.ones(4, requires_grad=True)
        (x * x).sum().backward()
        assert not _C.is_initialized() and not torch.tpu.is_initialized()
        maps = open("/proc/self/maps").read()
        assert _C is not None and "pjrt_cpu" not in maps, "a plugin was opened"
        """
    )
    assert out == "" and child.errors() == ""


def test_one_line_says_that_there_is_no_tpu() -> None:
    code = """
        import torch, torch_tpu
        torch.ones(2, device="tpu").add_(1).cpu()
        torch.zeros(2, device="tpu").cpu()
        print(torch.tpu.get_device_name())
    """
    assert "cpu" in child.run(code).lower()
    lines = [line for line in child.errors().splitlines() if "no TPU found" in line]
    assert len(lines) == 1 and "XLA's CPU plugin" in lines[0]


def test_names_and_properties() -> None:
    assert torch._C._get_privateuse1_backend_name() == "tpu"
    x = torch.ones(2).tpu()
    assert x.is_tpu and x.device == torch.device("tpu:0") and not torch.ones(2).is_tpu
    assert nn.Linear(2, 2).tpu().weight.is_tpu
    properties = torch.tpu.get_device_properties(0)
    assert properties.total_memory > 1 << 28 and properties.name == torch.tpu.get_device_name(0)
    dtypes = torch.accelerator.get_device_capability()["supported_dtypes"]
    assert {torch.float32, torch.bfloat16, torch.complex64, torch.int64, torch.bool} <= dtypes
    assert torch.complex32 not in dtypes and torch.qint8 not in dtypes


@pytest.mark.parametrize(
    "use",
    [
        lambda: torch.empty(2, device="tpu:7"),
        lambda: torch.ones(2).to("tpu:7"),
        lambda: torch.tpu.set_device(7),
        lambda: torch.accelerator.set_device_index(7),
        lambda: torch.Stream(device="tpu:7"),
        lambda: torch.Generator(device="tpu:7"),
        lambda: torch.tpu.get_device_name(7),
        lambda: torch.accelerator.memory.memory_allocated(7),
    ],
)
def test_unknown_index(use: Any) -> None:
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        use()
    assert torch.tpu.current_device() == 0


def test_no_plugin() -> None:
    child.run(
        """
        import torch, torch_tpu
        assert not torch.tpu.is_available() and torch.tpu.device_count() == 0
        assert torch.ones(2).sum().item() == 2
        try:
            torch.ones(2, device="tpu")
        except RuntimeError as error:
            assert "TORCH_TPU_PLUGIN" in str(error) and "not a file" in str(error), error
        else:
            raise AssertionError("no plugin, but no error")
        """,
        TORCH_TPU_PLUGIN="/nowhere/plugin.so",
    )


def test_a_file_that_is_no_plugin(tmp_path: Path) -> None:
    path = tmp_path / "plugin.so"
    path.write_bytes(b"not a shared object")
    child.run(
        """
        import torch, torch_tpu
        for _ in range(2):
            try:
                torch.ones(2, device="tpu")
            except RuntimeError as error:
                assert "plugin.so" in str(error), error
            else:
                raise AssertionError("no error")
        assert torch.ones(2).sum().item() == 2
        """,
        TORCH_TPU_PLUGIN=str(path),
    )


def test_two_devices() -> None:
    child.run(
        """
        import threading, torch, torch_tpu
        assert torch.tpu.device_count() == 2
        a = torch.arange(6.0).to("tpu:0")
        b = a.to("tpu:1")
        assert b.device == torch.device("tpu:1") and torch.equal(b.cpu(), a.cpu())
        b.add_(1)
        assert a.cpu().tolist() == [0, 1, 2, 3, 4, 5] and b.cpu().tolist() == [1, 2, 3, 4, 5, 6]
        a.copy_(b[::1] * 2)
        assert a.cpu().tolist() == [2, 4, 6, 8, 10, 12]
        try:
            a + b
        except RuntimeError as error:
            assert "tpu:0" in str(error) and "tpu:1" in str(error), error
        else:
            raise AssertionError("mixed devices were taken")
        with torch.tpu.device(1):
            assert torch.empty(2, device="tpu").device.index == 1
            seen = []
            thread = threading.Thread(target=lambda: seen.append(torch.tpu.current_device()))
            thread.start(); thread.join()
            assert seen == [0], "the current device is the thread's own"
        assert torch.empty(2, device="tpu").device.index == 0
        w = torch.ones(3, device="tpu:1", requires_grad=True)
        (w * torch.arange(3.0, device="tpu:1")).sum().backward()
        assert w.grad.device.index == 1 and w.grad.cpu().tolist() == [0, 1, 2]
        torch.manual_seed(1)
        one = torch.rand(4, device="tpu:0")
        two = torch.rand(4, device="tpu:1")
        assert torch.equal(one.cpu(), two.cpu()), "same seed, same stream"
        torch.rand(4, device="tpu:1")
        assert torch.tpu.get_rng_state(0)[8:].tolist() != torch.tpu.get_rng_state(1)[8:].tolist()
        assert torch.accelerator.memory_allocated(1) > 0
        torch.tpu.synchronize(0); torch.tpu.synchronize(1)
        """,
        TORCH_TPU_NUM_DEVICES="2",
    )


def test_moving_a_module_keeps_parameters_and_ties() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Embedding(5, 3)
            self.outer = nn.Linear(3, 5, bias=False)
            self.outer.weight = self.inner.weight
            self.register_buffer("scale", torch.ones(()))

    model = Tied()
    before = model.inner.weight
    seen = weakref.ref(before)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.to("tpu")
    assert model.inner.weight is before and model.outer.weight is before and seen() is before
    assert before.is_tpu and model.scale.is_tpu
    model.outer(model.inner(torch.tensor([1, 2], device="tpu"))).sum().backward()
    old = before.detach().cpu().clone()
    optimizer.step()
    assert not torch.equal(old, before.detach().cpu())
    model.to("cpu")
    assert model.outer.weight is before and before.device.type == "cpu"


def _save(value: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


@pytest.mark.parametrize("where", [None, "cpu", "tpu", "tpu:0", torch.device("tpu"), {"tpu:0": "cpu"}, "function"])
def test_save_and_load(where: Any) -> None:
    base = torch.arange(12.0, device="tpu").view(3, 4)
    saved = {"a": base, "view": base[1:, ::2], "half": torch.ones(2, dtype=torch.bfloat16, device="tpu")}
    place = (lambda storage, location: storage) if where == "function" else where
    loaded = torch.load(_save(saved), map_location=place)
    kind = "cpu" if where in ("cpu", "function") or isinstance(where, dict) else "tpu"
    assert {t.device.type for t in loaded.values()} == {kind}
    same(loaded["a"], base)
    same(loaded["view"], base[1:, ::2])
    assert loaded["half"].dtype == torch.bfloat16
    loaded["a"].add_(1)
    same(loaded["view"], base[1:, ::2] + 1)  # still one storage


def test_load_from_cpu_to_tpu_and_mmap(tmp_path: Path) -> None:
    path = tmp_path / "state.pt"
    state = nn.Linear(3, 2).state_dict()
    torch.save(state, path)
    loaded = torch.load(path, map_location="tpu", weights_only=True)
    assert all(t.is_tpu for t in loaded.values())
    same(loaded, state)
    model = nn.Linear(3, 2).to("tpu")
    model.load_state_dict(state)
    same(model.weight, state["weight"])


def test_deepcopy_and_pickle() -> None:
    x = torch.arange(4.0, device="tpu")
    both = copy.deepcopy([x, x.view(2, 2)])
    both[0].zero_()
    same(both[1], torch.zeros(2, 2))
    same(x, torch.arange(4.0))
    again = pickle.loads(pickle.dumps(x))
    assert again.is_tpu
    same(again, x)
    parameter = copy.deepcopy(nn.Parameter(x))
    assert isinstance(parameter, nn.Parameter) and parameter.is_tpu and parameter.requires_grad


def test_host_only_requests_are_refused() -> None:
    x = torch.ones(2, device="tpu")
    with pytest.raises(TypeError, match="convert tpu:0 device type tensor to numpy"):
        x.numpy()
    # PyTorch itself makes share_memory_() a no-op for devices; it is the passing on that cannot work.
    with pytest.raises(RuntimeError, match="only available on CPU"):
        ForkingPickler.dumps(x)


def test_printing() -> None:
    x = torch.arange(3.0, device="tpu")
    assert repr(x) == "tensor([0., 1., 2.], device='tpu:0')"
    assert "requires_grad=True" in repr(torch.ones(1, device="tpu", requires_grad=True))
    assert "device='tpu:0'" in repr(torch.empty(0, device="tpu"))
    assert str(torch.ones((), device="tpu").item()) == "1.0"
    big = torch.zeros(2000, device="tpu")
    assert "..." in repr(big)


def test_data_ptr_tells_storages_apart() -> None:
    a, b = torch.empty(10, device="tpu"), torch.empty(10, device="tpu")
    assert a.data_ptr() != 0 and a.data_ptr() % 64 == 0
    assert abs(a.data_ptr() - b.data_ptr()) >= 40
    assert a[3:].data_ptr() == a.data_ptr() + 12
    before = a.data_ptr()
    a.add_(1)
    assert a.data_ptr() == before
    assert a.view(5, 2).untyped_storage().data_ptr() == before
    assert torch.empty(0, device="tpu").data_ptr() == 0


def test_storage_resize() -> None:
    x = torch.arange(4.0, device="tpu")
    storage = x.untyped_storage()
    storage.resize_(32)
    assert storage.nbytes() == 32
    x.resize_(6)
    same(x[:4], torch.arange(4.0))
    storage.resize_(0)
    assert storage.nbytes() == 0
    storage.resize_(24)
    x.copy_(torch.arange(6.0))
    same(x, torch.arange(6.0))


def test_default_device() -> None:
    with torch.device("tpu"):
        assert torch.ones(2).is_tpu and nn.Linear(2, 2).weight.is_tpu and torch.tensor([1]).is_tpu
    assert not torch.ones(2).is_tpu
    torch.set_default_device("tpu")
    try:
        assert torch.arange(3).is_tpu and torch.get_default_device().type == "tpu"
    finally:
        torch.set_default_device(None)


def test_inference_mode_and_grad_clipping() -> None:
    with torch.inference_mode():
        x = torch.ones(2, device="tpu") + 1
    assert x.is_inference()
    same(x, torch.full((2,), 2.0))
    weight = nn.Parameter(torch.ones(4, device="tpu"))
    (weight * torch.tensor([3.0, 0, 0, 4.0], device="tpu")).sum().backward()
    norm = nn.utils.clip_grad_norm_([weight], 1.0)
    same(norm, torch.tensor(5.0), rtol=1e-6)
    same(weight.grad, torch.tensor([0.6, 0, 0, 0.8]), rtol=1e-5)


def test_optimizer_state_loads_to_the_device() -> None:
    def trained(device: str) -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = nn.Linear(3, 2).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        model(torch.ones(1, 3, device=device)).sum().backward()
        optimizer.step()
        return model, optimizer

    _, source = trained("cpu")
    model, target = trained("tpu")
    target.load_state_dict(source.state_dict())
    state = target.state[model.weight]
    assert state["exp_avg"].is_tpu and state["exp_avg_sq"].is_tpu
    same(state["exp_avg"], torch.full((2, 3), 0.1), rtol=1e-6)
    target.step()


def test_dlpack() -> None:
    source = torch.arange(4.0)
    moved = torch.from_dlpack(source).to("tpu")
    same(moved, source)
    same(torch.from_dlpack(moved.cpu()), source)
    for dtype in (torch.bfloat16, torch.int8, torch.bool, torch.complex64):
        array = torch.arange(6).view(2, 3).to(dtype)
        same(torch.from_dlpack(array.t()).to("tpu"), array.t())
        same(torch.from_dlpack(array.to("tpu").t().cpu()), array.t())
    # Device memory has no address that another library could read: PyTorch's own refusals.
    with pytest.raises(ValueError, match="tpu"):
        torch.from_dlpack(moved)
    with pytest.raises(RuntimeError, match="(?i)unsupported device"):
        np.from_dlpack(moved)
    with pytest.raises(BufferError, match="require gradient"):
        torch.ones(2, device="tpu", requires_grad=True).__dlpack__()


def test_safetensors(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = str(tmp_path / "x.safetensors")
    state = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(3, dtype=torch.bfloat16)}
    save_file({k: v.to("tpu") for k, v in state.items()}, path)
    loaded = load_file(path, device=0)  # an index means the accelerator's
    assert all(t.is_tpu for t in loaded.values())
    same(loaded, state)


@pytest.mark.parametrize("dtype", [torch.complex32, torch.quint8])
def test_unknown_dtypes_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises((RuntimeError, TypeError, NotImplementedError), match=r"(?i)complex32|ComplexHalf|quint8|quantized"):
        torch.empty(2, device="tpu", dtype=dtype).cpu()


@pytest.mark.parametrize(
    "code",
    [
        "keep = torch.ones(4, device='tpu') + 1",
        "import builtins; builtins.keep = [torch.ones(4, device='tpu') * 2 for _ in range(50)]",
        "x = torch.ones(4, device='tpu', requires_grad=True); y = (x * 2).sum(); y.backward(); x.loop = x",
        "import threading; threading.Thread(target=lambda: [torch.ones(64, device='tpu').exp() for _ in range(50)]).start()",
        "import atexit; atexit.register(lambda: print(torch.ones(2, device='tpu').add(1).tolist()))",
        "x = torch.ones(4, device='tpu'); import sys; sys.modules['kept_here'] = x",
        "torch.tpu.synchronize(); e = torch.Event('tpu', enable_timing=True); torch.ones(2, device='tpu').exp(); e.record()",
    ],
)
def test_exit_is_clean(code: str) -> None:
    child.run(f"import torch, torch_tpu\n{code}\n")
    assert "Error" not in child.errors() and "terminate" not in child.errors(), child.errors()


def test_use_after_shutdown() -> None:
    child.run(
        """
        import torch, torch_tpu
        from torch_tpu import _C
        x = torch.ones(3, device="tpu")
        assert (x + 1).sum().item() == 6
        _C.shutdown()
        _C.shutdown()
        try:
            torch.ones(5, device="tpu").mul(3).cpu()
        except RuntimeError as error:
            assert "shut down" in str(error), error
        else:
            raise AssertionError("a device worked after shutdown")
        del x
        """
    )


def test_environment_table() -> None:
    from torch_tpu import _C

    rows = {name: (default, meaning) for name, default, meaning in _C.env_table()}
    assert rows["TORCH_TPU_NUM_DEVICES"][0] == "1" and rows["TORCH_TPU_PLUGIN"][0] is None
    assert all(meaning for _, meaning in rows.values())
    assert os.environ["TORCH_TPU_CACHE_DIR"] == _C.cache_folder()
