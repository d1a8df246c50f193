"""`torch-tpu`: what is installed and whether it works (`doctor`), the compile cache (`cache`), and programs for TPUs that are
not here (`compile`, `topologies`)."""

from __future__ import annotations

import argparse
import difflib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

# The probe is another process: a plugin that ends its process, or hangs, becomes a line of the report.
_PROBE = """
import json, time
begin = time.perf_counter()
import torch, torch_tpu
from torch_tpu import _C, plugins
facts = {"import_seconds": time.perf_counter() - begin, "problem": plugins.discover().problem, "devices": []}
if facts["problem"] is None:
    begin = time.perf_counter()
    torch.tpu.init()
    facts["start_seconds"] = time.perf_counter() - begin
    facts["plugin"] = [_C.plugin_name(), _C.plugin_version(), _C.plugin_path()]
    facts["platform"] = [_C.platform_name(), _C.platform_version()]
    for index in range(torch.tpu.device_count()):
        free, total = torch.tpu.mem_get_info(index)
        facts["devices"].append([torch.tpu.get_device_name(index), _C.device_kind(index), total])
    begin = time.perf_counter()
    value = (torch.ones(2, 2, device="tpu") @ torch.ones(2, 2, device="tpu") + 1).sum().item()
    facts["check"] = [value == 12.0, time.perf_counter() - begin]
    usage = _C.cache_usage()
    facts["cache"] = [_C.cache_folder(), usage["files"], usage["bytes"]]
print("FACTS " + json.dumps(facts))
"""
_DISTRIBUTIONS = [
    "torch_tpu",
    "torch",
    "numpy",
    "libtpu",
    "fastatomstruct-xla-cpu",
    "xla-cpu-pjrt",
    "lammps-jax-pjrt-cpu",
    "transformers",
    "accelerate",
    "torch_xla",
]


@dataclass
class Report:
    """Rows to show, and what is wrong (each with what to do)."""

    rows: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _megabytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def examine(timeout: float = 60) -> Report:
    """Looks at versions, plugin, devices and cache; runs one small program. Raises nothing."""
    from . import plugins

    report = Report()
    report.rows.append(("Python", f"{platform.python_version()} on {platform.platform()}"))
    for name in _DISTRIBUTIONS:
        found = _version(name)
        if found is not None:
            report.rows.append((name, found))
    chips = plugins.tpu_chips()
    report.rows.append(("TPU chips on this host", str(chips)))
    for name, value in sorted(os.environ.items()):
        if name.startswith("TORCH_TPU_") or name in ("TORCH_DEVICE_BACKEND_AUTOLOAD", "TPU_LIBRARY_PATH", "XLA_FLAGS"):
            report.rows.append((name, value))
    if _version("torch_tpu") is None:
        report.problems.append("torch_tpu has no distribution metadata, so `import torch` does not load it: `pip install .`")
    if _version("torch_xla") is not None:
        report.problems.append("torch_xla is installed too, and many libraries prefer it: `pip uninstall torch_xla`")
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1":
        report.problems.append("TORCH_DEVICE_BACKEND_AUTOLOAD is off: programs must `import torch_tpu` themselves, or unset it")
    if chips and plugins.find("libtpu") is None:
        report.problems.append("this host has a TPU but no libtpu: `pip install 'torch_tpu[tpu]'`")
    _probe(report, timeout)
    return report


def _probe(report: Report, timeout: float) -> None:
    try:
        child = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        report.problems.append(f"the device did not answer within {timeout:.0f} s: another process may hold the TPU")
        return
    lines = [line for line in child.stdout.splitlines() if line.startswith("FACTS ")]
    if not lines:
        text = child.stderr.strip().splitlines()[-1:] or [f"the process ended with status {child.returncode} and no text"]
        report.problems.append(text[0])
        return
    _add_facts(report, json.loads(lines[0].removeprefix("FACTS ")))


