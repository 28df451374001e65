"""The page of the documentation, written from committed results."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from reproduction.figures import Figure
from reproduction.outputs import Findings
from reproduction.summary import Summary
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
from surefoot.exceptions import InvalidInputError


def _table(content: Table) -> str:
    heads, rows = content.heads, content.rows
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def markdown(findings: Findings, figures: Sequence[Figure], images: str) -> str:
    """Return the page as Markdown; ``images`` is the folder of figures as seen from the page."""
    drawn = {figure.name: figure for figure in figures}

    def show(name: str) -> str:
        figure = drawn.get(name)
        return f"![{figure.caption}]({images}/{name}.png)\n\n*{figure.caption}*" if figure else ""

    parts = [
        _head(findings), _claims(findings), show("figure1"), show("figure2"), _means(findings),
        _times(findings), _gaps(findings), "## The restaurant\n\n" + show("restaurant"),
        _variants(findings, list(drawn), show), _settings(findings),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def write_page(findings: Findings, figures: Sequence[Figure], docs: Path) -> list[Path]:
    """Write reproduction.md and images/reproduction/*.png into the folder of documentation."""
    if not docs.is_dir():
        raise InvalidInputError(f"--docs must be an existing folder, got {docs}.")
    images = docs / "images" / "reproduction"
    images.mkdir(parents=True, exist_ok=True)
    page = docs / "reproduction.md"
    text = markdown(findings, figures, "images/reproduction")
    page.write_text(text, encoding="utf-8")
    written = [page]
    for figure in figures:
        if f"/{figure.name}.png)" in text:
            written.append(images / f"{figure.name}.png")
            written[-1].write_bytes(figure.png)
    return written


def _head(findings: Findings) -> str:
    results = findings.results
    runs = Counter(
        one.runs + one.failed + one.refused for one in findings.summaries if one.kind != "yaz"
    )
    failed = sum(result.status == "failed" for result in results)
    machines = "; ".join(sorted({result.machine for result in results}))
    versions = "; ".join(sorted({result.versions for result in results}))
    dates = sorted(result.finished[:10] for result in results)
    counts = ", ".join(f"{count:,} with {n}" for n, count in sorted(runs.items(), reverse=True))
    return f"""# The paper, reproduced

Every experiment of the paper's section 5, with every method, claim by claim. This page is written by
`python -m reproduction paper --report-only --out benchmarks/results/reproduction --docs docs` from the
results in `benchmarks/results/reproduction`; [how to run it yourself](howto/reproduce.md).

{len(results):,} cells, {failed} failed. Synthetic data sets by method, by repetitions: {counts}.
Run {dates[0]} to {dates[-1]} on {machines}. Versions: {versions}."""


def _claims(findings: Findings) -> str:
    variants = findings.variants()
    if not variants:
        return ""
    rows = [
        (f"**{one.verdict}**", f"“{one.sentence}”<br>{one.measure}",
         "<br>".join(f"{r.label}: **{r.value:.2f}** ({r.detail})" for r in one.readings))
        for one in findings.claims[variants[0]]
    ]  # fmt: skip
    content = Table(("verdict", "sentence and measure", "our numbers"), tuple(rows))
    return f"## What holds\n\n{claims_note(findings)}\n\n{_table(content)}"


def _value(one: Summary | None) -> str:
    if one is None or one.mean is None:
        return ""
    half = "" if one.mean_high is None else f" ± {one.mean_high - one.mean:.2g}"
    return f"{one.mean:.3g}{half}"


def _means(findings: Findings) -> str:
    variants = findings.variants()
    if not variants:
        return ""
    part = findings.synthetic(variants[0])
    known = {(one.method, one.s, one.n): one for one in part if one.noise_variance == 1.0}
    places = [place for place in ((100, 10), (100, 50), (100, 500), (1000, 10), (1000, 50), (1000, 500))
              if any(key[1:] == place for key in known)]  # fmt: skip
    if not places:
        return ""
    rows = [
        (label, *(_value(known.get((name, *place))) for place in places))
        for name, label in LABELS.items()
    ]
    content = Table(("σ² = 1", *(f"s = {s}, n = {n}" for s, n in places)), tuple(rows))
    return f"""Mean out-of-sample cost with its 95 % interval (all cells: `summary.csv`):

{_table(content)}"""


def _times(findings: Findings) -> str:
    if not findings.times:
        return ""
    passes = "".join(f"\n\n{pass_sentence(one)}" for one in findings.passes)
    return f"## Table 1: time per instance\n\n{TIME_NOTE}\n\n{_table(time_table(findings))}{passes}"


def _gaps(findings: Findings) -> str:
    content = gap_table(findings)
    return f"## Solver gap\n\n{GAP_NOTE}\n\n{_table(content)}" if content.rows else ""


def _variants(findings: Findings, drawn: Sequence[str], show: Callable[[str], str]) -> str:
    if len(findings.variants()) < 2:
        return ""
    figures = [show(name) for name in drawn if name.startswith("figure1-")]
    parts = [VARIANT_NOTE, _table(variant_table(findings)), *figures]
    return "## Other context laws and coefficients\n\n" + "\n\n".join(parts)


def _settings(findings: Findings) -> str:
    return f"## Settings\n\n{SETTINGS_NOTE}\n\n{_table(settings_table(findings))}"
