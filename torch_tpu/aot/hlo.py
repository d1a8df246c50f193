"""The few fields of an optimized HLO module (xla/service/hlo.proto) that a report needs, read from its serialized form.

No maintained package ships that schema without a whole framework, so this reads protobuf's wire format, which is stable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Instruction:
    """One HLO instruction: `cycles` is the compiler's estimate, 0 where it gives none."""

    name: str = ""
    opcode: str = ""
    op_name: str = ""  # from metadata: the StableHLO location's name
    source: str = ""  # "file:line" of the user
    cycles: int = 0
    trips: int = 0  # of a while loop; 0 where the compiler does not say
    calls: list[int] = field(default_factory=list)


@dataclass
class Module:
    """Computations by id, and the entry's id."""

    name: str = ""
    entry: int = 0
    computations: dict[int, list[Instruction]] = field(default_factory=dict)

    def costs(self) -> Iterator[tuple[Instruction, int]]:
        """Every instruction with an estimate, once, with how often it runs in a call."""
        yield from self._walk(self.entry, 1)

    def cycles(self) -> int:
        """The sum of all estimates, loops multiplied by their trip counts where the compiler says them."""
        return sum(instruction.cycles * times for instruction, times in self.costs())

    def _walk(self, computation: int, times: int) -> Iterator[tuple[Instruction, int]]:
        for instruction in self.computations.get(computation, []):
            if instruction.cycles:
                # A fusion's estimate stands for what it calls.
                yield instruction, times
            elif instruction.opcode in ("while", "call", "conditional", "async-start"):
                for called in instruction.calls:
                    yield from self._walk(called, times * max(instruction.trips, 1))

    def loops_of_unknown_length(self) -> int:
        """While loops that `cycles` counts as one turn, since the compiler does not say how many there are."""
        return sum(each.opcode == "while" and not each.trips for all in self.computations.values() for each in all)


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
            else:
                raise ValueError(f"hlo: expected a serialized message, got wire type {wire}")
    except IndexError as error:
        raise ValueError("hlo: the message ends in the middle of a field") from error


def _text(value: int | memoryview) -> str:
    return bytes(value).decode(errors="replace") if isinstance(value, memoryview) else ""


def _integers(value: int | memoryview) -> list[int]:
    if isinstance(value, int):
        return [value]
    numbers, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        numbers.append(number)
    return numbers


def _frames(data: memoryview) -> list[str]:
    """"file:line" of each stack frame of a StackFrameIndexProto; instructions name them by position, from 1."""
    files: list[str] = []
    locations: list[str] = []
    frames: list[str] = []
    for number, value in fields(data):
        if number == 1:
            files.append(_text(value))
        elif number == 3 and isinstance(value, memoryview):
            part = {inner: each for inner, each in fields(value) if isinstance(each, int)}
            at = part.get(1, 0) - 1
            locations.append(f"{files[at]}:{part.get(3, 0)}" if 0 <= at < len(files) else "")
        elif number == 4 and isinstance(value, memoryview):
            part = {inner: each for inner, each in fields(value) if isinstance(each, int)}
            at = part.get(1, 0) - 1
            frames.append(locations[at] if 0 <= at < len(locations) else "")
    return frames


def _instruction(data: memoryview, frames: list[str]) -> Instruction:
    result = Instruction()
    for number, value in fields(data):
        if number == 1:
            result.name = _text(value)
        elif number == 2:
            result.opcode = _text(value)
        elif number == 7 and isinstance(value, memoryview):
            for inner, part in fields(value):
                if inner == 2:
                    result.op_name = _text(part)
                elif inner == 15 and isinstance(part, int) and 0 < part <= len(frames):
                    result.source = frames[part - 1]
        elif number == 38:
            result.calls += _integers(value)
        elif number == 43 and isinstance(value, memoryview) and bytes(value[:1]) == b"{":
            config = json.loads(bytes(value))
            result.cycles = max(int(_find(config, "estimated_cycles") or 0), 0)
            trips = config.get("known_trip_count") or {}
            result.trips = int(trips.get("n", 0))
    return result


def _find(config: object, key: str) -> str | int | None:
    if isinstance(config, dict):
        if key in config:
            return config[key]
        for value in config.values():
            found = _find(value, key)
            if found is not None:
                return found
    return None


def read(serialized: bytes) -> Module:
    """From `hlo_with_config` (HloModuleProtoWithConfig). Raises ValueError on anything else."""
    module = Module()
    for number, value in fields(memoryview(serialized)):
        if number != 1 or not isinstance(value, memoryview):
            continue
        frames = [
            frame for inner, part in fields(value) if inner == 17 and isinstance(part, memoryview) for frame in _frames(part)
        ]
        for inner, part in fields(value):
            if inner == 1:
                module.name = _text(part)
            elif inner == 6 and isinstance(part, int):
                module.entry = part
            elif inner == 3 and isinstance(part, memoryview):
                identity, instructions = 0, []
                for each, piece in fields(part):
                    if each == 2 and isinstance(piece, memoryview):
                        instructions.append(_instruction(piece, frames))
                    elif each == 5 and isinstance(piece, int):
                        identity = piece
                module.computations[identity] = instructions
    if not module.computations:
        raise ValueError("hlo: expected a module with computations")
    return module
