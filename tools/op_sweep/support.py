"""SUPPORT.md: what each entry of PyTorch's operator database does on the device, from the results of a run."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection
from pathlib import Path

from .measures import BAD, DTYPES, MEASURES
from .record import Record
from .summary import measure_rows

SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "float64": "f64", "int64": "i64", "int32": "i32",
         "uint8": "u8", "bool": "bool", "complex64": "c64"}  # fmt: skip

HEAD = """\
Written by `python -m tools.op_sweep --support`; not edited by hand. Each entry of PyTorch's operator database ran on the
`tpu` device (CPU plugin, strict mode) and on CPU PyTorch. Dtype, sizes, strides and values must agree: how nearly, says
`tools/op_sweep/compare.py`."""
LEGEND = """\
Cells: `yes`, all samples agree; `host`, they agree, but a part ran on the host; `5/8`, so many of the samples agree; empty,
CPU PyTorch has no such thing, or it was not run. `dtypes`: those whose forward agrees. In-place, out= and errors in the
first dtype that the entry has. `TPU`: whether all lowerings that the entry comes down to compile for every TPU tried."""


def _tpu_results(path: Path | None) -> dict[str, dict[tuple[str, str], tuple[bool, str]]]:
    """Row name -> (dtype, kind of TPU) -> whether it compiles, and why not."""
    found: dict[str, dict[tuple[str, str], tuple[bool, str]]] = defaultdict(dict)
    for line in path.read_text().splitlines() if path else ():
        result = json.loads(line)
        key = result["dtype"], result["kind"]
        if found[result["op"]].get(key, (True, ""))[0]:
            found[result["op"]][key] = result["ok"], result["why"]
    return found


def row_of(op: str) -> str:
    """The name of the table's row that serves an ATen op: in-place forms belong to their functional one."""
    base, dot, overload = op.partition(".")
    return (base.removesuffix("_") if not base.startswith("__") else base) + dot + overload


def _tpu_cell(ops: list[str], tpu: dict[str, dict[tuple[str, str], tuple[bool, str]]]) -> str:
    results = [r for op in ops for r in tpu.get(row_of(op), {}).values()]
    if not results:
        return ""
    return "yes" if all(ok for ok, _ in results) else "no"


def _cell(record: Record | None) -> str:
    if record is None or record.status == "skip":
        return ""
    if record.status in ("pass", "host"):
        return "yes" if record.status == "pass" else "host"
    return f"{record.passed}/{record.samples}"


def support_text(records: Collection[Record], tpu_results: Path | None = None) -> str:
    tpu = _tpu_results(tpu_results)
    by_entry: dict[str, dict[tuple[str, str], Record]] = defaultdict(dict)
    for record in records:
        by_entry[record.entry][record.kind, record.dtype] = record
    lines = [
        "# Operators",
        "",
        *HEAD.splitlines(),
        "",
        "| measure | agree | of | % | asked | samples |",
        "|---|---|---|---|---|---|",
    ]
    for name, good, count, percent, target, samples in measure_rows(records):
        lines.append(f"| {name} | {good} | {count} | {percent:.1f} | {target:g} | {samples} |")
    ended = sum(r.status in ("abort", "hang") for r in records)
    lines.append(f"| aborts and hangs | {ended} | {len(records)} | | 0 | {sum(r.samples for r in records)} |")
    if tpu:
        for kind in sorted({kind for results in tpu.values() for _, kind in results}):
            flat = [ok for results in tpu.values() for (_, k), (ok, _) in results.items() if k == kind]
            share = 100 * sum(flat) / len(flat)
            lines.append(f"| rows that compile for {kind} (row, dtype) | {sum(flat)} | {len(flat)} | {share:.1f} | 98 | |")
    builds = Counter(r.build or "older ones" for r in records if r.status != "skip")
    shares = ", ".join(f"{build}: {count}" for build, count in builds.most_common())
    lines += ["", f"Records by build of the library (first digits of its hash): {shares}."]
    lines += [
        "",
        *LEGEND.splitlines(),
        "",
        "| entry | forward | backward | in-place | out= | errors | dtypes | fails in | TPU |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for entry in sorted(by_entry):
        mine = by_entry[entry]

        def first(kind: str, mine: dict[tuple[str, str], Record] = mine) -> Record | None:
            return next((mine[kind, d] for d in DTYPES if (kind, d) in mine), None)

        forward = {d: mine["forward", d] for d in DTYPES if ("forward", d) in mine and mine["forward", d].status != "skip"}
        if not forward:
            continue
        agree = " ".join(SHORT[d] for d, r in forward.items() if r.status not in BAD)
        differ = " ".join(SHORT[d] for d, r in forward.items() if r.status in BAD)
        ops = sorted({op for r in forward.values() for op in r.ops})
        cells = (_cell(first("forward")), _cell(first("backward")), _cell(first("inplace")), _cell(first("out")),
                 _cell(first("errors")), agree, differ, _tpu_cell(ops, tpu))  # fmt: skip
        lines.append(f"| {entry} | {' | '.join(cells)} |")
    lines += ["", "## What runs on the host", "", "| ATen op | records that used it |", "|---|---|"]
    host = Counter(op for r in records for op in r.host if r.kind in MEASURES[0].kinds)
    lines += [f"| {op} | {count} |" for op, count in host.most_common()]
    lines += ["", "## What does not agree", "", "| entry | dtype | kind | what |", "|---|---|---|---|"]
    for r in sorted((r for r in records if r.status in BAD), key=lambda r: r.key):
        what = r.message if r.status == "fail" else f"{r.status}: {r.message}"
        lines.append(f"| {r.entry} | {r.dtype} | {r.kind} | {what.replace('|', '/')[:160]} |")
    refused = [(op, d, k, why) for op, results in sorted(tpu.items()) for (d, k), (ok, why) in results.items() if not ok]
    if refused:
        lines += ["", "## What does not compile for a TPU", "", "| row | dtype | TPU | why |", "|---|---|---|---|"]
        lines += [f"| {op} | {d} | {k} | {why.replace('|', '/')[:160]} |" for op, d, k, why in refused]
    return "\n".join(lines) + "\n"
