"""docs/models.md, from the records of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from .record import KINDS, Record
from .summary import figures, percent

_WORDS = {"pass": "yes", "host": "host", "fail": "no", "skip": "", "abort": "abort", "hang": "hang"}
_ROWS = {
    "forward": "values equal (1e-3 of the output's scale)",
    "backward": "gradients of all parameters equal",
    "ties": "tied weights kept by `.to(\"tpu\")`",
    "generate": "greedy generation identical",
}


def _versions() -> str:
    import torch
    import transformers

    import torch_tpu

    return f"torch_tpu {torch_tpu.__version__}, torch {torch.__version__.split('+')[0]}, Transformers {transformers.__version__}"


def models_text(given: Iterable[Record], mode: str, build: str) -> str:
    """The page, as Markdown."""
    records = list(given)
    by_family: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in records:
        by_family[record.family][record.kind] = record
    built = [f for f, kinds in by_family.items() if any(r.status != "skip" for k, r in kinds.items() if k in ("build", "forward"))]
    lines = [
        "# Models",
        "",
        f"{len(built)} of {len(by_family)} configuration types of Transformers can be built small and offline from their configuration"
        f" class, and are compared with the CPU in float32, {mode} eager mode: one head each, the causal language model where there"
        " is one. Made by `python -m tools.model_sweep` and `--docs`; nothing here is written by hand.",
        "",
        f"Run with {_versions()}{', build ' + build if build else ''}, on the CPU plugin.",
        "",
        "| measure | families | as on the CPU | % | with no op on the host |",
        "|---|---|---|---|---|",
    ]
    for kind, words in _ROWS.items():
        count, good, native, _ = figures(records, kind)
        if count:
            lines.append(f"| {words} | {count} | {good} | {percent(good, count)} | {native} |")
    ended = sum(r.status in ("abort", "hang") for r in records)
    hosts = {r.family for r in records if r.host}
    settled = {r.family for r in records if r.conditioned}
    lines += [
        f"| families that used the host for some op | {len(built)} | {len(hosts)} | {percent(len(hosts), len(built))} | |",
        f"| process ended by abort or hang | {len(records)} records | {ended} | | |",
        "",
        f"In {len(settled)} families CPU PyTorch's own float32 result is further from its float64 result than the tolerance; there the"
        " device's result counts when it is at most twice as far.",
        "",
    ]
    host: Counter[str] = Counter(op for r in records for op in r.host)
    if host:
        lines += ["Ops that ran on the host: " + ", ".join(f"`{op}` ({n})" for op, n in host.most_common()) + ".", ""]
    bad = sorted((r.family, KINDS.index(r.kind), r) for r in records if r.status in ("fail", "abort", "hang"))
    if bad:
        lines += ["## What does not agree", ""]
        lines += [f"- `{r.family}`, {r.kind}: {_plain(r.message)}" for _, _, r in bad]
        lines.append("")
    lines += ["## Families", "", "| family | model | forward | gradients | ties | generation |", "|---|---|---|---|---|---|"]
    for family in sorted(built):
        kinds = by_family[family]
        head = next((r.head for r in kinds.values() if r.head), "")
        cells = [_WORDS[kinds[k].status] if k in kinds else "" for k in _ROWS]
        lines.append(f"| `{family}` | {head} | {' | '.join(cells)} |")
    missing = sorted(set(by_family) - set(built))
    if missing:
        lines += ["", "## Not compared", "", "No small model is made yet of: " + ", ".join(f"`{f}`" for f in missing) + "."]
    return "\n".join(lines) + "\n"


def _plain(text: str, most: int = 160) -> str:
    text = " ".join(text.split()).replace("|", "/").replace("<", "&lt;")
    return text if len(text) <= most else text[: most - 1] + "…"
