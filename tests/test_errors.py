"""Bad input raises what CPU PyTorch raises, changes nothing, and never ends the process."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch_tpu
from child import errors
from child import run as child
from compare import same


def raised(fn) -> Exception:
    try:
        out = fn()
        if isinstance(out, torch.Tensor):
            out.cpu()
    except Exception as error:
        return error
    raise AssertionError("expected an error")


MISTAKES = {
    "shapes that don't broadcast": lambda d: torch.ones(3, device=d) + torch.ones(4, device=d),
    "in-place broadcast": lambda d: torch.ones(3, device=d).add_(torch.ones(2, 3, device=d)),
    "matmul": lambda d: torch.ones(2, 3, device=d) @ torch.ones(4, 5, device=d),
    "matmul dtypes": lambda d: torch.ones(2, 3, device=d) @ torch.ones(3, 2, device=d).long(),
    "dim": lambda d: torch.ones(2, 3, device=d).sum(5),
    "cat": lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(2, 4, device=d)]),
    "view": lambda d: torch.ones(2, 3, device=d).view(4, 2),
    "view of a transpose": lambda d: torch.ones(2, 3, device=d).t().view(6),
    "index": lambda d: torch.ones(3, device=d)[5],
    "too many indices": lambda d: torch.ones(3, device=d)[1, 2],
    "index dtype": lambda d: torch.ones(3, device=d)[torch.ones(2, device=d)],
    "mask shape": lambda d: torch.ones(3, device=d)[torch.ones(4, device=d) > 0],
    "bool minus": lambda d: torch.ones(2, device=d).bool() - torch.ones(2, device=d).bool(),
    "bool negate": lambda d: -torch.ones(2, device=d).bool(),
    "int in-place true division": lambda d: torch.ones(2, device=d).int().div_(2),
    "float into int": lambda d: torch.ones(2, device=d).int().add_(1.5),
    "gather": lambda d: torch.ones(2, 3, device=d).gather(0, torch.zeros(2, 3, device=d)),
    "embedding": lambda d: torch.nn.functional.embedding(torch.ones(2, device=d), torch.ones(3, 4, device=d)),
    "conv channels": lambda d: torch.nn.functional.conv2d(torch.ones(1, 3, 8, 8, device=d), torch.ones(4, 2, 3, 3, device=d)),
    "item of many": lambda d: torch.ones(3, device=d).item(),
    "bool of many": lambda d: bool(torch.ones(3, device=d)),
    "negative size": lambda d: torch.empty(-1, device=d),
    "arange step": lambda d: torch.arange(0, 3, 0, device=d),
    "arange sign": lambda d: torch.arange(0, 3, -1, device=d),
    "expand": lambda d: torch.ones(2, 3, device=d).expand(4, 3),
    "out dtype": lambda d: torch.add(torch.ones(2, device=d), 1.5, out=torch.ones(2, device=d).int()),
    "max of nothing": lambda d: torch.ones(0, device=d).max(),
    "argmax of nothing": lambda d: torch.ones(0, device=d).argmax(),
    "backward twice": lambda d: twice(d),
    "grad of an integer": lambda d: torch.ones(2, device=d).int().requires_grad_(),
    "leaf in place": lambda d: torch.ones(2, device=d, requires_grad=True).add_(1),
    "cross_entropy shapes": lambda d: torch.nn.functional.cross_entropy(torch.ones(2, 3, device=d), torch.ones(3, device=d).long()),
    "bernoulli range": lambda d: torch.ones(2, device=d).bernoulli_(1.5),
    "normal std": lambda d: torch.ones(2, device=d).normal_(0, -1),
    "dropout p": lambda d: torch.nn.functional.dropout(torch.ones(2, device=d), 1.5),
    "split": lambda d: torch.ones(5, device=d).split([2, 2]),
    "where": lambda d: torch.where(torch.ones(2, device=d), torch.ones(2, device=d), torch.ones(2, device=d)),
    "scatter": lambda d: torch.ones(2, 3, device=d).scatter(3, torch.zeros(2, 3, device=d).long(), 1),
    "topk": lambda d: torch.ones(3, device=d).topk(5),
    "reshape": lambda d: torch.ones(2, 3, device=d).reshape(7),
    "layer_norm": lambda d: torch.nn.functional.layer_norm(torch.ones(2, 3, device=d), (4,)),
}


def twice(device: str) -> None:
    x = torch.ones(2, device=device, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


@pytest.mark.parametrize("name", MISTAKES)
def test_same_type_as_cpu(name: str, mode: str) -> None:
    want, got = raised(lambda: MISTAKES[name]("cpu")), raised(lambda: MISTAKES[name]("tpu"))
    assert type(got) is type(want), f"{type(got).__name__}: {got}\nwhere CPU raises {type(want).__name__}: {want}"
    assert str(got).strip(), "an error says what is wrong"


def test_a_failed_op_changes_nothing(mode: str) -> None:
    x = torch.arange(3.0, device="tpu")
    for wrong in (lambda: x.add_(torch.ones(4, device="tpu")), lambda: x.mul_(torch.ones(3)), lambda: x.copy_(torch.ones(2, 3))):
        raised(wrong)
    same(x, torch.arange(3.0))
    same(x + 1, torch.arange(3.0) + 1)


def test_devices_do_not_mix(mode: str) -> None:
    x = torch.ones(2, 3, device="tpu")
    for wrong in (lambda: x + torch.ones(2, 3), lambda: torch.ones(2, 3) + x, lambda: x @ torch.ones(3, 2),
                  lambda: torch.cat([x, torch.ones(2, 3)]), lambda: torch.nn.Linear(3, 2)(x), lambda: x.add_(torch.ones(3))):
        error = raised(wrong)
        assert isinstance(error, RuntimeError) and "device" in str(error) and "tpu" in str(error), error
    same(x + torch.tensor(2.0), torch.full((2, 3), 3.0))  # a 0-d host tensor is a number
    with pytest.raises(RuntimeError):
        torch.zeros(2).add_(x[0, :2])


def test_unknown_devices_and_dtypes() -> None:
    with pytest.raises(RuntimeError, match="(?i)device"):
        torch.ones(2, device="tpu:7")
    with pytest.raises(RuntimeError):
        torch.ones(2).to("tpu:7")
    for dtype in (torch.complex32, torch.quint8, torch.bits8):
        with pytest.raises(NotImplementedError, match="dtype"):
            torch.empty(2, dtype=dtype, device="tpu")
    with pytest.raises((NotImplementedError, RuntimeError), match="(?i)strided|layout"):
        torch.empty(2, 2, layout=torch.sparse_csr, device="tpu")


def test_index_out_of_range_is_an_error_in_debug_mode() -> None:
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING):
        x = torch.arange(3.0, device="tpu")
        with pytest.raises(IndexError, match="out of bounds|out of range"):
            x[torch.tensor([0, 3], device="tpu")]
        with pytest.raises(IndexError, match="out of bounds|out of range"):
            x[torch.tensor([-4], device="tpu")] = 1.0


def test_fallback_is_counted_warned_about_and_refusable() -> None:
    out = child(
        """
        import warnings
        import torch, torch_tpu
        x = torch.eye(4, device="tpu")
        library = torch.library.Library("mine", "DEF")  # an op of the user's own, with a kernel for the CPU alone
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(3):
                y = torch.linalg.ldl_factor(x).LD
        twice = torch.ops.mine.twice(x)
        assert twice.device.type == y.device.type == "tpu"
        assert torch.equal(y.cpu(), torch.eye(4)) and torch.equal(twice.cpu(), 2 * torch.eye(4))
        counts = torch_tpu.fallback_counts()
        assert counts["mine::twice"] == 1, counts
        print(len([w for w in seen if "no lowering" in str(w.message)]), counts["aten::linalg_ldl_factor_ex.out"])
        """
    )
    assert out.split()[-2:] == ["1", "3"]
    child(
        """
        import torch, torch_tpu
        try:
            torch.linalg.ldl_factor(torch.eye(4, device="tpu"))
        except NotImplementedError as error:
            assert "ldl_factor" in str(error) and "TORCH_TPU_FALLBACK" in str(error)
        else:
            raise AssertionError
        """,
        TORCH_TPU_FALLBACK="error",
    )


def test_every_row_is_registered() -> None:
    from torch_tpu import _C

    assert _C.registration_problems() == []
    assert len(_C.registered_ops()) == len(set(_C.registered_ops())) > 900


@pytest.mark.parametrize(("plugin", "text"), [("/nowhere/plugin.so", "nowhere"), ("no-such-plugin", "no-such-plugin"),
                                              (__file__, "test_errors.py")])
def test_plugins_that_cannot_be_used(plugin: str, text: str) -> None:
    out = child(
        """
        import torch, torch_tpu
        print(torch.tpu.is_available(), torch.tpu.device_count())
        try:
            torch.ones(2, device="tpu")
        except RuntimeError as error:
            print("ERROR", error)
        print((torch.ones(2) + 1).tolist())
        """,
        TORCH_TPU_PLUGIN=plugin,
    )
    assert "ERROR" in out and text in out and "[2.0, 2.0]" in out, out + errors()


def test_a_mistake_is_told_in_words_that_hold_for_all_values(mode: str) -> None:
    # CPU's words are found by asking its kernel about other values: what it says about those must not come out.
    x = torch.ones(3, 3, device="tpu")
    for wrong in (lambda: torch.linalg.cholesky(x.int()), lambda: torch.linalg.inv(x[:, :2]), lambda: torch.linalg.inv(x.int())):
        text = str(raised(wrong))
        assert "singular" not in text and "positive-definite" not in text, text


def overflow() -> torch.Tensor:
    """A product that no machine holds; its memory is asked for when it runs."""
    return torch.ones(1 << 20, 1, device="tpu") @ torch.ones(1, 1 << 24, device="tpu")


def test_a_program_that_fails_later_is_named() -> None:
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_NEVER):
        overflow()
        with pytest.raises(torch.OutOfMemoryError, match=r"\bmm: .*allocating"):
            torch.tpu.synchronize()
        torch.tpu.synchronize()  # an error is told once
        same(torch.ones(2, device="tpu") + 1, torch.full((2,), 2.0))


def test_debug_mode_names_the_users_line() -> None:
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING):
        error = raised(overflow)
    assert isinstance(error, torch.OutOfMemoryError)
    line = overflow.__code__.co_firstlineno + 2
    assert f"test_errors.py:{line}, in overflow" in str(error), error


def test_a_users_folder_may_have_the_name_of_a_package(tmp_path: Path) -> None:
    script = tmp_path / "torch" / "torch_tpu" / "train.py"
    script.parent.mkdir(parents=True)
    script.write_text(
        "import torch\n"
        "try:\n"
        "    torch.ones(1 << 20, 1, device='tpu') @ torch.ones(1, 1 << 24, device='tpu')\n"
        "except torch.OutOfMemoryError as error:\n"
        "    print(error)\n"
    )
    out = child(f"import runpy, torch_tpu\nrunpy.run_path({str(script)!r})", TORCH_TPU_LAUNCH_BLOCKING="1")
    assert f"{script}:3, in <module>" in out


def test_fused_mode_names_the_ops_of_a_program_that_fails() -> None:
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEFER_AND_FUSE):
        before = torch_tpu._C.host_kernels()
        torch_tpu.set_host_kernels(True)
        try:
            bad = torch.full((3, 3), float("nan")).to("tpu")
            with pytest.raises(RuntimeError, match=r"fused program of \d+ ops \(.*_linalg_svd.*\): .*non-finite"):
                (torch.linalg.svdvals(bad) + 1).cpu()
        finally:
            torch_tpu.set_host_kernels(before)
        same(torch.ones(2, device="tpu") + 1, torch.full((2,), 2.0))
