"""What the sweep knows about one (entry, dtype, kind): the line of the results file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

# forward .. errors: the op, its gradients, its variants and its mistakes. programs: a call with other float arguments compiles
# nothing. plain: forward once more with host handlers off, so that all values come from StableHLO.
KINDS = ("forward", "backward", "inplace", "out", "errors", "programs", "plain")
# pass: as on CPU; host: the same, but something ran on the host; fail: another result or an exception; skip: CPU itself cannot
# run it, or the entry has no such variant; abort: the process ended; hang: it took longer than the limit.
STATUSES = ("pass", "host", "fail", "skip", "abort", "hang")


@dataclasses.dataclass
class Record:
    """One result. `samples`: how many ran on CPU and so count; `passed`: of these, how many agreed, `better` of them because they
    are nearer to the float64 result than CPU's own. `programs`: how many were compiled. `ops`: the ATen ops that
    the first sample's forward came down to. `build`: which build of the library ran it."""

    entry: str
    dtype: str
    kind: str
    status: str
    samples: int = 0
    passed: int = 0
    message: str = ""
    host: dict[str, int] = dataclasses.field(default_factory=dict)
    programs: int = 0
    seconds: float = 0.0
    better: int = 0
    ops: list[str] = dataclasses.field(default_factory=list)
    build: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.entry, self.dtype, self.kind

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


def from_json(line: str) -> Record:
    return Record(**json.loads(line))


def read_records(path: Path) -> dict[tuple[str, str, str], Record]:
    """The newest record of each key. A last line that was cut off is left out."""
    found: dict[tuple[str, str, str], Record] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                record = from_json(line)
            except (ValueError, TypeError):
                continue
            found[record.key] = record
    return found


def of_kind(records: Iterable[Record], kind: str, dtype: str) -> Iterator[Record]:
    return (r for r in records if r.kind == kind and r.dtype == dtype and r.status != "skip")
