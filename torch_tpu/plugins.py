"""Finding a PJRT plugin, without opening one.

Order: `TORCH_TPU_PLUGIN` (a path, or a name of `CPU_PLUGINS` or `libtpu`), then libtpu when this host has a TPU chip, then
the first installed CPU plugin. Wheels are found by their namespace package.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Candidate:
    """A plugin on disk: its distribution's name (or the path itself, when the user gave one) and its shared object."""

    name: str
    path: str


@dataclass(frozen=True)
class Discovery:
    """What was found, best first, and a text for the user (what is wrong and what to do) when nothing was."""

    candidates: list[Candidate]
    problem: str | None = None


# Distribution -> (namespace package, shared object inside it). The first is the default: ARCHITECTURE.md has the measurements.
CPU_PLUGINS = {
    "fastatomstruct-xla-cpu": ("fastatomstruct_xla_cpu", "libpjrt_cpu.so"),
    "xla-cpu-pjrt": ("xla_plugins.xla_cpu_pjrt", "xla_cpu_pjrt.so"),
    "lammps-jax-pjrt-cpu": ("lammps_jax_pjrt_cpu", "pjrt_c_api_cpu_plugin.so"),
}
_TPU_PCI_VENDOR = "0x1ae0"
_TPU_PCI_DEVICES = {"0x005e", "0x0062", "0x0063", "0x006f", "0x0076"}


def _in_package(package: str, file: str) -> str | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / file
        if path.is_file():
            return str(path)
    return None


def find(name: str) -> Candidate | None:
    """The installed plugin of that name (`-` and `_` are the same), or None."""
    name = name.lower().replace("_", "-")
    if name == "libtpu":
        path = os.environ.get("TPU_LIBRARY_PATH") or _in_package("libtpu", "libtpu.so")
        return Candidate(name, path) if path else None
    if name not in CPU_PLUGINS:
        return None
    path = _in_package(*CPU_PLUGINS[name])
    return Candidate(name, path) if path else None


def tpu_chips(sysfs: str = "/sys/bus/pci/devices") -> int:
    """TPU chips on this host's PCI bus. Reads files only."""
    count = 0
    try:
        entries = list(os.scandir(sysfs))
    except OSError:
        return 0
    for entry in entries:
        try:
            vendor = Path(entry.path, "vendor").read_text().strip()
            count += vendor == _TPU_PCI_VENDOR and Path(entry.path, "device").read_text().strip() in _TPU_PCI_DEVICES
        except OSError:
            continue
    return count


def discover() -> Discovery:
    """Applies the order above. Never raises; opens nothing."""
    asked = os.environ.get("TORCH_TPU_PLUGIN", "").strip()
    if asked:
        found = find(asked)
        if found is None and (os.sep in asked or asked.endswith(".so")):
            found = Candidate(asked, asked)
            if not Path(asked).is_file():
                return Discovery([], f"TORCH_TPU_PLUGIN: expected a PJRT plugin, got {asked!r}, which is not a file")
        if found is None:
            known = ", ".join(["libtpu", *CPU_PLUGINS])
            hint = f": `pip install {asked}`" if asked.lower().replace("_", "-") in [*CPU_PLUGINS, "libtpu"] else ""
            return Discovery(
                [], f"TORCH_TPU_PLUGIN: expected a path or one of {known}, got {asked!r}, which is not installed{hint}"
            )
        return Discovery([found])
    candidates = []
    if tpu_chips():
        libtpu = find("libtpu")
        if libtpu is not None:
            candidates.append(libtpu)
    candidates += [found for found in map(find, CPU_PLUGINS) if found is not None]
    if candidates:
        return Discovery(candidates)
    what = "libtpu (`pip install 'torch_tpu[tpu]'`)" if tpu_chips() else "a CPU plugin"
    return Discovery(
        [],
        f"no PJRT plugin found: install {what}, or `pip install fastatomstruct-xla-cpu` to run without a TPU, "
        "or set TORCH_TPU_PLUGIN to a plugin's path",
    )
