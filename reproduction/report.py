"""One page that needs nothing else: what was run, what holds, figures, tables, settings."""

from collections import Counter
from collections.abc import Sequence
from html import escape

from reproduction.claims import DEPENDS, FAILS, HOLDS, Claim
from reproduction.figures import Figure
from reproduction.outputs import Findings
from reproduction.result import FAILED, REFUSED
from reproduction.tables import (
    GAP_NOTE,
    LABELS,
    SETTINGS_NOTE,
    TIME_NOTE,
    VARIANT_NOTE,
    Table,
    claims_note,
    gap_table,
    pass_sentence,
    settings_table,
    time_table,
    variant_table,
)

_MARKS = {HOLDS: "yes", FAILS: "no", DEPENDS: "mixed"}

_STYLE = """
:root { --ink: #1d2733; --soft: #5b6875; --line: #dde3e8; --blue: #0060a8; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1.2rem; color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .4rem 0 .2rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; padding-top: .6rem; border-top: 2px solid var(--line); }
p, li { max-width: 46rem; } small, .soft, figcaption { color: var(--soft); }
figure { margin: 1rem 0 1.8rem; overflow-x: auto; }
figure svg { width: 100%; min-width: 44rem; height: auto; }
figcaption { font-size: .9rem; max-width: 46rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; width: 100%; }
th { text-align: left; font-weight: 600; border-bottom: 2px solid var(--ink);
  vertical-align: bottom; }
th, td { padding: .35rem .6rem .35rem 0; vertical-align: top; }
td { border-bottom: 1px solid var(--line); } td.number, th.number { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.badge { display: inline-block; padding: .05rem .55rem; border-radius: 1rem; font-size: .8rem;
  font-weight: 600; white-space: nowrap; border: 1.5px solid; }
.yes { color: #00694c; background: #e3f4ee; } .no { color: #9c3a00; background: #fdeee4; }
.mixed { color: #5c4a00; background: #fbf3d3; } .none { color: #5b6875; background: #f2f4f6; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .8rem;
  margin: 1rem 0; }
.facts div { border-left: 3px solid var(--blue); padding-left: .7rem; }
.facts b { display: block; font-size: 1.35rem; line-height: 1.2; }
td ul { margin: 0; padding-left: 1.1rem; } td q { quotes: none; }
code { font-size: .85em; }
@media (max-width: 40rem) { body { padding: .8rem; }
  .claims thead { display: none; } .claims td { display: block; border: 0; padding: .15rem 0; }
  .claims tr { display: block; border-bottom: 1px solid var(--line); padding: .6rem 0; } }
@media print { body { font-size: 10pt; max-width: none; padding: 0; } h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; } figure, .scroll { overflow: visible; }
  figure svg { min-width: 0; } }
"""


def render(findings: Findings, figures: Sequence[Figure]) -> str:
    """Return the page as text; it fetches nothing."""
    parts = [
        _head(findings), _claims(findings), _figures(figures), _times(findings), _gaps(findings),
        _settings(findings), _problems(findings),
    ]  # fmt: skip
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Surefoot: the paper reproduced</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def table(content: Table, numbers: Sequence[int] = (), badges: bool = False) -> str:
    """Return a table; ``numbers`` are right-aligned columns, ``badges`` colours all but the first."""

    def line(tag: str, cells: Sequence[str]) -> str:
        marks = [' class="number"' if k in numbers else "" for k in range(len(cells))]
        inside = (f"<{tag}{mark}>{cell}</{tag}>" for mark, cell in zip(marks, cells, strict=True))
        return f"<tr>{''.join(inside)}</tr>"

    def shown(row: Sequence[str]) -> list[str]:
        return [_verdict(cell) if badges and k else escape(cell) for k, cell in enumerate(row)]

    heads = line("th", [escape(head.capitalize() if head[0].islower() and len(head) > 1 else head)
                        for head in content.heads])  # fmt: skip
    body = "\n".join(line("td", shown(row)) for row in content.rows)
    return f'<div class="scroll"><table><thead>{heads}</thead>\n<tbody>{body}</tbody></table></div>'


def _fact(value: str, what: str) -> str:
    return f"<div><b>{escape(value)}</b>{escape(what)}</div>"


