"""What the sweep knows about one (family, kind): the line of the results file."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

# build: a small model is built and runs on the CPU (forward, gradients, for causal models generation); forward,
# backward, ties, generate: the same on the device, compared.
KINDS = ("build", "forward", "backward", "ties", "generate")
# pass: as on CPU; host: the same, but some op ran on the host; fail: another result or an exception; skip: nothing to
# compare (no ties, not a causal model, the CPU cannot); abort: the process ended; hang: it took longer than the limit.
STATUSES = ("pass", "host", "fail", "skip", "abort", "hang")
# What can be planted beside a wrong result: the process ends, does not answer, takes too much memory.
FAULTS = ("abort", "hang", "memory")


@dataclasses.dataclass
class Record:
    """One result. `error`: the largest difference as a part of the scale of what was compared; `conditioned`: how many
    tensors were judged by their distance to float64, because CPU's own float32 is off by more than the tolerance."""

    family: str
    kind: str
    status: str
    message: str = ""
    head: str = ""
    recipe: int = -1
    inputs: list[str] = dataclasses.field(default_factory=list)
    parameters: int = 0
    error: float = 0.0
    conditioned: int = 0
    host: dict[str, int] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        return self.family, self.kind

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


def from_json(line: str) -> Record:
    return Record(**json.loads(line))


def read_records(path: Path) -> dict[tuple[str, str], Record]:
    """The newest record of each key. A last line that was cut off is left out."""
    found: dict[tuple[str, str], Record] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                record = from_json(line)
            except (ValueError, TypeError):
                continue
            found[record.key] = record
    return found
