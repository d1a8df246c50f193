"""What an optimized HLO module says about a call: cycles, traffic, collectives, and what is alive at the peak of memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from .hlo import HBM, Array, Computation, Instruction, Module

COLLECTIVES = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "collective-permute": "permute",
    "collective-broadcast": "broadcast",
}
_FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id", "while",
         "conditional", "call", "opt-barrier"}  # fmt: skip
_SAME = {"bitcast", "get-tuple-element", "tuple", "while", "opt-barrier", "copy-done", "call"}  # results lie where operands do
_MAX_TRIPS = 200_000


@dataclass(frozen=True)
class Run:
    """An instruction, in which computation, and how often it runs in a call."""

    instruction: Instruction
    computation: Computation
    times: int


@dataclass(frozen=True)
class Collective:
    """One collective. `bytes` is the larger of what goes in and what comes out of one device, `sent` what one device sends in
    a ring over the group, both for all its runs in a call."""

    kind: str
    op: str
    source: str
    bytes: int
    sent: int
    group_size: int
    group: list[int]  # the first one; empty where the program folds devices into groups
    runs: int
    overlapped: bool  # started early and awaited later


@dataclass(frozen=True)
class Live:
    """An array in HBM when the program's memory is at its peak."""

    bytes: int
    type: str
    name: str  # "argument 3", or the instruction's
    op: str
    source: str


