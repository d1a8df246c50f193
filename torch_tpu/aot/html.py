"""A program's figures as one page that needs nothing else: no script, no font, no file from elsewhere."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from . import report

if TYPE_CHECKING:
    from .program import TpuProgram

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1d2433;
background: #fff }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100%; font-size: 13px } td, th { text-align: left; padding: .25rem .5rem;
border-bottom: 1px solid #e3e6ec; vertical-align: top } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
.note { color: #5b6475 } .bad { color: #b3261e; font-weight: 600 }
svg { width: 100%; height: auto } svg text { font: 12px system-ui }
.bar { background: #3367d6; height: .6rem; display: inline-block; border-radius: 2px }
li { margin: .3rem 0 } code { font-size: 12px }
"""
_COLOURS = {"arguments": "#3367d6", "outputs": "#7b9ee8", "temporaries": "#e8710a", "code": "#9aa0a6"}


def page(program: TpuProgram) -> str:
    """The page. What comes from the program (names, lines) is escaped."""
    title = f"{program.topology.name}, {program.devices:,} devices"
    parts = [
        f"<h1>{escape(title)}</h1>",
        "<p class=note>Figures of one device. Times, MFU and tokens/s are a model's, made of the compiler's own figures; they "
        "are not measurements.</p>",
        _advice(program),
        "<h2>Memory</h2>",
        _memory(program),
        "<h2>Roofline</h2>",
        _roofline(program),
        "<h2>Figures</h2>",
        _table(["what", "figure"], [list(row) for row in report.figures(program)], {1}),
        f"<p class=note>{escape(report.outputs(program))}</p>",
        "<h2>Costliest instructions</h2>",
        _fusions(program),
    ]
    if program.collectives:
        rows = [
            [c.kind, f"{c.bytes:,}", f"{c.sent:,}", str(c.group_size), str(c.runs), c.op, c.source] for c in program.collectives
        ]
        parts += [
            "<h2>Collectives</h2>",
            _table(["kind", "bytes", "sent", "devices", "runs", "op", "from"], rows[:30], {1, 2, 3, 4}),
        ]
    rows = [[f"{b.bytes:,}", b.type, f"{b.op} ({b.name})" if b.op else b.name, b.source] for b in program.largest]
    parts += ["<h2>Largest in HBM at the peak</h2>", _table(["bytes", "type", "what", "from"], rows, {0})]
    if program.unestimated:
        names = ", ".join(f"{name} x{count}" for name, count in program.unestimated.items())
        parts.append(f"<p class=note>No estimate of cycles for: {escape(names)}.</p>")
    parts.append(f"<p class=note>Compiler: {escape(' '.join(program.compiler.split()))}</p>")
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>"
    return head + "<body>" + "\n".join(parts) + "</body></html>\n"


def _advice(program: TpuProgram) -> str:
    lines = program.advice()
    verdict = "fits" if program.fits else "<span class=bad>does not fit</span>"
    text = (
        f"<p>It {verdict}: {program.memory.total_bytes / 1e9:.3f} GB of {program.topology.hbm_bytes / 1e9:.0f} GB. "
        f"Predicted {program.predicted_seconds:.4g} s a call, MFU {program.mfu:.1%}.</p>"
    )
    return text + ("<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>" if lines else "")


def _memory(program: TpuProgram) -> str:
    memory = program.memory
    parts = {"arguments": memory.argument_bytes, "outputs": memory.output_bytes - memory.alias_bytes,
             "temporaries": memory.temp_bytes, "code": memory.code_bytes}  # fmt: skip
    full = max(program.topology.hbm_bytes, memory.total_bytes)
    marks, labels, at = [], [], 0.0
    for place, (name, size) in enumerate(parts.items()):
        width = 900 * size / full
        marks.append(f'<rect x="{at:.2f}" y="8" width="{width:.2f}" height="34" fill="{_COLOURS[name]}"/>')
        x = 225 * place
        labels.append(
            f'<rect x="{x}" y="54" width="10" height="10" fill="{_COLOURS[name]}"/>'
            f'<text x="{x + 15}" y="64">{name} {size / 1e9:.3f} GB</text>'
        )
        at += width
    edge = 900 * program.topology.hbm_bytes / full
    frame = f'<rect x="0" y="8" width="{edge:.2f}" height="34" fill="none" stroke="#1d2433"/>'
    aliased = f'<text x="0" y="84">{memory.alias_bytes / 1e9:.3f} GB of the outputs lie in arguments; the frame is the HBM</text>'
    return f'<svg viewBox="-2 0 904 92" role="img">{"".join(marks)}{frame}{"".join(labels)}{aliased}</svg>'


