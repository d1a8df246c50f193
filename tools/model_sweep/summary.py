"""Figures of a run, as tables on the console."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from rich.console import Console
from rich.table import Table

from .record import KINDS, Record

BAD = ("fail", "abort", "hang")


def figures(records: Collection[Record], kind: str) -> tuple[int, int, int, int]:
    """(compared, as on the CPU, of these without the host, ended by abort or hang) of one kind."""
    counts = Counter(r.status for r in records if r.kind == kind and r.status != "skip")
    return sum(counts.values()), counts["pass"] + counts["host"], counts["pass"], counts["abort"] + counts["hang"]


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


def print_summary(console: Console, records: Collection[Record], failures: int = 40) -> None:
    """One row a kind, then what failed."""
    table = Table(title="families that agree with the CPU")
    for column in ("kind", "families", "pass", "%", "no host", "%", "abort, hang", "by float64"):
        table.add_column(column, justify="left" if column == "kind" else "right")
    for kind in KINDS:
        count, good, native, ended = figures(records, kind)
        if count:
            settled = sum(bool(r.conditioned) for r in records if r.kind == kind)
            table.add_row(
                kind,
                str(count),
                str(good),
                percent(good, count),
                str(native),
                percent(native, count),
                str(ended),
                str(settled),
            )
    console.print(table)
    host: Counter[str] = Counter()
    for record in records:
        host.update(record.host.keys())
    if host:
        console.print("host fallbacks, by how many records used them:", highlight=False)
        for op, times in host.most_common(failures):
            console.print(f"  {times:4d} {op}", highlight=False, markup=False)
    bad = [r for r in records if r.status in BAD]
    if bad:
        console.print(
            f"{len(bad)} records that failed:" if len(bad) <= failures else f"the first {failures} of {len(bad)}:"
        )
        for record in bad[:failures]:
            text = f"  {record.status} {record.family} {record.kind}: {record.message}"
            console.print(text, highlight=False, markup=False, soft_wrap=True)
