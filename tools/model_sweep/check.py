"""One family on the device and on the CPU, compared."""

from __future__ import annotations

import copy
import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from .families import Case, find, run, tensors
from .randoms import HostRandoms
from .record import Record

TOLERANCE = 1e-3  # of the scale of what is compared
NEW_TOKENS = 8


@dataclasses.dataclass(frozen=True)
class Options:
    """What is the same for all jobs of a run. `mode`: strict, fused or compiled. `fault` spoils results (a test of
    the sweep)."""

    device: str = "tpu"
    mode: str = "strict"
    search: int = 90  # seconds that looking for a small model may take
    fault: str | None = None


def distance(got: Tensor, want: Tensor, floor: float = 0.0) -> float:
    """The largest difference as a part of the largest number of `want`, or of `floor` where that is more. Infinite
    where shape, dtype, or the places of what is not finite differ."""
    got, want = got.detach().cpu(), want.detach().cpu()
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if not want.is_floating_point():
        return 0.0 if torch.equal(got, want) else float("inf")
    if not want.numel():
        return 0.0
    got, want = got.double(), want.double()
    finite = torch.isfinite(want)
    if not torch.equal(finite, torch.isfinite(got)) or not torch.equal(
        got[~finite].nan_to_num(), want[~finite].nan_to_num()
    ):
        return float("inf")
    if not finite.any():
        return 0.0
    scale = max(float(want[finite].abs().max()), floor)
    worst = float((got[finite] - want[finite]).abs().max())
    return 0.0 if worst == 0.0 else worst / scale if scale > 0 else float("inf")


