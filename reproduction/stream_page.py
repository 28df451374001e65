"""The page of the stream study, written from its tables; no number is typed by hand."""

import math
from collections.abc import Callable
from pathlib import Path

from reproduction.figures import Figure
from reproduction.stream_laws import COEFFICIENTS, KINDS
from reproduction.stream_measures import WINDOW
from reproduction.stream_results import StreamFindings
from reproduction.stream_summary import (
    DECADES,
    LABELS,
    MethodSummary,
    better_elsewhere,
    growths,
    method_summaries,
    rows_text,
    stream_claims,
)
from surefoot.exceptions import InvalidInputError

_REGRET = """\
The paper defines the regret of online learning (section 4.3) as

    Regret_T = sum over t of  h(θ_t, γ_t; ξ_t, ξ_t*) - h(θ*, γ*; ξ_t, ξ*)

with h the robust objective of one sample (its eq. 5), ξ* the sample moved to its worst place, and
(θ*, γ*) the minimiser of H = E h. We measure its expectation given the past, which is what the paper
bounds: the sum of H(θ_t, γ_t) - H(θ*, γ*). θ_t is the policy that decides on row t, and γ_t the
multiplier that is best for it, as the method profiles it for a free support. Contexts and noise are
normal here, so H and its minimum have closed forms; H is looked at {looks} and interpolated. Plain
regret is realised: the cost of each decision less that of the oracle.

The paper's proof by a Follow-the-Leader lemma does not hold as printed; online gradient descent gives
the same order, R²/(2α) + αG²T/2. With a fixed radius the policy converges to the robust optimum, not to
the oracle: its plain regret must grow in proportion to T. A radius that falls as 1/√t removes that."""


