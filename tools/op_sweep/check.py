"""One entry at one dtype, one kind of check: the device against CPU."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_flatten, tree_map

from . import faults
from .compare import Tolerance, difference, tolerance_of
from .record import Record
from .samples import entry_name, leaves_with_gradient, move_sample, pick

# Their values are whatever the memory held.
UNINITIALIZED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_",
                 "resize_as_")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Options:
    """What a run of the sweep asks of each entry."""

    device: str = "tpu"
    samples: int = 8
    smallest: bool = False
    fault: str | None = None


class CpuCannot(Exception):
    """CPU PyTorch raises on this sample: nothing to compare with."""


@dataclasses.dataclass
class Case:
    op: OpInfo
    dtype: torch.dtype
    options: Options
    tolerance: Tolerance


@contextlib.contextmanager
def _other_draws() -> Iterator[None]:
    """Other random numbers, for entries that set the seed themselves too."""
    original = torch.manual_seed
    torch.manual_seed = lambda seed: original(int(seed) + 1)
    try:
        yield
    finally:
        torch.manual_seed = original


def _seeded(call: Callable[[], Any], seed: int) -> Any:
    torch.manual_seed(seed)
    return call()


def _oracle(call: Callable[[], Any], seed: int = 0) -> Any:
    try:
        return _seeded(call, seed)
    except Exception as error:
        raise CpuCannot(str(error)) from error


def _random(case: Case, first: Any, sample: SampleInput, function: Callable[..., Any]) -> bool:
    """Whether the op draws: another seed gives another result."""
    if case.op.name in UNINITIALIZED:
        return True
    input_, args, kwargs = move_sample(case.op, sample, "cpu")
    with _other_draws():
        again = _oracle(lambda: function(input_, *args, **kwargs))
    return difference(again, first, Tolerance(), "cpu", strides=False) != ""


def _processed(sample: SampleInput, results: Any) -> Any:
    """Results freed of what is not unique in them, the signs of eigenvectors for one, by the entry's own function."""
    return sample.output_process_fn_grad(results)


def forward(case: Case, sample: SampleInput) -> str:
    device = case.options.device
    input_, args, kwargs = move_sample(case.op, sample, "cpu")
    want = _oracle(lambda: case.op(input_, *args, **kwargs))
    random = _random(case, want, sample, case.op)
    input_, args, kwargs = move_sample(case.op, sample, device)
    got = faults.plant(case.options.fault, _seeded(lambda: case.op(input_, *args, **kwargs), 0))
    text = difference(got, want, case.tolerance, device, values=not random)
    if "values" in text:
        # Signs of eigenvectors and their kin are not unique.
        try:
            cleaned = difference(_processed(sample, got), _processed(sample, want), case.tolerance, device)
        except Exception:
            return text
        changed = difference(_processed(sample, want), want, Tolerance(), "cpu") != ""
        return cleaned if changed else text
    return text


def _gradients(case: Case, sample: SampleInput, device: str) -> list[torch.Tensor | None]:
    arguments = move_sample(case.op, sample, device)
    input_, args, kwargs = arguments
    torch.manual_seed(0)
    results = _processed(sample, case.op(input_, *args, **kwargs))
    leaves, _ = tree_flatten(results)
    outputs = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad and x.layout == torch.strided]
    inputs = leaves_with_gradient(arguments)
    if not outputs or not inputs:
        raise CpuCannot("nothing to differentiate")
    generator = torch.Generator().manual_seed(7)
    weights = [torch.randn(x.shape, generator=generator, dtype=x.dtype).to(device) for x in outputs]
    return list(torch.autograd.grad(outputs, inputs, weights, allow_unused=True))


def backward(case: Case, sample: SampleInput) -> str:
    device = case.options.device
    want = _oracle(lambda: _gradients(case, sample, "cpu"))
    torch.manual_seed(1)
    input_, args, kwargs = move_sample(case.op, sample, "cpu")
    random = _random(case, _oracle(lambda: case.op(input_, *args, **kwargs)), sample, case.op)
    got = faults.plant_gradient(case.options.fault, _gradients(case, sample, device))
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if (g is None) != (w is None):
            return f"gradient {i}: expected {'none' if w is None else 'one'}, got {'none' if g is None else 'one'}"
        if g is not None:
            # A gradient's strides are autograd's choice.
            text = difference(g, w, case.tolerance, device, values=not random, strides=False)
            if text:
                return f"gradient {i}: {text}"
    return ""


def inplace(case: Case, sample: SampleInput) -> str:
    function = case.op.get_inplace()
    if function is None or sample.broadcasts_input:
        raise CpuCannot("no in-place variant for this sample")

    def run(device: str, seed: int) -> tuple[Any, Any]:
        input_, args, kwargs = move_sample(case.op, sample, device)
        input_ = tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, input_)
        torch.manual_seed(seed)
        return function(input_, *args, **kwargs), input_

    device = case.options.device
    want = _oracle(lambda: run("cpu", 0))
    with _other_draws():
        again = _oracle(lambda: run("cpu", 0))
    random = case.op.name in UNINITIALIZED or difference(again, want, Tolerance(), "cpu") != ""
    got = faults.plant(case.options.fault, run(device, 0))
    return difference(got, want, case.tolerance, device, values=not random)


