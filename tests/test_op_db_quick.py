"""Every entry of PyTorch's operator database in float32: its smallest sample, forward, on the device.

`op_db_known_failures.txt` lists what does not agree yet (`fail`) or needs the host (`host`). An entry that is better than its line
fails the test too, so that the list only shrinks. The whole sweep is `python -m tools.op_sweep`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from tools.op_sweep.__main__ import jobs_of  # noqa: E402
from tools.op_sweep.check import Options  # noqa: E402
from tools.op_sweep.pool import run_jobs  # noqa: E402
from tools.op_sweep.record import Record  # noqa: E402

KNOWN = Path(__file__).with_name("op_db_known_failures.txt")
PARTS = 8


def known_failures() -> dict[str, str]:
    """Entry -> `fail` or `host`. A line is `entry status reason`."""
    known: dict[str, str] = {}
    for line in KNOWN.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        entry, status, reason = line.split(maxsplit=2)
        assert status in ("fail", "host") and reason, line
        assert entry not in known, f"{entry} is listed twice"
        known[entry] = status
    return known


def test_the_list_names_entries() -> None:
    entries = {entry for entry, _, _ in jobs_of(["float32"], ["forward"], "", (0, 1))}
    assert set(known_failures()) <= entries and len(entries) > 600


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_entries(part: int) -> None:
    records: list[Record] = []
    jobs = jobs_of(["float32"], ["forward"], "", (part, PARTS))
    run_jobs(jobs, Options(samples=1, smallest=True), records.append, workers=2, limit=120)
    assert len(records) == len(jobs) > 0
    known = known_failures()
    wrong = []
    for record in records:
        status = record.status if record.status in ("pass", "host", "skip") else "fail"
        expected = known.get(record.entry, "pass")
        if status != expected and status != "skip":
            wrong.append(f"{record.entry}: expected {expected}, got {record.status} {record.host or ''} {record.message}")
    assert not wrong, "\n".join(wrong)
