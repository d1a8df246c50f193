"""docs/models.md, from the records of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from .record import KINDS, Record
from .summary import figures, percent

_WORDS = {"pass": "yes", "host": "host", "fail": "no", "skip": "", "abort": "abort", "hang": "hang"}
_ROWS = {
    "forward": "values equal (1e-3 of the output's scale)",
    "backward": "gradients of all parameters equal",
    "ties": 'tied weights kept by `.to("tpu")`',
    "generate": "greedy generation identical",
}


def _versions() -> str:
    import torch
    import torch_tpu
    import transformers

    release = torch.__version__.split("+")[0]
    return f"torch_tpu {torch_tpu.__version__}, torch {release}, Transformers {transformers.__version__}"


def models_text(
    given: Iterable[Record], names: Sequence[str], mode: str, build: str, compiled: Iterable[Record] = ()
) -> str:
    """The page, as Markdown. `names`: all families there are; those without a record are listed as not run. `compiled`:
    records of a run with `--mode compiled`."""
    records = [record for record in given if record.family in set(names)]
    by_family: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in records:
        by_family[record.family][record.kind] = record
    built = [
        f
        for f, kinds in by_family.items()
        if any(r.status != "skip" for k, r in kinds.items() if k in ("build", "forward"))
    ]
    lines = [
        "# Models",
        "",
        f"Transformers has {len(names)} configuration types. The sweep makes a small model with random weights of each",
        f"that can be built offline from its configuration class alone, {len(built)} of {len(by_family)} that it ran,",
        f"and compares it with the CPU in float32, {mode} eager mode: one head each, the causal language model where",
        "there is one; what only is a part of other models, such as a vision tower, by itself. This page is made by",
        "`python -m tools.model_sweep --docs`; nothing in it is written by hand.",
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
    compiled = list(compiled)
    for kind in ("forward", "backward"):
        count, good, native, _ = figures(compiled, kind)
        if count:
            words = f"the same under `torch.compile`, well-known families: {_ROWS[kind]}"
            lines.append(f"| {words} | {count} | {good} | {percent(good, count)} | {native} |")
    ended = sum(r.status in ("abort", "hang") for r in records)
    hosts = {r.family for r in records if r.host}
    settled = {r.family for r in records if r.conditioned}
    lines += [
        f"| used the host for some op | {len(built)} | {len(hosts)} | {percent(len(hosts), len(built))} | |",
        f"| process ended by abort or hang | {len(by_family)} | {ended} | | |",
        "",
        f"In {len(settled)} families some result of CPU PyTorch in float32 is itself about as far from its float64",
        "result as the tolerance; there the device's result counts when it is within the tolerance of float64, or at",
        "most four times as far as the CPU's.",
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
    lines += [
        "## Families",
        "",
        "| family | model | forward | gradients | ties | generation |",
        "|---|---|---|---|---|---|",
    ]
    for family in sorted(built):
        kinds = by_family[family]
        head = next((r.head for r in kinds.values() if r.head), "")
        cells = [_WORDS[kinds[k].status] if k in kinds else "" for k in _ROWS]
        lines.append(f"| `{family}` | {head} | {' | '.join(cells)} |")
    for title, text, which in (
        ("Not built", "No small model of these is made yet", set(by_family) - set(built)),
        ("Not run", "The sweep has not reached these", set(names) - set(by_family)),
    ):
        if which:
            lines += ["", f"## {title}", "", f"{text}: " + ", ".join(f"`{f}`" for f in sorted(which)) + "."]
    return "\n".join(lines) + "\n"


def _plain(text: str, most: int = 160) -> str:
    text = " ".join(text.split()).replace("|", "/").replace("<", "&lt;")
    return text if len(text) <= most else text[: most - 1] + "…"
