"""Whether the programs of the lowering table compile for real TPUs: PyTorch's operator database, one program per sample."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .capture import capture
from .topologies import Topology, parse
from .worker import CompileError, close_all, compile_text

_SMALL = {"v4": "v4:1x1x1", "v5e": "v5e:1x1", "v5p": "v5p:1x1x1", "v6e": "v6e:1x1", "v7x": "v7x:1x1x1"}
_AHEAD = 6  # programs that are captured while others compile
_RECYCLE = 400  # programs of one compiler process: it keeps some memory of each


@dataclass(frozen=True)
class OpCheck:
    """One program on one kind of TPU. `ok` is None where the op gave no program: `why` says whether it needs a value on the
    host, has no lowering, or has no sample of that dtype."""

    op: str
    dtype: str
    what: str  # "forward", "backward"
    kind: str
    ok: bool | None
    why: str = ""
    seconds: float = 0.0


def check_ops(
    ops: str | None = None,
    kinds: Sequence[str] = ("v6e", "v7x"),
    dtypes: Sequence[torch.dtype] = (torch.float32, torch.bfloat16),
    *,
    samples: int = 1,
    backward: bool = True,
    results: str | Path | None = None,
    timeout: float = 120,
    progress: Callable[[str], None] | None = None,
) -> list[OpCheck]:
    """Compiles what the samples of PyTorch's operator database lower to.

    Args:
        ops: a regular expression that entries' names must match as a whole; None: all.
        kinds: of TPU, as in `KINDS`.
        dtypes: of the samples' inputs.
        samples: how many of an entry's samples, the smallest that are not empty.
        backward: gradients too, as programs of their own.
        results: a file of JSON lines that is appended to; what it has already is not done again.
        timeout: seconds for one program.
        progress: called with a line for each program that fails.

    Equal programs are compiled once. Gives one row per program and kind, those of `results` too. Raises ImportError where
    libtpu, or what `torch.testing` needs (expecttest), is not installed.
    """
    topologies = [parse(_SMALL[kind]) for kind in kinds]
    rows = _read(results) if results else []
    done = {(row.op, row.dtype, row.what, row.kind) for row in rows}
    answers: dict[tuple[str, str], tuple[bool, str, float]] = {}
    waiting: list[tuple[OpCheck, Future[tuple[bool, str, float]] | None]] = []

    def add(row: OpCheck) -> None:
        rows.append(row)
        if results:
            with Path(results).open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
        if progress is not None and row.ok is False:
            progress(f"{row.op} {row.dtype} {row.what} {row.kind}: {row.why}")

    def settle(most: int) -> None:
        while len(waiting) > most:
            row, future = waiting.pop(0)
            if future is not None:
                ok, why, seconds = future.result()
                row = OpCheck(row.op, row.dtype, row.what, row.kind, ok, why, round(seconds, 2))
            add(row)

    with ThreadPoolExecutor(len(topologies)) as pool:
        count = 0
        for name, dtype, what, text, why in _programs(ops, dtypes, samples, backward, done, kinds):
            for topology in topologies:
                kind = topology.kind.name
                if (name, dtype, what, kind) in done:
                    continue
                row = OpCheck(name, dtype, what, kind, None, why)
                if text is None:
                    waiting.append((row, None))
                    continue
                key = (kind, hashlib.sha256(re.sub(r" loc\(.*", "", text).encode()).hexdigest())
                waiting.append((row, pool.submit(_compile, topology, text, timeout, key, answers)))
            settle(_AHEAD * len(topologies))
            count += text is not None
            if count % _RECYCLE == _RECYCLE - 1:
                settle(0)
                close_all()
        settle(0)
    return rows


def summary(rows: Iterable[OpCheck]) -> dict[str, dict[str, int]]:
    """{kind: {"programs", "compiled", "refused", "ops", "ops_compiled"}}; an op counts when all its programs compile."""
    found: dict[str, dict[str, int]] = {}
    for kind in sorted({row.kind for row in rows if row.kind}):
        mine = [row for row in rows if row.kind == kind and row.ok is not None]
        refused = {row.op for row in mine if not row.ok}
        names = {row.op for row in mine}
        found[kind] = {
            "programs": len(mine),
            "compiled": sum(bool(row.ok) for row in mine),
            "refused": sum(not row.ok for row in mine),
            "ops": len(names),
            "ops_compiled": len(names - refused),
        }
    return found


def _read(results: str | Path) -> list[OpCheck]:
    path = Path(results)
    lines = path.read_text().splitlines() if path.is_file() else []
    return [OpCheck(**json.loads(line)) for line in lines if line.strip()]


def _compile(
    topology: Topology, text: str, timeout: float, key: tuple[str, str], answers: dict[tuple[str, str], tuple[bool, str, float]]
) -> tuple[bool, str, float]:
    if key not in answers:
        begin = time.monotonic()
        try:
            compile_text(topology, text, timeout=timeout)
            answers[key] = True, "", time.monotonic() - begin
        except CompileError as error:
            answers[key] = False, str(error)[:600], time.monotonic() - begin
    return answers[key]


def _programs(
    ops: str | None,
    dtypes: Sequence[torch.dtype],
    samples: int,
    backward: bool,
    done: set[tuple[str, str, str, str]],
    kinds: Sequence[str],
) -> Iterator[tuple[str, str, str, str | None, str]]:
    """(entry, dtype, "forward" or "backward", StableHLO or None, why there is none)."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op, dtype in itertools.product(op_db, dtypes):
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if (ops is not None and not re.fullmatch(ops, name)) or not op.supports_dtype(dtype, "cpu"):
            continue
        kind = str(dtype).removeprefix("torch.")
        differentiable = backward and op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
        for what in ("forward", "backward") if differentiable else ("forward",):
            if all((name, kind, what, tpu) in done for tpu in kinds):
                continue
            found = False
            for sample in _samples(op, dtype, samples, what == "backward"):
                found = True
                try:
                    text, why = _lower(op, sample, what == "backward"), ""
                except Exception as error:  # whatever an op raises is that op's row
                    text, why = None, f"no program: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
                yield name, kind, what, text, why
            if not found:
                yield name, kind, what, None, "no program: the entry has no sample"


def _samples(op: Any, dtype: torch.dtype, count: int, grad: bool) -> list[Any]:
    torch.manual_seed(0)
    found = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=grad), 200))

    def size(sample: Any) -> tuple[bool, int]:
        numel = sum(
            x.numel() for x in pytree.tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(x, torch.Tensor)
        )
        return numel == 0, numel

    return sorted(found, key=size)[:count]


def _lower(op: Any, sample: Any, grad: bool) -> str:
    leaves, spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def step(*tensors: torch.Tensor) -> Any:
        given = [torch.device("tpu") if leaf == "cpu" or isinstance(leaf, torch.device) else leaf for leaf in leaves]
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(given, spec)
        if first is not None and grad and isinstance(first, torch.Tensor) and first.is_leaf and first.requires_grad:
            first = first.view_as(first) if op.inplace_variant is None else first.clone()  # some entries write to it
        result = op(first, *args, **kwargs)
        if sample.output_process_fn_grad is not None:
            result = sample.output_process_fn_grad(result)
        if not grad:
            return result
        outputs = [x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor) and x.requires_grad]
        inputs = [x for x in tensors if x.requires_grad]
        if not outputs or not inputs:
            return result
        return torch.autograd.grad(outputs, inputs, [torch.ones_like(x) for x in outputs], allow_unused=True)

    return capture(step, [leaves[place] for place in places]).stablehlo
