"""What the sweep knows about one (entry, dtype, kind): the line of the results file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

KINDS = ("forward", "backward", "inplace", "out", "errors")
# pass: as on CPU; host: the same, but something ran on the host; fail: another result or an exception; skip: CPU itself cannot
# run it, or the entry has no such variant; abort: the process ended; hang: it took longer than the limit.
STATUSES = ("pass", "host", "fail", "skip", "abort", "hang")


@dataclasses.dataclass
class Record:
    """One result. `samples`: how many ran on CPU and so count; `passed`: of these, how many agreed."""

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