@dataclass
class Figures:
    """Sums over one call of a module on one device."""

    module: Module
    unknown_loops: list[str] = field(default_factory=list)  # counted once

    @cached_property
    def runs(self) -> list[Run]:
        """Every instruction that is launched, with how often; of a conditional, the dearest branch."""
        return list(self._walk(self.module.entry, 1))

    @cached_property
    def cycles(self) -> int:
        """The compiler's estimates, added up; loops multiplied by their trip counts."""
        return sum((run.instruction.cycles or 0) * run.times for run in self.runs)

    @cached_property
    def hbm_bytes(self) -> int:
        """Bytes that cross the border of HBM: operands and results that lie there, and copies to and from the cores' memory."""
        return sum(self._traffic(run) * run.times for run in self.runs)

    @cached_property
    def unestimated(self) -> dict[str, int]:
        """Opcodes (a custom call by its target) for which the compiler gives no cycles, and how often they run."""
        found: dict[str, int] = defaultdict(int)
        for run in self.runs:
            opcode = run.instruction.opcode
            small = all(not array.dims for array in run.instruction.arrays)
            plain = opcode in _FREE or opcode.endswith(("-start", "-update", "-done")) or opcode == "copy"
            if run.instruction.cycles is None and not plain and not small and not _collective(opcode):
                found[f"{opcode} {run.instruction.target}".strip()] += run.times
        return dict(found)

    @cached_property
    def collectives(self) -> list[Collective]:
        """Those of the program, dearest first."""
        found = []
        for run in self.runs:
            each = run.instruction
            kind = _collective(each.opcode)
            if kind is None:
                continue
            inputs = sum(a.plain_bytes for o in each.operands if (p := run.computation.instructions.get(o)) for a in p.arrays)
            size = max(inputs, sum(array.plain_bytes for array in each.arrays) if not each.opcode.endswith("-start") else 0)
            if kind == "all_gather":
                size = inputs * max(each.group_size, 1)
            share = (each.group_size - 1) / each.group_size if each.group_size else 1.0
            sent = size * share * (2 if kind == "all_reduce" else 1)
            found.append(
                Collective(
                    kind,
                    each.op,
                    each.source,
                    size * run.times,
                    int(sent * run.times),
                    each.group_size,
                    each.groups[0] if each.groups else [],
                    run.times,
                    each.opcode.endswith("-start"),
                )  # fmt: skip
            )
        return sorted(found, key=lambda one: -one.sent)

    @cached_property
    def layout_copies(self) -> list[Run]:
        """Copies and transposes that only bring data into another layout."""
        return [run for run in self.runs if run.instruction.opcode in ("copy", "transpose") and run.instruction.cycles]

    @cached_property
    def padding_bytes(self) -> int:
        """What the layouts of the entry's arguments add to them."""
        entry = self.module.computations[self.module.entry]
        return sum(
            a.bytes - a.plain_bytes for each in entry.instructions.values() if each.opcode == "parameter" for a in each.arrays
        )

    def padded_products(self) -> list[tuple[str, float]]:
        """Types of what goes in and out of matrix products that layouts make 1.25 times larger or more, worst first."""
        found: dict[str, float] = {}
        for computation in self.module.computations.values():
            for each in computation.instructions.values():
                if each.opcode not in ("convolution", "dot"):
                    continue
                operands = [computation.instructions[o] for o in each.operands if o in computation.instructions]
                for array in [a for one in (*operands, each) for a in one.arrays]:
                    if array.plain_bytes and array.bytes >= 1 << 16 and array.bytes >= 1.25 * array.plain_bytes:
                        found[str(array)] = array.bytes / array.plain_bytes
        return sorted(found.items(), key=lambda item: -item[1])

    def _walk(self, computation: int, times: int) -> Iterator[Run]:
        where = self.module.computations.get(computation)
        for each in where.instructions.values() if where else ():
            assert where is not None
            yield Run(each, where, times)
            if each.cycles is not None or each.opcode == "fusion":
                continue  # an estimate stands for what is called
            if each.opcode == "while":
                trips = self.trips(where, each)
                if trips is None:
                    self.unknown_loops.append(each.name)
                for called in each.calls:
                    yield from self._walk(called, times * (1 if trips is None else trips))
            elif each.opcode == "conditional":
                branches = [list(self._walk(called, times)) for called in each.calls]
                yield from max(branches, key=lambda b: sum((r.instruction.cycles or 0) * r.times for r in b), default=[])
            elif each.opcode in ("call", "async-start"):
                for called in each.calls:
                    yield from self._walk(called, times)

    # Traffic.

    def _traffic(self, run: Run) -> int:
        each = run.instruction
        if each.opcode in _FREE or each.opcode.endswith(("-done", "-update")) or each.opcode == "async-start":
            return 0
        if each.opcode.endswith("-start"):
            return sum(array.bytes for array in each.arrays if array.space == HBM and array.dims)
        operands = [run.computation.instructions[o] for o in each.operands if o in run.computation.instructions]
        written = sum(array.bytes for array in each.arrays if array.space == HBM)
        read = [sum(a.bytes for a in o.arrays if a.space == HBM) for o in operands]
        if each.opcode in ("dynamic-slice", "slice", "gather"):
            return 2 * written
        if each.opcode == "dynamic-update-slice" and len(operands) > 1:
            return 2 * sum(a.bytes for a in operands[1].arrays)
        if each.opcode == "fusion" and each.calls and each.calls[0] in self.module.computations:
            inner = self.module.computations[each.calls[0]]
            for parameter in inner.instructions.values():
                if parameter.opcode == "parameter" and parameter.parameter < len(read) and read[parameter.parameter]:
                    read[parameter.parameter] = min(read[parameter.parameter], _read_inside(inner, parameter))
            written = min(written, _written_inside(inner, written))
        return written + sum(read)

    # Loops.

    def trips(self, where: Computation, loop: Instruction) -> int | None:
        """How often a loop's body runs, from its integers; None where that depends on data."""
        if loop.trips is not None:
            return loop.trips
        if len(loop.calls) < 2 or not loop.operands:
            return None
        body, condition = (self.module.computations[called] for called in loop.calls[:2])
        start = where.instructions[loop.operands[0]]
        if start.opcode != "tuple":
            return None
        state = {index: self._integer(where, operand, None) for index, operand in enumerate(start.operands)}
        result = body.instructions[body.root]
        if result.opcode != "tuple":
            return None
        for trips in range(_MAX_TRIPS):
            again = self._integer(condition, condition.root, state)
            if again is None:
                return None
            if not again:
                return trips
            state = {
                index: self._integer(body, operand, state)
                for index, operand in enumerate(result.operands)
                if state.get(index) is not None
            }
        return None

    def _integer(self, where: Computation, identity: int, state: dict[int, int | None] | list[int | None] | None) -> int | None:
        """The value of an integer scalar. `state`: a loop's tuple, or the arguments of a fusion."""
        each = where.instructions.get(identity)
        if each is None or len(each.arrays) != 1 or each.arrays[0].dims:
            return None
        if each.opcode == "constant":
            return each.literal
        if each.opcode == "get-tuple-element" and isinstance(state, dict):
            source = where.instructions.get(each.operands[0])
            return state.get(each.index) if source is not None and source.opcode == "parameter" else None
        if each.opcode == "parameter":
            return state[each.parameter] if isinstance(state, list) and each.parameter < len(state) else None
        values = [self._integer(where, operand, state) for operand in each.operands]
        if any(value is None for value in values):
            return None
        if each.opcode == "fusion":
            inner = self.module.computations[each.calls[0]]
            return self._integer(inner, inner.root, values)
        return _arithmetic(each, [value for value in values if value is not None])

    # What is alive at the peak.

    def peak(self, count: int = 10) -> list[Live]:
        """The largest arrays in HBM where most is alive in the entry's schedule; a loop counts as one step."""
        entry = self.module.computations[self.module.entry]
        order = list(entry.instructions.values())
        roots: dict[int, set[int]] = {}  # instruction -> instructions whose memory it shows
        last: dict[int, int] = {}
        for at, each in enumerate(order):
            shown = {each.id}
            if each.opcode in _SAME or each.opcode.endswith(("-done", "-update")):
                shown = set().union(*(roots.get(o, set()) for o in each.operands))
            roots[each.id] = shown
            for operand in each.operands:
                for root in roots.get(operand, ()):
                    last[root] = at
        for root in roots.get(entry.root, ()):
            last[root] = len(order)
        in_arguments = {
            root
            for index, operand in enumerate(entry.instructions[entry.root].operands)
            if index in self.module.aliased_outputs
            for root in roots.get(operand, ())
        }
        sizes: dict[int, list[Array]] = {}
        for each in order:
            if each.opcode in _SAME or each.opcode.endswith(("-done", "-update")) or each.opcode == "constant":
                continue
            arrays = each.arrays[:1] if each.opcode.endswith("-start") else each.arrays
            kept = [array for array in arrays if array.space == HBM]
            if kept and (each.opcode == "parameter" or each.id not in in_arguments):
                sizes[each.id] = kept
        alive: dict[int, int] = {}
        best, at_best = 0, {}
        for at, each in enumerate(order):
            if each.id in sizes and each.opcode != "parameter":
                alive[each.id] = sum(array.bytes for array in sizes[each.id])
            total = sum(alive.values())
            if total > best:
                best, at_best = total, dict(alive)
            for gone in [root for root in alive if last.get(root, at) <= at]:
                del alive[gone]
        found = []
        for each in order:
            if each.opcode == "parameter":
                found += [Live(a.bytes, str(a), f"argument {each.parameter}", "", "") for a in each.arrays if a.space == HBM]
            elif each.id in at_best:
                found += [Live(a.bytes, str(a), each.name, each.op, each.source) for a in sizes[each.id]]
        return sorted(found, key=lambda live: -live.bytes)[:count]