def _roofline(program: TpuProgram) -> str:
    """FLOP/s over FLOPs per byte of HBM, both logarithmic: the roof, and where the program is predicted to be."""
    peak, bandwidth = program.topology.peak_flops, program.topology.bandwidth
    ridge = peak / bandwidth
    if not (program.cost.flops and program.cost.hbm_bytes and program.predicted_seconds):
        return "<p class=note>No products: nothing to draw.</p>"
    intensity, reached = program.cost.flops / program.cost.hbm_bytes, program.cost.flops / program.predicted_seconds
    low, high = math.log10(min(intensity, ridge) / 30), math.log10(max(intensity, ridge) * 30)
    bottom, top = math.log10(min(reached, peak * 1e-3) / 3), math.log10(peak * 3)

    def x(value: float) -> float:
        return 60 + 820 * (math.log10(value) - low) / (high - low)

    def y(value: float) -> float:
        return 290 - 270 * (math.log10(value) - bottom) / (top - bottom)

    lines = []
    for power in range(math.ceil(low), math.floor(high) + 1):
        lines.append(f'<line x1="{x(10**power):.1f}" y1="20" x2="{x(10**power):.1f}" y2="290" stroke="#e3e6ec"/>')
        lines.append(f'<text x="{x(10**power):.1f}" y="306" text-anchor="middle">{10**power:g}</text>')
    for power in range(math.ceil(bottom), math.floor(top) + 1):
        lines.append(f'<line x1="60" y1="{y(10**power):.1f}" x2="880" y2="{y(10**power):.1f}" stroke="#e3e6ec"/>')
        lines.append(f'<text x="54" y="{y(10**power) + 4:.1f}" text-anchor="end">1e{power}</text>')
    start = max(10**low, 10**bottom / bandwidth)
    roof = f"{x(start):.1f},{y(start * bandwidth):.1f} {x(ridge):.1f},{y(peak):.1f} {x(10**high):.1f},{y(peak):.1f}"
    lines.append(f'<polyline points="{roof}" fill="none" stroke="#1d2433" stroke-width="2"/>')
    lines.append(f'<circle cx="{x(intensity):.1f}" cy="{y(reached):.1f}" r="6" fill="#e8710a"/>')
    anchor = "end" if x(intensity) > 600 else "start"
    offset = -12 if anchor == "end" else 12
    lines.append(
        f'<text x="{x(intensity) + offset:.1f}" y="{y(reached) + 18:.1f}" text-anchor="{anchor}">this program: '
        f"{intensity:.3g} FLOP/byte, {reached / 1e12:.3g} TFLOP/s</text>"
    )
    lines.append(
        f'<text x="{x(ridge):.1f}" y="{y(peak) - 6:.1f}" text-anchor="middle">peak {peak / 1e12:,.0f} TFLOP/s bfloat16</text>'
    )
    lines.append('<text x="470" y="326" text-anchor="middle">FLOP per byte of HBM</text><text x="60" y="14">FLOP/s</text>')
    return f'<svg viewBox="0 0 900 332" role="img">{"".join(lines)}</svg>'


def _fusions(program: TpuProgram) -> str:
    most = max((fusion.cycles for fusion in program.costliest), default=1)
    rows = []
    for f in program.costliest:
        bar = f'<span class=bar style="width:{8 * f.cycles / most:.2f}rem"></span>'
        cells = [
            escape(f.name),
            f"{f.cycles:,}",
            f"{f.cycles / max(program.cost.cycles, 1):.1%}",
            bar,
            escape(f.op),
            escape(f.source),
        ]
        rows.append(
            "<tr>" + "".join(f"<td{' class=n' if i in (1, 2) else ''}>{cell}</td>" for i, cell in enumerate(cells)) + "</tr>"
        )
    heads = "".join(
        f"<th{' class=n' if i in (1, 2) else ''}>{name}</th>"
        for i, name in enumerate(["name", "cycles", "share", "", "op", "from"])
    )
    return f"<table><tr>{heads}</tr>{''.join(rows)}</table>"


def _table(columns: list[str], rows: list[list[str]], numbers: set[int]) -> str:
    def line(tag: str, cells: list[str]) -> str:
        return (
            "<tr>"
            + "".join(f"<{tag}{' class=n' if i in numbers else ''}>{escape(c)}</{tag}>" for i, c in enumerate(cells))
            + "</tr>"
        )

    return f"<table>{line('th', columns)}{''.join(line('td', row) for row in rows)}</table>"
