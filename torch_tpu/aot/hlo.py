"""The fields of an optimized HLO module (xla/service/hlo.proto) that a report needs, read from its serialized form.

No maintained package ships that schema without a whole framework, so this reads protobuf's wire format, which is stable.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

HBM = 0  # of the memory spaces; others are on the chip's cores

_NAMES = {1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
          12: "f64", 15: "c64", 16: "bf16", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4", 22: "u4"}  # fmt: skip
_BITS = {"pred": 8, "bf16": 16, "c64": 64, "c128": 128, "f8e5m2": 8, "f8e4m3fn": 8}
_TUPLE = 13


@dataclass(frozen=True)
class Array:
    """One array of a value: `dims` are its sizes, `bytes` what it takes with its layout's padding, `space` where it lies."""

    dtype: str
    dims: tuple[int, ...]
    bytes: int
    plain_bytes: int  # without padding
    space: int

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"


@dataclass
class Instruction:
    """One HLO instruction. `cycles` is the compiler's estimate of one run, None where it gives none."""

    id: int = 0
    name: str = ""
    opcode: str = ""
    arrays: list[Array] = field(default_factory=list)  # a tuple's, flat
    op: str = ""  # the name of its StableHLO location: the op of the lowering table
    source: str = ""  # "file:line" of the user
    cycles: int | None = None
    operands: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)  # computations; of a loop: body, condition
    parameter: int = 0  # its number
    index: int = 0  # of a get-tuple-element
    direction: str = ""  # of a compare
    literal: int | None = None  # of a scalar integer constant
    target: str = ""  # of a custom call
    groups: list[list[int]] = field(default_factory=list)  # of a collective: all of them, or the first of `group_count`
    group_count: int = 0
    group_size: int = 0
    trips: int | None = None  # of a loop, where the compiler says so


@dataclass
class Computation:
    """Instructions in the order in which they run."""

    id: int = 0
    name: str = ""
    root: int = 0
    instructions: dict[int, Instruction] = field(default_factory=dict)


