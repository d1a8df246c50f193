"""Writes the tables that come from the built package: ops and environment variables."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path


def environment() -> str:
    """The table of environment variables, as Markdown."""
    from torch_tpu import _C

    rows = [f"| `{name}` | {default or ''} | {meaning} |" for name, default, meaning in _C.env_table()]
    return "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows, ""])


def ops() -> str:
    """The overloads with a lowering, by base name, as Markdown."""
    from torch_tpu import _C

    overloads: dict[str, list[str]] = defaultdict(list)
    for name in sorted(_C.registered_ops()):
        base, _, overload = name.partition(".")
        overloads[base].append(overload or "default")
    total = sum(map(len, overloads.values()))
    rows = [f"| `{base}` | {', '.join(names)} |" for base, names in sorted(overloads.items())]
    head = f"{total} overloads of {len(overloads)} ops run on the device. Composite ops come from these.\n"
    return "\n".join([head, "| op | overloads |", "|---|---|", *rows, ""])


def write(folder: Path) -> None:
    """Writes `environment.md` and `ops.md` into `folder`."""
    import torch  # noqa: F401 - loads the device

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environment.md").write_text(environment())
    (folder / "ops.md").write_text(ops())
