"""The command line of the sweep."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from . import faults
from .check import Options
from .measures import BAD, DTYPES, wanted
from .pool import Job, run_jobs
from .record import KINDS, Record, read_records
from .summary import print_summary
from .support import support_text


def jobs_of(
    dtypes: Sequence[str], kinds: Sequence[str], pattern: str, shard: tuple[int, int], measured: bool = False
) -> list[Job]:
    """All (entry, dtype, kind) that CPU PyTorch supports, or those that a measure stands on; the i-th of n parts by entry."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    from .samples import entry_name

    jobs: list[Job] = []
    for i, op in enumerate(op_db):
        name = entry_name(op)
        if i % shard[1] != shard[0] or not re.search(pattern, name):
            continue
        available = [dtype for dtype in DTYPES if getattr(torch, dtype) in op.supported_dtypes("cpu")]
        for dtype in dtypes:
            if getattr(torch, dtype) in op.supported_dtypes("cpu"):
                jobs += [(name, dtype, kind) for kind in kinds if not measured or wanted(kind, dtype, available)]
    return jobs


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and int(index) < int(count)):
        raise argparse.ArgumentTypeError(f"expected i/n with i < n, got {text!r}")
    return int(index), int(count)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.op_sweep", description=__doc__)
    parser.add_argument("--device", choices=("tpu", "cpu"), default="tpu")
    parser.add_argument("--dtypes", default="float32", help="comma separated, as in float32,bfloat16")
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma separated (default: %(default)s)")
    parser.add_argument("--all", action="store_true", help="what the measures stand on: all dtypes, each kind where it counts")
    parser.add_argument("--samples", type=int, default=8, help="at most so many an entry")
    parser.add_argument("--smallest", action="store_true", help="the smallest samples instead of an even spread")
    parser.add_argument("--ops", default="", help="regular expression that an entry's name must match somewhere")
    parser.add_argument("--shard", type=_shard, default=(0, 1), metavar="I/N")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one entry, dtype and kind")
    parser.add_argument("--recycle", type=int, default=100, help="jobs after which a worker process is replaced")
    parser.add_argument(
        "--results", type=Path, default=Path("op_sweep.jsonl"), help="results file; what it holds is not run again"
    )
    parser.add_argument("--again", action="store_true", help="run again what the results file has")
    parser.add_argument("--failed", action="store_true", help="run again only what did not pass")
    parser.add_argument("--summary", action="store_true", help="only print the tables of the results file")
    parser.add_argument("--failures", type=int, default=40, help="how many failures to print")
    parser.add_argument("--support", type=Path, metavar="FILE", help="write the table of ops (SUPPORT.md) from the results")
    parser.add_argument("--tpu", type=Path, metavar="FILE", help="results of compiling each op for a TPU, for --support")
    parser.add_argument("--plant", choices=faults.NAMES, help="put this fault into every result (a test of the sweep)")
    return parser


def main(argv: list[str] | None = None) -> int:
    """0 when everything that ran agrees with CPU, 1 otherwise."""
    arguments = _parser().parse_args(argv)
    console = Console(width=None if sys.stdout.isatty() else 160)
    kinds = arguments.kinds.split(",")
    if unknown := set(kinds) - set(KINDS):
        console.print(f"--kinds: expected some of {', '.join(KINDS)}, got {', '.join(sorted(unknown))}")
        return 2
    records = read_records(arguments.results)
    dtypes = DTYPES if arguments.all else arguments.dtypes.split(",")
    jobs = jobs_of(dtypes, kinds, arguments.ops, arguments.shard, arguments.all)
    asked = set(jobs)
    if arguments.summary or arguments.support:
        jobs = []
    elif arguments.failed:
        jobs = [job for job in jobs if job in records and records[job].status in (*BAD, "host")]
    elif not arguments.again:
        jobs = [job for job in jobs if job not in records]
    options = Options(arguments.device, arguments.samples, arguments.smallest, arguments.plant)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    with Progress(*columns, console=console) as progress, arguments.results.open("a") as file:
        task = progress.add_task("sweep", total=len(jobs))
        bad = 0

        def report(record: Record) -> None:
            nonlocal bad
            records[record.key] = record
            file.write(record.to_json() + "\n")
            file.flush()
            bad += record.status in BAD
            progress.update(task, advance=1, description=f"{record.entry[:36]:36} {bad} failed")

        if jobs:
            run_jobs(jobs, options, report, workers=arguments.workers, limit=arguments.timeout, recycle=arguments.recycle)
    mine = [record for key, record in records.items() if key in asked]
    if arguments.support:
        arguments.support.write_text(support_text(mine, arguments.tpu))
        return 0
    print_summary(console, mine, arguments.failures)
    return 1 if any(r.status in BAD for r in mine) else 0


if __name__ == "__main__":
    sys.exit(main())
