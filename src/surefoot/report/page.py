"""The report as one HTML page: no script, nothing to load, light or dark, on screen and on paper."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from surefoot.costs import ConvexPiecewiseCost, Quadratic
from surefoot.report import words
from surefoot.report.facts import Facts, rows_checksum
from surefoot.report.judgement import Judgement, judge
from surefoot.report.markup import Markup, element, escaped, grid, joined, tight
from surefoot.report.pictures import WIDE_ROWS, Interval, Line, dots, lines, over_time, swatch
from surefoot.report.trials import ERROR, MOVES
from surefoot.version import __version__

STYLE = Path(__file__).with_name("style.css")
# Numbers that look like errors, and products, that are shown one by one.
SHOWN_SUSPECTS, SHOWN_PRODUCTS = 20, 3
_CURVES = ("one", "two", "three", "four", "other")


def page(facts: Facts) -> str:
    """Return the whole page."""
    judged = judge(facts)
    title = words.title(facts)
    head = joined([
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        # Nothing but the styles below may act, whatever a column is called.
        Markup("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
               "style-src 'unsafe-inline'\">"),
        element("title", f"{title}: a Surefoot report"),
        element("style", Markup(STYLE.read_text(encoding="utf-8"))),
    ])  # fmt: skip
    body = element("main", joined([
        _headline(facts, judged, title), _data(facts), _over_time(facts), _costs(facts, judged),
        _shifts(facts, judged), _columns(facts, judged), _repeat(facts),
    ]))  # fmt: skip
    footer = element("footer", f"Written by Surefoot {__version__}. Everything in it is in this file.")
    html = element("html", element("head", head), element("body", body, footer), lang="en")
    return f"<!DOCTYPE html>\n{html}\n"


def _section(title: str, *parts: str) -> Markup:
    return element("section", element("h2", title), *parts)


def _warning(*sentences: str) -> Markup:
    return element("div", *(element("p", sentence) for sentence in sentences), kind="warning")


def _figure(picture: str, caption: str = "", *, title: str = "", legend: str = "") -> Markup:
    parts = [element("h3", title)] if title else []
    parts += [escaped(legend), Markup(picture)]
    return element("figure", *parts, *([element("figcaption", caption)] if caption else []))


def _legend(entries: Sequence[tuple[str, str]]) -> Markup:
    """Return names beside their lines, as they are drawn."""
    items = [element("li", Markup(swatch(kind)), name) for name, kind in entries]
    return element("ul", *items, kind="legend")


def _headline(facts: Facts, judged: Judgement | None, title: str) -> Markup:
    parts = [
        element("h1", title),
        element("p", words.decides_what(facts), kind="lead"),
        element("p", tight(words.costs_what(facts, judged))),
    ]
    if judged is not None:
        parts.append(_cards(facts, judged))
        parts.append(element("p", tight(words.beside_others(judged))))
    promise = facts.promise
    title = element("b", f"{promise.title}. ")
    parts.append(element("div", title, tight(promise.sentence), kind="guarantee"))
    above = words.above_bound(facts, judged)
    if above is not None:
        parts.append(_warning(above))
    return element("header", *parts)


def _cards(facts: Facts, judged: Judgement) -> Markup:
    cost = judged.ours.cost
    cards = [
        (words.amount(cost.value), f"cost a {facts.each}, not seen before ({words.span(cost)})"),
        (words.amount(facts.decisions.mean()), words.what_on_average(facts)),
    ]
    if judged.saving is not None:
        cards.append((words.percent(judged.saving.value), "saved beside the best constant order"))
    if judged.enough is not None and judged.planned is not None:
        cards.append(
            (f"{100 * judged.enough:.0f} of 100",
             f"{facts.each}s with enough (planned: {100 * judged.planned:.0f})")
        )  # fmt: skip
    bound = facts.promise.bound
    cards.append(
        ("none" if bound is None else words.amount(bound),
         "bound stated" if bound is None else f"bound of the expected cost a {facts.each}")
    )  # fmt: skip
    shown = [
        element("div", element("b", value), element("span", tight(what)), kind="card")
        for value, what in cards
    ]
    return element("div", *shown, kind="cards")


def _data(facts: Facts) -> Markup:
    y, origin = facts.rows.y, facts.origin
    name = "" if facts.outcome == "outcome" else f", {facts.outcome}"
    about = (
        f"{len(facts.rows):,} rows, {words.counted(len(facts.columns), 'column')} of context"
        + (f", from {origin.source}" if origin.source else "")
        + f". The outcome{name}: from {words.amount(y.min())} to {words.amount(y.max())}, "
        f"{words.amount(y.mean())} on average."
    )
    columns = grid(
        ["column", "read as", "holds", "gaps"],
        [(*about, str(gaps or "-")) for *about, gaps in facts.columns],
        right=1,
    )
    parts = [element("p", about), element("p", words.own_decisions(facts)), columns]
    parts += [_warning(note) for note in facts.notes]
    if facts.suspects:
        parts.append(_suspects(facts))
    elif not facts.notes:
        parts.append(element("p", "No number looks like an error, and no row lies far from the others.",
                             kind="soft"))  # fmt: skip
    return _section("The data", *parts)


def _suspects(facts: Facts) -> Markup:
    shown = facts.suspects[:SHOWN_SUSPECTS]
    more = len(facts.suspects) - len(shown)
    told = "Numbers that look like errors and were not followed. Mend them, or check that they are true"
    table = grid(
        ["where", "column", "written", "to be expected"],
        [
            (facts.origin.place(one.row), facts.outcome if one.column == "outcome" else one.column,
             f"{one.value:g}", f"about {one.expected:.3g}")
            for one in shown
        ],
        right=2,
    )  # fmt: skip
    return joined([_warning(f"{told}{f' ({more} more)' if more else ''}."), table])


def _over_time(facts: Facts) -> Markup:
    """Draw decisions on rows that the policy had not seen, or its own if there are none."""
    trials = facts.trials
    honest = not trials.ours.reason
    if honest:
        places, first = np.unique(trials.judged, return_index=True)
        decisions, rows = trials.ours.decisions[first], facts.judged.take(places)
        who = "a policy of the same recipe that had not seen the row"
        if facts.seen is False:
            who = "the model, which had not seen the row"
    else:
        decisions, rows, who = (
            facts.decisions,
            facts.rows,
            "the model, which may have learned from the row",
        )
    # Orders and demand have one unit; shares of a portfolio and its returns have not.
    together = isinstance(facts.cost, ConvexPiecewiseCost | Quadratic)
    count = min(decisions.shape[1], SHOWN_PRODUCTS)
    pictures = []
    for j in range(count):
        label = facts.outcome if decisions.shape[1] == 1 else f"{facts.outcome}, product {j}"
        outcomes = rows.y[:, j] if together else None
        pictures.append(over_time(outcomes, decisions[:, j], rows.days, label))
    names = [("decision", "decision")] + ([("outcome", "outcome")] if together else [])
    shown = min(len(rows), WIDE_ROWS)
    caption = (
        f"The newest {shown} of {len(rows)} rows" if shown < len(rows) else f"All {len(rows)} rows"
    )
    if rows.days is None:
        caption += ", by number"
    return _section(
        "Decisions and outcomes",
        _figure("".join(pictures), f"{caption} (fewer on a narrow screen). Each was decided by {who}.",
                legend=_legend(names)),
    )  # fmt: skip


def _costs(facts: Facts, judged: Judgement | None) -> Markup:
    failed = [
        element("p", f"No answer by the {method.label}: {method.reason}", kind="soft")
        for method in facts.trials.methods
        if method.reason
    ]
    if judged is None:
        return _section("Cost out of sample", _warning(words.costs_what(facts, judged)), *failed)
    others = [row for row in judged.methods if row.verdict]
    pair = [
        _figure(
            dots([row.cost for row in judged.methods], f"cost a {facts.each}"), title="What each costs"
        )
    ]
    if others:
        pair.append(_figure(
            dots([row.difference for row in others], f"cost beyond that of {judged.ours.label}",
                 zero=True),
            title=f"Beyond {judged.ours.label}, on the same rows",
        ))  # fmt: skip
    table = grid(
        ["", f"cost a {facts.each}", "difference", "95 % interval", "verdict"],
        [
            (row.label, words.amount(row.cost.value), *_difference(row.difference, row.verdict))
            for row in judged.methods
        ],
        right=4,
    )
    return _section(
        "Cost out of sample", element("div", *pair, kind="pair"), table,
        element("p", words.how_judged(facts), kind="soft"), *failed,
    )  # fmt: skip


def _difference(entry: Interval, verdict: str) -> tuple[str, str, str]:
    if not verdict:
        return "", "", "this model"
    known = "-" if math.isnan(entry.low) else f"{entry.low:+.3g} to {entry.high:+.3g}"
    return f"{entry.value:+.3g}", known, verdict


def _shifts(facts: Facts, judged: Judgement | None) -> Markup:
    pair, promise = [], facts.promise
    if promise.shifts:
        told = "at most, in the worst case" if promise.proved else "worst case found, not proved"
        names = [Line(told, promise.costs, "worse")]
        if judged is not None:
            steady = [judged.ours.cost.value] * len(promise.shifts)
            names.append(Line(f"{judged.ours.label} on rows not seen, without a shift", steady, "ours"))
        pair.append(_lines(
            promise.shifts, names, promise.of_what, f"cost a {facts.each}", "If the worst happened",
        ))  # fmt: skip
    moved = [one for one in facts.trials.answered if one.name != "saa" and one.moved]
    if moved and facts.rows.spread.any():
        kinds = ("ours", *_CURVES)
        names = [
            Line(one.label, [float(one.costs.mean()), *one.moved], kind)
            for one, kind in zip(moved, kinds, strict=False)
        ]
        pair.append(_lines(
            (0.0, *MOVES), names, "error of every number, in standard deviations",
            f"cost a {facts.each}", "If contexts were wrong",
        ))  # fmt: skip
    if not pair:
        told = "What a shift would cost is not known for this model and these columns."
        return _section("What a shift of the data would cost", element("p", told))
    told = (
        "If the worst happened: what the expected cost is at most if the data to come differ from "
        "those learned from. If contexts were wrong: what decisions on rows not seen cost when every "
        "number of their context is off, up or down by chance, while text, dates and 0/1 columns stay "
        "right; a constant order looks at no context and costs the same throughout."
    )
    return _section(
        "What a shift of the data would cost", element("div", *pair, kind="pair"),
        element("p", told, kind="soft"),
    )  # fmt: skip


def _lines(xs: Sequence[float], entries: Sequence[Line], label: str, height: str, title: str) -> Markup:
    legend = _legend([(entry.label, f"curve {entry.kind}") for entry in entries])
    return _figure(lines(xs, entries, label, height), title=title, legend=legend)


def _columns(facts: Facts, judged: Judgement | None) -> Markup:
    pair = []
    if judged is not None and judged.unknown:
        pair.append(_figure(
            dots(judged.unknown, f"cost a {facts.each} more", zero=True),
            title="If a column were not known",
        ))  # fmt: skip
    shares, meaning = facts.adversary
    if shares:
        entries = [Interval(name, 100 * share, 0.0, 100 * share, "worse") for name, share in shares]
        pair.append(_figure(dots(entries, "share of the adversary's moves, %"),
                            title="What the adversary moves"))  # fmt: skip
    elif judged is not None and judged.wrong:
        pair.append(_figure(
            dots(judged.wrong, f"cost a {facts.each} more, off by {ERROR:g} standard deviations",
                 zero=True),
            title="If a column were wrong",
        ))  # fmt: skip
    told = (
        "A column that is not known holds the value of another row; an interval that reaches zero says "
        "that it may be worth nothing. Columns that carry the same news can stand in for each other."
    )
    parts = [element("div", *pair, kind="pair")] if pair else []
    if judged is not None:
        parts.append(element("p", told, kind="soft"))
    return _section("Which columns matter", *parts, element("p", meaning))


def _repeat(facts: Facts) -> Markup:
    origin = facts.origin
    code = origin.command or "\n".join([
        "from surefoot import PreparedPolicy, RobustNewsvendor, RobustPolicy, WassersteinBall",
        f"model = {facts.recipe}",
        "model.fit(X, y)",
        f'model.report(X, y, "report.html", outcome={facts.outcome!r})',
    ])  # fmt: skip
    data = [("rows as read, SHA-256", rows_checksum(facts))]
    if origin.checksum:
        data.insert(0, (f"{origin.source}, SHA-256", origin.checksum))
    return _section(
        "To repeat it", element("pre", element("code", code)),
        element("h3", "Data"), grid(["what", "checksum"], data),
        element("h3", "Settings"),
        element("div", grid(["setting", "value"], facts.settings), kind="names"),
        element("h3", "Versions"), grid(["package", "version"], facts.versions),
    )  # fmt: skip