def ties(model: nn.Module) -> set[frozenset[str]]:
    """The groups of names that are one parameter."""
    groups: dict[int, set[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        groups.setdefault(id(parameter), set()).add(name)
    return {frozenset(g) for g in groups.values() if len(g) > 1}


def move(value: Any, device: str, dtype: torch.dtype | None = None) -> Any:
    """A copy on the device; floating point numbers as `dtype`."""
    if isinstance(value, Tensor):
        return value.detach().clone().to(device, dtype if value.is_floating_point() else None)
    if isinstance(value, dict):
        return {k: move(v, device, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(move(v, device, dtype) for v in value)
    return value


def loss(out: Any) -> Tensor:
    """A number that every floating point output is in, each element with a weight of its own that is the same
    everywhere."""
    total: Tensor | None = None
    for i, t in enumerate(tensors(out)):
        if not (t.is_floating_point() and t.requires_grad and t.numel()):
            continue
        generator = torch.Generator().manual_seed(i)
        weight = torch.randn(t.shape, generator=generator).to(t.device, t.dtype)
        part = (torch.where(torch.isfinite(t), t, torch.zeros_like(t)) * weight).sum() / t.numel() ** 0.5
        total = part if total is None else total + part
    if total is None:
        raise ValueError("no output depends on a parameter")
    return total


def compiled(model: nn.Module) -> Callable[[dict[str, Any]], Any]:
    """Like `run`, as `torch.compile` makes it. Random numbers come from the device."""
    import torch_tpu.compile

    torch_tpu.compile.register()
    torch._dynamo.reset()
    call = torch.compile(model, backend="tpu", dynamic=False)
    return lambda arguments: call(**arguments)


def gradients(
    model: nn.Module, arguments: dict[str, Any], call: Callable[[dict[str, Any]], Any] | None = None
) -> dict[str, Tensor | None]:
    """The gradient of each parameter, by name."""
    model.zero_grad(set_to_none=True)
    loss(run(model, arguments) if call is None else call(arguments)).backward()
    found = {name: None if p.grad is None else p.grad.detach().cpu() for name, p in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    return found


def generated(model: Any, arguments: dict[str, Any]) -> Tensor:
    """The prompt and what greedy search adds to it, without an end token."""
    prompt = arguments["input_ids"]
    torch.manual_seed(0)
    with torch.no_grad(), HostRandoms():
        return model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=NEW_TOKENS,
            min_new_tokens=NEW_TOKENS,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )


class Comparison:
    """The CPU's results of one case, and the judgement of the device's."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.host = copy.deepcopy(case.model)
        self._exact: nn.Module | None = None
        self._results: dict[str, Any] = {}

    def cpu(self, kind: str) -> Any:
        """What the CPU gives, computed once: a list of tensors, or gradients by name."""
        if kind not in self._results:
            self._results[kind] = self._compute(kind, self.host, self.case.inputs)
        return self._results[kind]

    def draws(self) -> bool:
        """Whether the model draws random numbers that its results depend on."""
        with torch.no_grad():
            torch.manual_seed(1)
            other = tensors(self.host(**self.case.inputs))
        return any(distance(t, self.cpu("forward")[i]) > TOLERANCE for i, t in enumerate(other))

    def exact(self, kind: str) -> Any:
        """The same in float64, or None where the model cannot."""
        key = f"{kind} exact"
        if key not in self._results:
            try:
                if self._exact is None:
                    self._exact = copy.deepcopy(self.case.model).double()
                self._results[key] = self._compute(kind, self._exact, move(self.case.inputs, "cpu", torch.float64))
            except Exception:  # a model that insists on float32 somewhere: CPU's float32 stands
                self._results[key] = None
        return self._results[key]

    @staticmethod
    def _compute(kind: str, model: nn.Module, arguments: dict[str, Any]) -> Any:
        if kind == "backward":
            return gradients(model, arguments)
        with torch.no_grad():
            return dict(enumerate(tensors(run(model, arguments))))

    def judge(self, kind: str, got: dict[Any, Tensor | None]) -> tuple[str, float, int]:
        """("" or what differs, the largest distance, how many tensors float64 settled)."""
        want = self.cpu(kind)
        if got.keys() != want.keys():
            return f"expected {len(want)} tensors, got {len(got)}", float("inf"), 0
        floor = 0.0
        if kind == "backward":  # a gradient that is rounding alone is measured against the model's largest
            floor = 1e-4 * max(
                (float(g.abs().max()) for g in want.values() if g is not None and g.numel()), default=0.0
            )
        largest, settled, problems = 0.0, 0, []
        for name, reference in want.items():
            mine = got[name]
            if mine is None or reference is None:
                if (mine is None) != (reference is None):
                    problems.append(f"{name}: a gradient on one device only")
                continue
            d = distance(mine, reference, floor)
            if d > TOLERANCE and self._settles(kind, name, mine, reference, floor):
                settled += 1
                continue
            largest = max(largest, d)
            if not d <= TOLERANCE:
                expected, found = (f"{list(t.shape)} {str(t.dtype)[6:]}" for t in (reference, mine))
                if expected == found:
                    problems.append(f"{name} {found}: off by {d:.1e} of its scale")
                else:
                    problems.append(f"{name}: expected {expected}, got {found}")
        text = f"{len(problems)} of {len(want)}: {'; '.join(problems[:3])}" if problems else ""
        return text, largest, settled

    def _settles(self, kind: str, name: Any, mine: Tensor, reference: Tensor, floor: float) -> bool:
        """Whether CPU's float32 is itself off by more than the tolerance, and the device's result at most four
        times as much: both are rounding then, of sums in another order."""
        exact = self.exact(kind)
        if exact is None or not reference.is_floating_point() or exact.get(name) is None:
            return False
        truth = exact[name]
        if truth.shape != reference.shape:
            return False
        theirs = distance(reference.double(), truth.double(), floor)
        ours = distance(mine.double(), truth.double(), floor)
        return ours <= TOLERANCE or (theirs > TOLERANCE / 2 and ours <= 4 * theirs)


def _host() -> dict[str, int]:
    import torch_tpu

    found = dict(torch_tpu.fallback_counts())
    torch_tpu.reset_fallback_counts()
    return found


def _misbehave(fault: str | None) -> None:
    """What a model could do to the process that runs it."""
    if fault == "abort":
        os.abort()
    if fault == "hang":
        time.sleep(3600)
    if fault == "memory":
        kept = [bytearray(1 << 30)]
        time.sleep(3600)
        del kept


def run_family(family: str, kinds: tuple[str, ...], options: Options, begin: Callable[[str], None]) -> Iterator[Record]:
    """The records of these kinds, in order. `begin` is told of each kind before it starts."""
    begin("build")
    _misbehave(options.fault)
    begun = time.monotonic()
    try:
        case = find(family, options.search)
        comparison = Comparison(case)
        comparison.cpu("forward")
    except Exception as error:
        yield from (
            Record(family, kind, "skip", f"{type(error).__name__}: {error}", seconds=time.monotonic() - begun)
            for kind in kinds
        )
        return
    size = sum(p.numel() for p in case.model.parameters())
    about = {
        "head": type(case.model).__name__,
        "recipe": case.recipe,
        "inputs": sorted(case.inputs),
        "parameters": size,
    }
    if "build" in kinds:
        yield Record(family, "build", "pass", seconds=round(time.monotonic() - begun, 2), **about)
    if options.device == "cpu":
        yield from _cpu_only(comparison, kinds, about)
        return
    import torch_tpu  # noqa: F401

    torch.tpu.eager_mode = (
        torch.tpu.EagerMode.DEFER_AND_FUSE if options.mode == "fused" else torch.tpu.EagerMode.DEFER_NEVER
    )
    before = ties(case.model)
    model: Any = None
    for kind in kinds:
        if kind == "build":
            continue
        begin(kind)
        begun = time.monotonic()
        _host()
        record = Record(family, kind, "pass", **about)
        try:
            if model is None:
                model = copy.deepcopy(case.model).to(options.device)
            reason = _one(kind, comparison, model, before, options, record)
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
        record.host = _host()
        if reason:
            record.status = "skip" if reason.startswith("skip: ") else "fail"
            record.message = reason.removeprefix("skip: ")
        elif record.host:
            record.status = "host"
        record.seconds = round(time.monotonic() - begun, 2)
        yield record


def _one(
    kind: str, comparison: Comparison, model: Any, before: set[frozenset[str]], options: Options, record: Record
) -> str:
    """ "" when the device agrees; fills in the record's figures."""
    case = comparison.case
    if kind == "ties":
        if not before:
            return "skip: no ties"
        lost = before - ties(model)
        return f"lost: {[sorted(g) for g in lost][:3]}" if lost or options.fault == "ties" else ""
    if options.mode == "compiled" and kind in ("forward", "backward") and comparison.draws():
        return "skip: it draws random numbers, and compiled code draws the device's"
    if kind == "generate" and options.mode == "compiled":
        return "skip: generation is compared in eager mode"
    if kind == "generate":
        return _generate(comparison, model, options)
    arguments = move(case.inputs, options.device)
    call = compiled(model) if options.mode == "compiled" else None
    if kind == "forward":
        with torch.no_grad():
            got: dict[Any, Tensor | None] = dict(
                enumerate(t.cpu() for t in tensors(call(arguments) if call else run(model, arguments)))
            )
    else:
        try:
            comparison.cpu("backward")
        except Exception as error:
            return f"skip: the CPU's backward: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        got = dict(gradients(model, arguments, call))
    if options.fault == kind:
        first = next(k for k, v in got.items() if v is not None and v.is_floating_point() and v.numel())
        got[first] = got[first] * 1.01 + 1e-3  # type: ignore[operator]
    text, record.error, record.conditioned = comparison.judge(kind, got)
    return text


def _generate(comparison: Comparison, model: Any, options: Options) -> str:
    case = comparison.case
    if not case.causal or set(case.inputs) != {"input_ids"} or not hasattr(model, "generate"):
        return "skip: not a causal model on token ids"
    try:
        want = generated(comparison.host, case.inputs)
    except Exception as error:
        return f"skip: the CPU cannot generate: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    got = generated(model, move(case.inputs, options.device)).cpu()
    if options.fault == "generate":
        got = got + 1
    if torch.equal(got, want):
        return ""
    if got.shape != want.shape:
        return f"expected {list(want.shape)}, got {list(got.shape)}"
    return f"expected ... {want[0, -NEW_TOKENS:].tolist()}, got ... {got[0, -NEW_TOKENS:].tolist()}"


def _cpu_only(comparison: Comparison, kinds: tuple[str, ...], about: dict[str, Any]) -> Iterator[Record]:
    """What the CPU itself can do of the kinds."""
    case = comparison.case
    for kind in kinds:
        if kind in ("build", "forward", "ties"):
            continue
        record = Record(case.family, kind, "pass", **about)
        begun = time.monotonic()
        try:
            if kind == "backward":
                comparison.cpu("backward")
            elif not case.causal or set(case.inputs) != {"input_ids"}:
                record.status, record.message = "skip", "not a causal model on token ids"
            else:
                generated(comparison.host, case.inputs)
        except Exception as error:
            record.status, record.message = "skip", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        record.seconds = round(time.monotonic() - begun, 2)
        yield record


def quiet() -> None:
    """Offline, one thread, nothing printed: what a worker sets before the first model."""
    import warnings

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TORCH_TPU_FALLBACK", "silent")
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    import transformers

    transformers.logging.set_verbosity_error()
