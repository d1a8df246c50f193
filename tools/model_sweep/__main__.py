"""The command line of the sweep."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .check import Options
from .families import WELL_KNOWN, family_names
from .pool import Job, ordered, run_jobs
from .record import FAULTS, KINDS, Record, read_records
from .report import models_text
from .summary import BAD, print_summary


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.model_sweep", description=__doc__)
    parser.add_argument(
        "--device", choices=("tpu", "cpu"), default="tpu", help="cpu: only which families can be compared"
    )
    parser.add_argument("--mode", choices=("strict", "fused", "compiled"), default="strict")
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma separated (default: %(default)s)")
    parser.add_argument("--families", default="", help="regular expression that a family's name must match somewhere")
    parser.add_argument("--well-known", action="store_true", help="only families.WELL_KNOWN")
    parser.add_argument("--shard", type=_shard, default=(0, 1), metavar="I/N")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one kind of one family")
    parser.add_argument("--recycle", type=int, default=40, help="families after which a worker process is replaced")
    parser.add_argument(
        "--results", type=Path, default=Path("model_sweep.jsonl"), help="results file; what it holds is not run again"
    )
    parser.add_argument("--again", action="store_true", help="run again what the results file has")
    parser.add_argument("--failed", action="store_true", help="run again only what did not pass")
    parser.add_argument("--skipped", action="store_true", help="run again only families that could not be built")
    parser.add_argument("--memory", type=float, default=6.0, help="GiB that a worker may take")
    parser.add_argument("--summary", action="store_true", help="only print the tables of the results file")
    parser.add_argument("--failures", type=int, default=40, help="how many failures to print")
    parser.add_argument(
        "--docs", type=Path, metavar="FILE", help="write the page of models from the results (docs/models.md)"
    )
    parser.add_argument(
        "--compiled", type=Path, metavar="FILE", help="for --docs: results of a run with --mode compiled"
    )
    parser.add_argument("--build", default="", help="what the page says that the run was of, such as a commit")
    parser.add_argument(
        "--plant", choices=(*KINDS[1:], *FAULTS), help="put a fault into every result of the kind (a test of the sweep)"
    )
    return parser


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and int(index) < int(count)):
        raise argparse.ArgumentTypeError(f"expected i/n with i < n, got {text!r}")
    return int(index), int(count)


def jobs_of(
    names: list[str],
    kinds: tuple[str, ...],
    records: dict[tuple[str, str], Record],
    *,
    failed: bool,
    again: bool,
    skipped: bool,
) -> list[Job]:
    """The kinds of each family that are still to be run."""
    jobs: list[Job] = []
    for name in names:
        mine = {kind: records.get((name, kind)) for kind in kinds}
        if again:
            chosen = kinds
        elif skipped:
            built = records.get((name, "build"))
            chosen = kinds if built is not None and built.status == "skip" else ()
        elif failed:
            chosen = tuple(k for k, r in mine.items() if r is not None and r.status in (*BAD, "host"))
        else:
            chosen = tuple(k for k, r in mine.items() if r is None)
        if chosen:
            jobs.append((name, chosen))
    return jobs


def main(argv: list[str] | None = None) -> int:
    """0 when everything that ran agrees with the CPU, 1 otherwise."""
    arguments = _parser().parse_args(argv)
    console = Console(width=None if sys.stdout.isatty() else 160)
    if unknown := set(arguments.kinds.split(",")) - set(KINDS):
        console.print(f"--kinds: expected some of {', '.join(KINDS)}, got {', '.join(sorted(unknown))}")
        return 2
    kinds = ordered(arguments.kinds.split(","))
    records = read_records(arguments.results)
    if arguments.docs:
        compiled = read_records(arguments.compiled).values() if arguments.compiled else ()
        text = models_text(records.values(), family_names(), arguments.mode, arguments.build, compiled)
        arguments.docs.write_text(text)
        return 0
    if not arguments.summary:
        index, parts = arguments.shard
        every = sorted(WELL_KNOWN) if arguments.well_known else family_names()
        names = [n for i, n in enumerate(every) if i % parts == index and re.search(arguments.families, n)]
        jobs = jobs_of(names, kinds, records, failed=arguments.failed, again=arguments.again, skipped=arguments.skipped)
        options = Options(arguments.device, arguments.mode, fault=arguments.plant)
        arguments.results.parent.mkdir(parents=True, exist_ok=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console) as progress, arguments.results.open("a") as file:
            task = progress.add_task("sweep", total=len(jobs))
            bad = 0

            def report(record: Record) -> None:
                nonlocal bad
                records[record.key] = record
                file.write(record.to_json() + "\n")
                file.flush()
                bad += record.status in BAD

            def finished(family: str) -> None:
                progress.update(task, advance=1, description=f"{family[:36]:36} {bad} failed")

            if jobs:
                run_jobs(
                    jobs,
                    options,
                    report,
                    finished,
                    workers=arguments.workers,
                    limit=arguments.timeout,
                    recycle=arguments.recycle,
                    memory=arguments.memory * 2**30,
                )
    mine = [r for (family, kind), r in records.items() if kind in kinds and re.search(arguments.families, family)]
    print_summary(console, mine, arguments.failures)
    return 1 if any(r.status in BAD for r in mine) else 0


if __name__ == "__main__":
    sys.exit(main())