def out(case: Case, sample: SampleInput) -> str:
    if not case.op.supports_out:
        raise CpuCannot("no out= variant")

    def run(device: str, seed: int, empty: bool) -> tuple[Any, Any]:
        input_, args, kwargs = move_sample(case.op, sample, "cpu")
        shapes = case.op(input_, *args, **kwargs)

        def room(x: torch.Tensor) -> torch.Tensor:
            if empty:
                return torch.empty(0, dtype=x.dtype, device=device)
            return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=device)

        input_, args, kwargs = move_sample(case.op, sample, device)
        place = tree_map(room, shapes)
        if isinstance(place, list | tuple):
            place = tuple(place)
        torch.manual_seed(seed)
        return case.op(input_, *args, **kwargs, out=place), place

    device = case.options.device
    text = ""
    for empty in (False, True):
        want = _oracle(lambda empty=empty: run("cpu", 0, empty))
        with _other_draws():
            again = _oracle(lambda empty=empty: run("cpu", 0, empty))
        random = case.op.name in UNINITIALIZED or difference(again, want, Tolerance(), "cpu") != ""
        got = faults.plant(case.options.fault, run(device, 0, empty))
        text = difference(got, want, case.tolerance, device, values=not random)
        if "values" in text:
            cleaned = difference(_processed(sample, got[0]), _processed(sample, want[0]), case.tolerance, device)
            changed = difference(_processed(sample, want[0]), want[0], Tolerance(), "cpu") != ""
            text = cleaned if changed else text
        if text:
            return ("an empty out: " if empty else "") + text
    return text


def errors(case: Case, sample: SampleInput) -> str:
    """The same exception type as CPU."""

    def raised(device: str) -> str:
        input_, args, kwargs = move_sample(case.op, sample, device)
        try:
            case.op(input_, *args, **kwargs)
        except Exception as error:
            return type(error).__name__
        return "nothing"

    want = raised("cpu")
    if want == "nothing":
        raise CpuCannot("no error on CPU")
    got = raised(case.options.device) if case.options.fault is None else "nothing"
    return "" if got == want else f"error: expected {want}, got {got}"


CHECKS: dict[str, Callable[[Case, SampleInput], str]] = {
    "forward": forward,
    "backward": backward,
    "inplace": inplace,
    "out": out,
    "errors": errors,
}


def _samples(case: Case, kind: str) -> list[SampleInput]:
    if kind == "errors":
        if case.op.error_inputs_func is None:
            return []
        torch.manual_seed(0)
        return [e.sample_input for e in case.op.error_inputs("cpu")]
    if kind == "inplace" and case.op.get_inplace() is None:
        return []
    if kind == "out" and not case.op.supports_out:
        return []
    differentiable = case.op.supports_autograd and case.dtype in case.op.supported_backward_dtypes("cpu")
    if kind == "backward" and not differentiable:
        return []
    return pick(case.op, case.dtype, kind == "backward", case.options.samples, case.options.smallest)


class Counters:
    """Host fallbacks and compiled programs since construction; all zero off the tpu device."""

    def __init__(self, device: str) -> None:
        self._module: Any = None
        if device == "tpu":
            import torch_tpu
            from torch_tpu import _C

            torch_tpu.reset_fallback_counts()
            self._module = _C
        self._before = self._programs()

    def _programs(self) -> int:
        if self._module is None:
            return 0
        stats = self._module.cache_stats()
        return int(stats["compilations"] + stats["disk_hits"])

    def host(self) -> dict[str, int]:
        return {} if self._module is None else dict(self._module.fallback_counts())

    def programs(self) -> int:
        return self._programs() - self._before


def run(op: OpInfo, dtype: torch.dtype, kind: str, options: Options) -> Record:
    """All samples of one kind. Never raises."""
    record = Record(entry_name(op), str(dtype).removeprefix("torch."), kind, "skip")
    start = time.monotonic()
    counters = Counters(options.device)
    case = Case(op, dtype, options, tolerance_of(op, dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            samples = _samples(case, kind)
        except Exception as error:
            record.message = f"samples: {type(error).__name__}: {error}"[:300]
            return record
        for i, sample in enumerate(samples):
            try:
                text = CHECKS[kind](case, sample)
            except CpuCannot as reason:
                record.message = record.message or str(reason)[:200]
                continue
            except Exception as error:
                at = traceback.extract_tb(error.__traceback__)[-1]
                text = f"{type(error).__name__}: {' '.join(str(error).split())[:250]} ({at.name})"
            record.samples += 1
            if not text:
                record.passed += 1
            elif record.status != "fail":
                record.status, record.message = "fail", f"sample {i}: {text}"
    record.host, record.programs = counters.host(), counters.programs()
    if record.samples and record.status != "fail":
        record.status, record.message = ("host" if record.host else "pass"), ""
    record.seconds = round(time.monotonic() - start, 3)
    return record