def _head(findings: Findings) -> str:
    results = findings.results
    status = Counter(result.status for result in results)
    grid = {result.data_key for result in results if result.kind == "synthetic"}
    real = {result.data_key for result in results if result.kind == "yaz"}
    seconds = sum((result.fit_seconds or 0) + (result.predict_seconds or 0) for result in results)
    facts = [
        _fact(f"{len(results):,}", "cells (data set × method × repetition)"),
        _fact(f"{len(grid)}", "synthetic data sets"),
        _fact(f"{len(real)}", "restaurant data sets"),
        _fact(f"{len({result.method for result in results})}", "methods"),
        _fact(f"{1 + max(result.repetition for result in results)}", "repetitions"),
        _fact(f"{status[FAILED]}", "cells failed"),
        _fact(f"{seconds / 60:.0f} min", "of fitting and deciding"),
    ]
    machines = "; ".join(sorted({result.machine for result in results}))
    versions = "; ".join(sorted({result.versions for result in results}))
    dates = sorted(result.finished[:10] for result in results)
    return (
        "<h1>The paper, reproduced</h1>\n<p>Li, Liu and Zhang, <i>Achieving robust data-driven "
        "contextual decision making in a data augmentation way</i>, section 5: every experiment, run "
        "with Surefoot. Out-of-sample cost says how a policy does on 10,000 new rows; the certified "
        "gap says how well its training problem was solved. They are reported apart.</p>\n"
        f'<div class="facts">{"".join(facts)}</div>\n'
        f'<p class="soft">Run {dates[0]} to {dates[-1]} on {escape(machines)}; {escape(versions)}. '
        "Seeds follow from names, so every method saw the same data and any cell can be run alone.</p>"
    )


def badge(verdict: str) -> str:
    """Return a verdict as a coloured word."""
    return f'<span class="badge {_MARKS.get(verdict, "none")}">{escape(verdict)}</span>'


def _verdict(text: str) -> str:
    """Colour the verdict, and leave the numbers behind it small."""
    word, _, values = text.partition(" (")
    return f"{badge(word)}<br><small>{escape(values.rstrip(')'))}</small>"


def _reading_list(claim: Claim) -> str:
    items = [
        f"<li>{escape(reading.label)}: {reading.value:.2f} "
        f'<span class="soft">({escape(reading.detail)})</span></li>'
        for reading in claim.readings
    ]
    return f"<ul>{''.join(items)}</ul>" if items else "no cells to test it on"


def _claims(findings: Findings) -> str:
    variants = findings.variants()
    if not variants:
        return ""
    rows = "\n".join(
        f"<tr><td>{badge(one.verdict)}</td><td><q>{escape(one.sentence)}</q><br>"
        f"<small>{escape(one.measure)}</small></td><td>{_reading_list(one)}</td></tr>"
        for one in findings.claims[variants[0]]
    )
    text = (
        f"<h2>What holds</h2>\n<p>{escape(claims_note(findings))}</p>\n"
        '<div class="scroll"><table class="claims"><thead><tr><th>Verdict</th><th>Sentence</th>'
        f"<th>Our numbers</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
    if len(variants) > 1:
        text += f"\n<h2>The same under other laws</h2>\n<p>{VARIANT_NOTE}</p>\n"
        text += table(variant_table(findings), badges=True)
    return text


def _figures(figures: Sequence[Figure]) -> str:
    drawn = "\n".join(
        f"<figure>{figure.inline()}<figcaption>{escape(figure.caption)}</figcaption></figure>"
        for figure in figures
    )
    return f"<h2>Figures</h2>\n{drawn}" if figures else ""


def _times(findings: Findings) -> str:
    if not findings.times:
        return ""
    passes = "".join(f"\n<p>{escape(pass_sentence(one))}</p>" for one in findings.passes)
    note = f"<h2>Table 1: time per instance</h2>\n<p>{escape(TIME_NOTE)}</p>\n"
    return note + table(time_table(findings), range(9)) + passes


def _gaps(findings: Findings) -> str:
    content = gap_table(findings)
    if not content.rows:
        return ""
    return f"<h2>Solver gap</h2>\n<p>{escape(GAP_NOTE)}</p>\n" + table(content, range(1, 5))


def _settings(findings: Findings) -> str:
    return f"<h2>Settings</h2>\n<p>{escape(SETTINGS_NOTE)}</p>\n" + table(settings_table(findings))


def _problems(findings: Findings) -> str:
    rows = Counter(
        (result.status, result.method, result.error)
        for result in findings.results
        if result.status in (FAILED, REFUSED)
    )
    if not rows:
        return ""
    lines = tuple(
        (status, LABELS.get(name, name), str(count), why) for (status, name, why), count in rows.items()
    )
    return "<h2>Cells without a cost</h2>\n" + table(
        Table(("Status", "Method", "Cells", "Why"), lines), (2,)
    )