def stream_page(findings: StreamFindings, figures: list[Figure], images: str) -> str:
    """Return the page as Markdown; ``images`` is the folder of figures as seen from the page."""
    drawn = {figure.name: figure for figure in figures}

    def show(name: str) -> str:
        figure = drawn.get(name)
        return f"![{figure.caption}]({images}/{name}.png)\n\n*{figure.caption}*" if figure else ""

    parts = [
        _head(findings), _claims(findings), _regret(findings, show("regret")),
        _streams(findings, show("costs")), _restaurant(findings, show("restaurant")),
        _settings(findings),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def write_stream_page(findings: StreamFindings, figures: list[Figure], docs: Path) -> Path:
    """Write streams.md and images/streams/*.png into the folder of documentation."""
    if not docs.is_dir():
        raise InvalidInputError(f"--docs must be an existing folder, got {docs}.")
    images = docs / "images" / "streams"
    images.mkdir(parents=True, exist_ok=True)
    page = docs / "streams.md"
    page.write_text(stream_page(findings, figures, "images/streams"), encoding="utf-8")
    for figure in figures:
        (images / f"{figure.name}.png").write_bytes(figure.png)
    return page


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _head(findings: StreamFindings) -> str:
    told = findings.settings
    ran = f" Run on {told['machine']}, {told['date']}. Versions: {told['versions']}." if told else ""
    return f"""# Learning on streams

Decide, see the outcome, learn: every method decides on a row before it sees that row's outcome. This
page is written by
`python -m reproduction streams --report-only --out benchmarks/results/streams --docs docs` from
the tables in `benchmarks/results/streams`; the same command without `--report-only` runs all of it
anew (river: `pip install "surefoot[cli,online]"`).{ran}

How to learn on your own stream: [online](howto/online.md), [from the command line](howto/follow.md)."""


def _claims(findings: StreamFindings) -> str:
    rows = [
        [f"**{one.verdict}**", one.sentence, "<br>".join(one.readings)]
        for one in stream_claims(findings)
    ]
    held = "## What holds\n\n" + _table(["verdict", "sentence", "measured"], rows) if rows else ""
    beaten = "\n".join(f"- {sentence}." for sentence in better_elsewhere(findings))
    return held + (f"\n\nWhere others do better:\n\n{beaten}" if beaten else "")


def _regret(findings: StreamFindings, figure: str) -> str:
    grown = growths(findings)
    if not grown:
        return ""
    rows = [
        [one.label, one.coefficients, f"{one.exponent:.3f} ± {one.half:.3f}", f"{one.added:.3f}",
         f"{one.last:,.0f}", f"{one.seeds}"]
        for one in grown
    ]  # fmt: skip
    heads = [
        "regret of",
        "coefficients",
        "exponent (95 % interval)",
        "exponent of what is added",
        "mean regret at the end",
        "seeds",
    ]
    looks = f"{findings.settings.get('looks', 'many')} times in each tenfold of rows"
    note = (
        f"The exponent is the slope of log regret against log T over the last {DECADES} decades, up to "
        f"T = {max(one.rows for one in grown):,}; the theory's is 1/2. "
        "A large regret at the start flattens that slope, so the next column compares only what is "
        "added: log10 of the mean regret of the last decade over that of the decade before."
    )
    return f"## Regret\n\n{_REGRET.format(looks=looks)}\n\n{note}\n\n{_table(heads, rows)}\n\n{figure}"


def _streams(findings: StreamFindings, figure: str) -> str:
    summaries = method_summaries(findings)
    if not summaries:
        return ""
    known = {(one.stream, one.coefficients, one.method): one for one in summaries}
    places = [(stream, coefficients) for stream in KINDS for coefficients in COEFFICIENTS]

    methods = [name for name in LABELS if any(key[2] == name for key in known)]

    def table(head: str, cell: Callable[[MethodSummary], str]) -> str:
        heads = [head, *(f"{stream}, {kind}" for stream, kind in places)]
        rows = []
        for method in methods:
            cells = (known.get((*place, method)) for place in places)
            rows.append([LABELS[method], *("" if one is None else cell(one) for one in cells)])
        return _table(heads, rows)

    least: dict[tuple[str, str], float] = {
        place: min(one.cost for key, one in known.items() if key[:2] == place)
        for place in places
        if any(key[:2] == place for key in known)
    }

    def share(one: MethodSummary) -> str:
        best = one.cost == least[one.stream, one.coefficients]
        return f"**{one.cost:.3f}** ({one.late:.3f})" if best else f"{one.cost:.3f} ({one.late:.3f})"

    shares = table("cost / oracle's", share)
    totals = table("total cost (regret)", lambda one: f"{one.total:,.0f} ({one.regret:,.0f})")
    rows_each, seeds = findings.results[0].rows, summaries[0].seeds
    skipped = findings.settings.get("skipped", "")
    return f"""## Streams that change

{rows_each:,} rows each, {seeds} seeds. Total cost as a multiple of the oracle's, which knows the law of
every row; in brackets the last quarter alone; the least total in bold. {skipped}

{shares}

The same as mean total cost, and in brackets plain regret: total cost less that of the oracle.

{totals}

{figure}

Recovery after the jump: rows until the mean cost of the next {WINDOW} rows is within 10 % of the
oracle's on the same rows. Median over seeds, and the streams on which that happened before their end.
Rows per second are of the whole loop, decisions and learning, and were taken on a shared machine.

{_recovery(known, methods)}"""


def _recovery(known: dict[tuple[str, str, str], MethodSummary], methods: list[str]) -> str:
    rows = []
    for method in methods:
        cells, speed = [LABELS[method]], math.nan
        for coefficients in COEFFICIENTS:
            one = known.get(("abrupt", coefficients, method))
            back = 0 if one is None else sum(value is not None for value in one.recoveries)
            cells.append("" if one is None else f"{rows_text(one)} ({back} of {one.seeds})")
            speed = speed if one is None else one.per_second
        rows.append([*cells, f"{speed:,.0f}"])
    heads = ["method", *(f"{kind} coefficients" for kind in COEFFICIENTS), "rows per second"]
    return _table(heads, rows)


def _restaurant(findings: StreamFindings, figure: str) -> str:
    if not findings.restaurant:
        return ""
    products = list(dict.fromkeys(one.product for one in findings.restaurant))
    a_day = {(one.product, one.method): one.cost / one.days for one in findings.restaurant}
    methods = [name for name in LABELS if any(key[1] == name for key in a_day)]
    rows = []
    for method in methods:
        costs = [a_day[product, method] for product in products]
        rows.append([LABELS[method], *(f"{cost:.1f}" for cost in costs), f"**{sum(costs):.1f}**"])
    days = findings.restaurant[0].days
    first = findings.settings.get("first", "")
    return f"""## The restaurant

Two years of daily demand in date order (backorder 15, holding 10). The first {first} days are learned
from and not counted; {days} days count. Only the weather moves in the ball; there is no oracle. Cost a
day:

{_table(["method", *products, "all"], rows)}

{figure}"""


def _settings(findings: StreamFindings) -> str:
    told = findings.settings
    parts = []
    for key, title in (("methods", "Synthetic streams"), ("restaurant_methods", "Restaurant")):
        if key in told:
            rows = [[LABELS[name], text] for name, text in told[key].items()]
            parts.append(f"{title}:\n\n{_table(['method', 'settings'], rows)}")
    if not parts:
        return ""
    law = f"""\
Synthetic streams: {told.get("columns")} standard normal contexts, y = θ'x + θ_0 + noise of variance 1,
θ and θ_0 uniform on [0, 1] (positive) or standard normal (mixed), drawn anew at a change; backorder 1,
holding 0.2. Two settings were chosen after a trial on the first three seeds of the abrupt and the
stationary streams, so those seeds flatter them a little: river's step size (its default did better than
0.03 and 0.1) and the window of the online policy (1,000 rows did better than 200 and 500). Nothing was
tried out at the restaurant."""
    return "## Settings\n\n" + law + "\n\n" + "\n\n".join(parts)
