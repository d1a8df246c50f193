"""One entry at one dtype, one kind of check: the device against CPU."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from . import faults
from .compare import Reference, Tolerance, difference, tolerance_of
from .record import Record
from .samples import entry_name, leaves_with_gradient, move_sample, pick, widened

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
    better: int = 0
    programs: int = 0


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


# Which of equal elements they name is not specified: their indices are compared by what lies there.
NAMES_ANY = ("argsort", "kthvalue", "median", "mode", "nanmedian", "sort", "topk")


def _named_elements(case: Case, sample: SampleInput, results: Any) -> Any:
    """(values, indices) with the elements of the input in place of the indices."""
    leaves, _ = tree_flatten(results)
    x = sample.input
    if case.op.name not in NAMES_ANY or sample.kwargs.get("stable") or not isinstance(x, torch.Tensor) or x.dim() == 0:
        return results
    if len(leaves) == 1 and case.op.name == "argsort":
        leaves = [leaves[0].new_zeros(()), leaves[0]]
    if len(leaves) != 2:
        return results
    numbers = [a for a in (*sample.args, *sample.kwargs.values()) if type(a) is int]
    values, indices = leaves[0].detach().cpu(), leaves[1].cpu()
    for dim in (*reversed(numbers), -1):
        if -x.dim() <= dim < x.dim():
            kept = indices if indices.dim() == x.dim() else indices.unsqueeze(dim)
            if all(a <= b or i == dim % x.dim() for i, (a, b) in enumerate(zip(kept.shape, x.shape, strict=True))):
                return values, x.detach().gather(dim, kept)
    return results


def _agree(
    case: Case, sample: SampleInput, got: Any, want: Any, exact: Callable[[], Any], *, process: Callable[[Any], Any], **how: bool
) -> str:
    """`difference`, against the float64 result too, and freed of what is not unique where that makes the difference."""
    device = case.options.device
    reference = Reference(exact)
    text = difference(got, want, case.tolerance, device, reference=reference, **how)
    if "values" in text:
        named = _named_elements(case, sample, want)
        if named is not want and not difference(_named_elements(case, sample, got), named, Tolerance(), "cpu"):
            return ""
        # Signs of eigenvectors and their kin are not unique.
        try:
            cleaned_want = _processed(sample, process(want))
            cleaned_reference = Reference(lambda: _processed(sample, process(exact())))
            cleaned = difference(
                _processed(sample, process(got)), cleaned_want, case.tolerance, device, reference=cleaned_reference
            )
        except Exception:
            return text
        if difference(cleaned_want, process(want), Tolerance(), "cpu"):
            text, reference = cleaned, cleaned_reference
    case.better += text == "" and reference.used
    return text


def forward(case: Case, sample: SampleInput) -> str:
    def call(device: str, wide: bool = False) -> Any:
        arguments = move_sample(case.op, sample, device)
        input_, args, kwargs = widened(arguments) if wide else arguments
        return case.op(input_, *args, **kwargs)

    want = _oracle(lambda: call("cpu"))
    random = _random(case, want, sample, case.op)
    got = faults.plant(case.options.fault, _seeded(lambda: call(case.options.device), 0))
    exact = functools.cache(lambda: call("cpu", True))
    return _agree(case, sample, got, want, exact, process=lambda x: x, values=not random)


Gradients = list[torch.Tensor | None]


def _gradients(
    case: Case, sample: SampleInput, device: str, weights: list[torch.Tensor] | None = None
) -> tuple[Gradients, list[torch.Tensor]]:
    """Gradients for given weights of the outputs, or drawn ones, on the host; with these in float64."""
    arguments = move_sample(case.op, sample, device)
    if weights is not None:
        arguments = widened(arguments)
    input_, args, kwargs = arguments
    torch.manual_seed(0)
    results = _processed(sample, case.op(input_, *args, **kwargs))
    leaves, _ = tree_flatten(results)
    outputs = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad and x.layout == torch.strided]
    inputs = leaves_with_gradient(arguments)
    if not outputs or not inputs:
        raise CpuCannot("nothing to differentiate")
    if weights is None:
        generator = torch.Generator().manual_seed(7)
        weights = [torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in outputs]
    along = [w.to(device, x.dtype) for w, x in zip(weights, outputs, strict=True)]
    return list(torch.autograd.grad(outputs, inputs, along, allow_unused=True)), weights


def backward(case: Case, sample: SampleInput) -> str:
    device = case.options.device
    want, weights = _oracle(lambda: _gradients(case, sample, "cpu"))
    torch.manual_seed(1)
    input_, args, kwargs = move_sample(case.op, sample, "cpu")
    random = _random(case, _oracle(lambda: case.op(input_, *args, **kwargs)), sample, case.op)
    got = faults.plant_gradient(case.options.fault, _gradients(case, sample, device)[0])
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if (g is None) != (w is None):
            return f"gradient {i}: expected {'none' if w is None else 'one'}, got {'none' if g is None else 'one'}"
    reference = Reference(functools.cache(lambda: _gradients(case, sample, "cpu", weights)[0]))
    # A gradient's strides are autograd's choice.
    text = difference(got, want, case.tolerance, device, values=not random, strides=False, reference=reference)
    case.better += text == "" and reference.used
    return f"gradient: {text}" if text else ""


def inplace(case: Case, sample: SampleInput) -> str:
    function = case.op.get_inplace()
    if function is None or sample.broadcasts_input:
        raise CpuCannot("no in-place variant for this sample")

    def run(device: str, wide: bool = False) -> tuple[Any, Any]:
        arguments = move_sample(case.op, sample, device)
        input_, args, kwargs = widened(arguments) if wide else arguments
        input_ = tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, input_)
        torch.manual_seed(0)
        return function(input_, *args, **kwargs), input_

    want = _oracle(lambda: run("cpu"))
    with _other_draws():
        again = _oracle(lambda: run("cpu"))
    random = case.op.name in UNINITIALIZED or difference(again, want, Tolerance(), "cpu") != ""
    got = faults.plant(case.options.fault, run(case.options.device))
    exact = functools.cache(lambda: run("cpu", True))
    return _agree(case, sample, got, want, exact, process=lambda pair: pair[0], values=not random)


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

    def exact() -> Any:
        input_, args, kwargs = widened(move_sample(case.op, sample, "cpu"))
        result = case.op(input_, *args, **kwargs)
        return result, result

    for empty in (False, True):
        want = _oracle(lambda empty=empty: run("cpu", 0, empty))
        with _other_draws():
            again = _oracle(lambda empty=empty: run("cpu", 0, empty))
        random = case.op.name in UNINITIALIZED or difference(again, want, Tolerance(), "cpu") != ""
        got = faults.plant(case.options.fault, run(case.options.device, 0, empty))
        text = _agree(case, sample, got, want, exact, process=lambda pair: pair[0], values=not random)
        if text:
            return ("an empty out: " if empty else "") + text
    return ""


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


def programs(case: Case, sample: SampleInput) -> str:
    """Other float arguments are the same program."""
    if case.options.device != "tpu":
        raise CpuCannot("no programs on the host")

    def other(x: Any) -> Any:
        return x * 0.984375 if isinstance(x, float) else x

    def call(device: str, change: bool) -> None:
        input_, args, kwargs = move_sample(case.op, sample, device)
        if change:
            args, kwargs = tree_map(other, args), tree_map(other, kwargs)
        case.op(input_, *args, **kwargs)

    for change in (False, True):
        _oracle(lambda change=change: call("cpu", change))
    counters = Counters("tpu")
    call("tpu", False)
    first = counters.programs()
    call("tpu", True)
    more = counters.programs() - first
    case.programs += first
    return f"programs: {more} more for other float arguments" if more else ""


CHECKS: dict[str, Callable[[Case, SampleInput], str]] = {
    "forward": forward,
    "backward": backward,
    "inplace": inplace,
    "out": out,
    "errors": errors,
    "programs": programs,
    "plain": forward,
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


@functools.cache
def _build(device: str) -> str:
    """A name for the library's build: the first digits of its hash."""
    if device != "tpu":
        return ""
    from torch_tpu import _C

    return hashlib.sha256(Path(_C.__file__).read_bytes()).hexdigest()[:8]


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


class _Seen(TorchDispatchMode):
    """The ATen ops that a call comes down to."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(str(func).removeprefix("aten.").removesuffix(".default"))
        return func(*args, **(kwargs or {}))


def ops_of(case: Case, sample: SampleInput) -> list[str]:
    input_, args, kwargs = move_sample(case.op, sample, case.options.device)
    with contextlib.suppress(Exception), torch.no_grad(), _Seen() as seen:
        case.op(input_, *args, **kwargs)
    return sorted(seen.names)


def run(op: OpInfo, dtype: torch.dtype, kind: str, options: Options) -> Record:
    """All samples of one kind. Never raises."""
    record = Record(entry_name(op), str(dtype).removeprefix("torch."), kind, "skip", build=_build(options.device))
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
    record.host, record.programs, record.better = counters.host(), case.programs or counters.programs(), case.better
    if kind == "forward" and samples:
        record.ops = ops_of(case, samples[0])
    if record.samples and record.status != "fail":
        record.status, record.message = ("host" if record.host else "pass"), ""
    record.seconds = round(time.monotonic() - start, 3)
    return record
