"""Figures of a run, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from rich.console import Console
from rich.table import Table

from .measures import BAD, MEASURES
from .record import KINDS, Record, of_kind


def measure_rows(records: Collection[Record]) -> list[tuple[str, int, int, float, float, int]]:
    """(name, good, counted, percent, target, samples) of each measure that something ran for."""
    rows = []
    for measure in MEASURES:
        mine = measure.of(records)
        if mine:
            good = sum(r.status in measure.good for r in mine)
            rows.append((measure.name, good, len(mine), 100 * good / len(mine), measure.target, sum(r.samples for r in mine)))
    return rows


def _print_measures(console: Console, records: Collection[Record]) -> None:
    table = Table(title="measures")
    for column in ("measure", "good", "of", "%", "asked", "samples"):
        table.add_column(column, justify="left" if column == "measure" else "right")
    for name, good, count, percent, target, samples in measure_rows(records):
        table.add_row(name, str(good), str(count), f"{percent:.1f}", f"{target:g}", str(samples))
    ended = sum(r.status in ("abort", "hang") for r in records)
    table.add_row("aborts and hangs", str(ended), str(len(records)), "", "0", str(sum(r.samples for r in records)))
    console.print(table)


def print_summary(console: Console, records: Collection[Record], failures: int = 40) -> None:
    """One row per (kind, dtype), then what failed. `native` leaves out entries that used the host, `better` counts samples that
    were nearer to the float64 result than CPU's, `a call` is programs compiled per sample."""
    table = Table(title="entries that agree with CPU PyTorch")
    for column in (
        "kind",
        "dtype",
        "entries",
        "pass",
        "%",
        "native",
        "%",
        "fail",
        "abort",
        "hang",
        "samples",
        "better",
        "a call",
    ):
        table.add_column(column, justify="left" if column in ("kind", "dtype") else "right")
    dtypes = sorted({r.dtype for r in records})
    for kind in KINDS:
        for dtype in dtypes:
            rows = list(of_kind(records, kind, dtype))
            if not rows:
                continue
            count = Counter(r.status for r in rows)
            good, native = count["pass"] + count["host"], count["pass"]
            table.add_row(
                kind, dtype, str(len(rows)), str(good), f"{100 * good / len(rows):.1f}", str(native),
                f"{100 * native / len(rows):.1f}", str(count["fail"]), str(count["abort"]), str(count["hang"]),
                str(sum(r.samples for r in rows)), str(sum(r.better for r in rows)),
                f"{sum(r.programs for r in rows) / max(1, sum(r.samples for r in rows)):.2f}",
            )  # fmt: skip
    console.print(table)
    _print_measures(console, records)
    host: Counter[str] = Counter()
    for record in records:
        for op in record.host:
            host[op] += 1
    if host:
        console.print("host fallbacks, by how many records used them:", highlight=False)
        for op, times in host.most_common(failures):
            console.print(f"  {times:4d} {op}", highlight=False, markup=False)
    bad = [r for r in records if r.status in BAD]
    if bad:
        console.print(f"{len(bad)} records that failed:" if len(bad) <= failures else f"the first {failures} of {len(bad)}:")
        for record in bad[:failures]:
            where = f"{record.status} {record.entry} {record.dtype} {record.kind}"
            console.print(f"  {where}: {record.message}", highlight=False, markup=False, soft_wrap=True)