def _add_facts(report: Report, facts: dict[str, Any]) -> None:
    report.rows.append(("import torch with torch_tpu", f"{facts['import_seconds']:.2f} s"))
    if facts["problem"] is not None:
        report.problems.append(facts["problem"])
        return
    name, version, path = facts["plugin"]
    report.rows.append(("plugin", f"{name} (PJRT API {version}), {path}"))
    report.rows.append(("platform", " ".join(facts["platform"][1].split())[:100] or facts["platform"][0]))
    report.rows.append(("client started in", f"{facts['start_seconds']:.2f} s"))
    for index, (device, kind, total) in enumerate(facts["devices"]):
        report.rows.append((f"tpu:{index}", f"{device}, kind {kind}, {_megabytes(total)}"))
    right, seconds = facts["check"]
    report.rows.append(("a small program", f"{'right' if right else 'WRONG'}, {seconds:.2f} s"))
    if not right:
        report.problems.append("a small program gave a wrong result: please report it with this output")
    folder, files, size = facts["cache"]
    report.rows.append(("compile cache", f"{folder}: {files} files, {_megabytes(size)}" if folder else "off"))


def _doctor(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    report = examine(arguments.timeout)
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in report.rows:
        table.add_row(Text(name, style="bold"), Text(value))
    console.print(table)
    for problem in report.problems:
        console.print(Text(f"wrong: {problem}", style="red"))
    if not report.problems:
        console.print(Text("all is well", style="green"))
    return 1 if report.problems else 0


def _cache(arguments: argparse.Namespace) -> int:
    import torch_tpu  # noqa: F401 - registers the device, and says what is wrong when it cannot
    from torch_tpu import _C

    folder = _C.cache_folder()
    if not folder:
        print("the compile cache is off (TORCH_TPU_CACHE=0, or no folder to write to)")
        return 0
    if arguments.action == "clear":
        print(f"{folder}: removed {_C.cache_disk_clear()} files")
        return 0
    usage = _C.cache_usage()
    print(f"{folder}: {usage['files']} files, {_megabytes(usage['bytes'])}")
    return 0


def _topologies(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from .aot.topologies import KINDS, MAX_CHIPS, SOURCE

    table = Table(title="TPU generations; figures of one chip", caption=SOURCE, title_justify="left", caption_justify="left")
    columns = ("kind", "chips at most", "devices", "HBM", "bfloat16", "int8", "HBM bandwidth", "name one as")
    for column in columns:
        table.add_column(column, justify="left" if column in ("kind", "name one as") else "right")
    for kind in KINDS.values():
        example = "x".join(["2", "2", "1"][: kind.dims])
        table.add_row(
            kind.name,
            f"{MAX_CHIPS[kind.name]:,}",
            str(kind.devices_per_chip),
            f"{kind.hbm_bytes / 1e9:.0f} GB",
            f"{kind.bf16_flops / 1e12:,.0f} TFLOP/s",
            f"{kind.int8_ops / 1e12:,.0f} TOP/s",
            f"{kind.bandwidth / 1e9:,.0f} GB/s",
            f"{kind.name}:{example}",
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    return 0


def _compile(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from . import aot

    progress = Console(stderr=True)
    try:
        topology = aot.check_devices(arguments.topology, arguments.devices)
        function = _function(arguments.function)
        with progress.status(f"running {arguments.function}") as status, aot.ranks_if_many(arguments.devices):
            given = function()
            if not isinstance(given, tuple) or len(given) != 2 or not callable(given[0]):
                raise ValueError(f"{arguments.function} must return (callable, example_inputs), got {_described(given)}")
            status.update(f"capturing {arguments.function}")
            captured = aot.capture(*given)
            status.update(f"compiling {captured.ops} ops for {topology.name}")
            program = aot.compile_captured(
                captured,
                topology,
                arguments.devices,
                tokens=arguments.tokens or aot.tokens_of(given[1]),
                timeout=arguments.timeout,
                memory=arguments.memory * 1e9,
            )
    except (aot.CompileError, ImportError, RuntimeError, TypeError, ValueError, AttributeError, OSError) as error:
        progress.print(f"torch-tpu compile: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        return 1
    print(program.report())
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(program.as_dict(), file, indent=2)
    if arguments.html:
        with open(arguments.html, "w") as file:
            file.write(program.html())
    if arguments.save:
        program.save(arguments.save)
    return 0 if program.fits else 2


def _described(given: Any) -> str:
    if isinstance(given, tuple):
        return f"a tuple of {len(given)} ({', '.join(type(each).__name__ for each in given)})"
    return type(given).__name__


def _function(name: str) -> Any:
    """What MODULE_OR_FILE:FUNCTION names. Raises ValueError, ImportError, AttributeError or FileNotFoundError."""
    import importlib
    import runpy

    where, colon, function = name.rpartition(":")
    if not colon or not where or not function:
        raise ValueError(f"expected MODULE_OR_FILE:FUNCTION, as in train.py:step, got {name!r}")
    if where.endswith(".py"):
        if not os.path.isfile(where):
            raise FileNotFoundError(f"expected a file, got {where!r}, which is not there")
        sys.path.insert(0, os.path.dirname(os.path.abspath(where)))
        found = runpy.run_path(where)
    else:
        sys.path.insert(0, os.getcwd())
        found = vars(importlib.import_module(where))
    if function not in found:
        near = difflib.get_close_matches(function, [name for name, value in found.items() if callable(value)], n=3)
        raise AttributeError(f"{where} has no {function!r}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
    if not callable(found[function]):
        raise ValueError(
            f"{name} must be a function that returns (callable, example_inputs), got {type(found[function]).__name__}"
        )
    return found[function]


def main(argv: list[str] | None = None) -> int:
    """The command. Returns its exit status: 0; 1 when `doctor` finds something wrong or `compile` does not compile; 2 when
    what it compiled does not fit the device."""
    parser = argparse.ArgumentParser(prog="torch-tpu", description="PyTorch's tpu device")
    commands = parser.add_subparsers(dest="command", required=True)
    doctor = commands.add_parser("doctor", help="versions, plugin, devices, cache, and what is wrong")
    doctor.add_argument("--timeout", type=float, default=60, help="seconds to wait for the device (default 60)")
    doctor.set_defaults(run=_doctor)
    cache = commands.add_parser("cache", help="the compile cache on disk")
    cache.add_argument("action", choices=["stats", "clear"], nargs="?", default="stats")
    cache.set_defaults(run=_cache)
    topologies = commands.add_parser("topologies", help="the TPUs that `compile` knows")
    topologies.set_defaults(run=_topologies)
    compile = commands.add_parser("compile", help="compile for a TPU that is not here: does it fit, how fast would it be")
    compile.add_argument("function", metavar="MODULE_OR_FILE:FUNCTION", help="returns (callable, example_inputs)")
    compile.add_argument("--topology", default="v6e:1x1", help="as in v7x:2x2x1 (default v6e:1x1)")
    compile.add_argument(
        "--devices", type=int, default=1, help="how many devices run it, each as one rank of a process group (default 1)"
    )
    compile.add_argument("--json", metavar="FILE", help="write the figures")
    compile.add_argument("--html", metavar="FILE", help="write the report as one page with pictures")
    compile.add_argument("--tokens", type=int, help="tokens of one call on one device (default: size of the first integer input)")
    compile.add_argument("--save", metavar="FILE", help="write the executable with its figures")
    compile.add_argument("--memory", type=float, default=16, help="GB of this host that the compiler may use (default 16)")
    compile.add_argument("--timeout", type=float, default=1800, help="seconds for the compiler (default 1800)")
    compile.set_defaults(run=_compile)
    arguments = parser.parse_args(argv)
    return arguments.run(arguments)


if __name__ == "__main__":
    sys.exit(main())