@dataclass
class Module:
    """Computations by id, and the entry's id."""

    name: str = ""
    entry: int = 0
    computations: dict[int, Computation] = field(default_factory=dict)
    aliased_outputs: set[int] = field(default_factory=set)  # that lie in the memory of an argument


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(field number, integer or bytes) of one message. Raises ValueError on what is no message."""
    at = 0
    try:
        while at < len(data):
            key, at = _varint(data, at)
            number, wire = key >> 3, key & 7
            if wire == 0:
                value, at = _varint(data, at)
                yield number, value
            elif wire == 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise IndexError
                yield number, data[at : at + size]
                at += size
            elif wire in (1, 5):
                at += 8 if wire == 1 else 4
                if at > len(data):
                    raise IndexError
            else:
                raise ValueError(f"hlo: expected a serialized message, got wire type {wire}")
    except IndexError as error:
        raise ValueError("hlo: the message ends in the middle of a field") from error


def _text(value: int | memoryview) -> str:
    return bytes(value).decode(errors="replace") if isinstance(value, memoryview) else ""


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _integers(value: int | memoryview) -> list[int]:
    if isinstance(value, int):
        return [_signed(value)]
    numbers, at = [], 0
    try:
        while at < len(value):
            number, at = _varint(value, at)
            numbers.append(_signed(number))
    except IndexError as error:
        raise ValueError("hlo: the message ends in the middle of a number") from error
    return numbers


def _messages(data: memoryview, number: int) -> Iterator[memoryview]:
    for inner, value in fields(data):
        if inner == number and isinstance(value, memoryview):
            yield value


def _array(data: memoryview) -> list[Array]:
    """The arrays of a ShapeProto, a tuple's in order."""
    kind, dims, parts = 0, [], []
    order: list[int] = []
    tile: list[int] = []
    space = 0
    for number, value in fields(data):
        if number == 2 and isinstance(value, int):
            kind = value
        elif number == 3:
            dims += _integers(value)
        elif number == 4 and isinstance(value, memoryview):
            parts += _array(value)
        elif number == 5 and isinstance(value, memoryview):
            for inner, part in fields(value):
                if inner == 1:
                    order += _integers(part)
                elif inner == 6 and isinstance(part, memoryview) and not tile:
                    tile = [size for n, each in fields(part) if n == 1 for size in _integers(each)]
                elif inner == 8 and isinstance(part, int):
                    space = part
    if kind == _TUPLE:
        return parts
    name = _NAMES.get(kind, "")
    bits = _BITS.get(name) or int("".join(c for c in name if c.isdigit()) or 0)
    padded = [dims[d] for d in reversed(order)] if sorted(order) == list(range(len(dims))) else list(dims)
    padded = [1] * (len(tile) - len(padded)) + padded
    for place, size in enumerate(reversed(tile), 1):
        if size > 0:
            padded[-place] = -(-padded[-place] // size) * size
    return [Array(name, tuple(dims), (math.prod(padded) * bits + 7) // 8, (math.prod(dims) * bits + 7) // 8, space)]


def _frames(data: memoryview) -> list[str]:
    """The "file:line" of each stack frame of a StackFrameIndexProto; instructions name them by position, from 1."""
    files: list[str] = []
    locations: list[str] = []
    frames: list[str] = []
    for number, value in fields(data):
        if number == 1:
            files.append(_text(value))
        elif number in (3, 4) and isinstance(value, memoryview):
            part = {inner: each for inner, each in fields(value) if isinstance(each, int)}
            at = part.get(1, 0) - 1
            if number == 3:
                locations.append(f"{files[at]}:{part.get(3, 0)}" if 0 <= at < len(files) else "")
            else:
                frames.append(locations[at] if 0 <= at < len(locations) else "")
    return frames


def _literal(data: memoryview) -> int | None:
    """Of a LiteralProto with one integer."""
    numbers = [n for number, value in fields(data) if number in (2, 4, 5, 6, 7) for n in _integers(value)]
    return numbers[0] if len(numbers) == 1 else None


def _config(instruction: Instruction, text: bytes) -> None:
    config = json.loads(text)
    found = _find(config, "estimated_cycles")
    if found is not None and int(found) > 0:
        instruction.cycles = int(found)
    trips = config.get("known_trip_count")
    if isinstance(trips, dict):
        instruction.trips = int(trips.get("n", 0)) or None


def _find(config: object, key: str) -> str | int | None:
    if isinstance(config, dict):
        if key in config:
            return config[key]
        for value in config.values():
            found = _find(value, key)
            if found is not None:
                return found
    return None


def _replica_groups(instruction: Instruction, data: memoryview) -> None:
    """A CollectiveDeviceListProto: either the groups, or how to fold 0..n-1 into them."""
    for number, value in fields(data):
        if number == 1 and isinstance(value, memoryview):
            instruction.groups.append([n for inner, part in fields(value) if inner == 1 for n in _integers(part)])
        elif number == 2 and isinstance(value, memoryview):
            part = {inner: each for inner, each in fields(value) if isinstance(each, int)}
            instruction.group_count, instruction.group_size = part.get(1, 0), part.get(2, 0)
    if instruction.groups:
        instruction.group_count, instruction.group_size = len(instruction.groups), len(instruction.groups[0])


def _instruction(data: memoryview, frames: list[str]) -> Instruction:
    result = Instruction()
    for number, value in fields(data):
        if isinstance(value, int):
            if number == 9:
                result.parameter = value
            elif number == 13:
                result.index = value
            elif number == 35:
                result.id = value
            elif number == 36:
                result.operands.append(value)
            elif number == 38:
                result.calls.append(value)
            continue
        if number == 1:
            result.name = _text(value)
        elif number == 2:
            result.opcode = _text(value)
        elif number == 3:
            result.arrays = _array(value)
        elif number == 7:
            for inner, part in fields(value):
                if inner == 2:
                    result.op = _text(part)
                elif inner == 15 and isinstance(part, int) and 0 < part <= len(frames):
                    result.source = frames[part - 1]
        elif number == 8:
            result.literal = _literal(value)
        elif number == 28:
            result.target = _text(value)
        elif number == 36:
            result.operands += _integers(value)
        elif number == 38:
            result.calls += _integers(value)
        elif number == 43 and bytes(value[:1]) == b"{":
            _config(result, bytes(value))
        elif number == 63:
            result.direction = _text(value)
        elif number == 87:
            _replica_groups(result, value)
    return result


def _computation(data: memoryview, frames: list[str]) -> Computation:
    result = Computation()
    for number, value in fields(data):
        if number == 1:
            result.name = _text(value)
        elif number == 2 and isinstance(value, memoryview):
            instruction = _instruction(value, frames)
            result.instructions[instruction.id] = instruction
        elif number == 5 and isinstance(value, int):
            result.id = value
        elif number == 6 and isinstance(value, int):
            result.root = value
    return result


def _schedule(data: memoryview, module: Module) -> None:
    """Puts instructions into the order of a HloScheduleProto (a map: computation -> ids)."""
    for entry in _messages(data, 1):
        identity, ids = 0, []
        for number, value in fields(entry):
            if number == 1 and isinstance(value, int):
                identity = value
            elif number == 2 and isinstance(value, memoryview):
                ids = [n for inner, part in fields(value) if inner == 1 for n in _integers(part)]
        found = module.computations.get(identity)
        if found is not None and set(ids) == set(found.instructions):
            found.instructions = {n: found.instructions[n] for n in ids}


def read(serialized: bytes) -> Module:
    """From `hlo_with_config` (HloModuleProtoWithConfig). Raises ValueError on anything else."""
    module = Module()
    schedules = []
    for data in _messages(memoryview(serialized), 1):
        frames = [frame for part in _messages(data, 17) for frame in _frames(part)]
        for number, value in fields(data):
            if number == 1:
                module.name = _text(value)
            elif number == 3 and isinstance(value, memoryview):
                computation = _computation(value, frames)
                module.computations[computation.id] = computation
            elif number == 6 and isinstance(value, int):
                module.entry = value
            elif number == 7 and isinstance(value, memoryview):
                schedules.append(value)
            elif number == 8 and isinstance(value, memoryview):
                for entry in _messages(value, 1):
                    module.aliased_outputs |= {n for inner, part in fields(entry) if inner == 1 for n in _integers(part)}
    if module.entry not in module.computations:
        raise ValueError("hlo: expected a module with computations")
    for schedule in schedules:
        _schedule(schedule, module)
    return module