def _collective(opcode: str) -> str | None:
    return COLLECTIVES.get(opcode.removesuffix("-start"))


def _users(inner: Computation, identity: int) -> list[Instruction]:
    """Who reads a value, through bitcasts."""
    found = []
    for each in inner.instructions.values():
        if identity in each.operands:
            found += _users(inner, each.id) if each.opcode == "bitcast" else [each]
    return found


def _read_inside(inner: Computation, parameter: Instruction) -> int:
    """Bytes of a fusion's parameter that its users read: slices and gathers read only what they give."""
    whole = sum(array.bytes for array in parameter.arrays)
    total = 0
    for user in _users(inner, parameter.id):
        if user.opcode in ("dynamic-slice", "slice", "gather"):
            total += sum(array.bytes for array in user.arrays)
        elif user.opcode == "dynamic-update-slice" and len(user.operands) > 1 and user.operands[0] == parameter.id:
            total += sum(array.bytes for array in inner.instructions[user.operands[1]].arrays)
        else:
            return whole
    return total


def _written_inside(inner: Computation, whole: int) -> int:
    """Bytes that a fusion's result changes: the update of one that ends in a dynamic_update_slice."""
    root = inner.instructions.get(inner.root)
    while root is not None and root.opcode == "bitcast":
        root = inner.instructions.get(root.operands[0])
    if root is not None and root.opcode == "dynamic-update-slice" and len(root.operands) > 1:
        return sum(array.bytes for array in inner.instructions[root.operands[1]].arrays)
    return whole


def _arithmetic(each: Instruction, values: list[int]) -> int | None:
    if len(values) == 1 and each.opcode in ("copy", "bitcast", "convert", "copy-done", "reshape"):
        return values[0]
    if len(values) != 2:
        return None
    a, b = values
    compares = {"LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b, "EQ": a == b, "NE": a != b}
    if each.opcode == "compare":
        return int(compares[each.direction]) if each.direction in compares else None
    results = {"add": a + b, "subtract": a - b, "multiply": a * b, "and": a & b, "or": a | b, "minimum": min(a, b),
               "maximum": max(a, b)}  # fmt: skip
    return results.get(each.opcode)
