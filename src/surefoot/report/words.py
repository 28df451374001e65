"""The sentences of a report, for whoever plans."""

import math

from surefoot.report.facts import Facts
from surefoot.report.judgement import LESS, MORE, Judgement
from surefoot.report.pictures import Interval
from surefoot.report.trials import MOST_ROWS


def amount(value: float) -> str:
    """Return a number with four digits.

    >>> amount(73.7199), amount(1234567.0)
    ('73.72', '1.235e+06')
    """
    return f"{value:.4g}"


def span(entry: Interval) -> str:
    """Return the interval of a number in words."""
    if math.isnan(entry.low):
        return "too little for an interval"
    return f"95 % interval {amount(entry.low)} to {amount(entry.high)}"


def counted(count: int, what: str) -> str:
    """Return how many there are of something.

    >>> counted(1, "column"), counted(3, "column")
    ('1 column', '3 columns')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def percent(value: float) -> str:
    """Return a share in whole percent."""
    return f"{100 * value:.0f} %"


def title(facts: Facts) -> str:
    """Return what the report is about."""
    if getattr(facts.cost, "backorder", None) is None:
        return f"What to decide on {facts.outcome}"
    return f"How much {ordered(facts)}to order"


def ordered(facts: Facts) -> str:
    """Return the name of what is ordered and a space, or nothing if it has no name of its own."""
    return "" if facts.outcome == "outcome" else f"{facts.outcome} "


def what_on_average(facts: Facts) -> str:
    """Return what the mean decision is a mean of."""
    if getattr(facts.cost, "backorder", None) is None:
        return "decided on average"
    return f"{ordered(facts)}ordered on average"


def decides_what(facts: Facts) -> str:
    """Return what is decided, and what a wrong decision costs."""
    z = facts.decisions
    told = (
        f"For each {facts.each} the policy decides how much {ordered(facts)}to order: between "
        f"{amount(z.min())} and {amount(z.max())} on these rows, {amount(z.mean())} on average."
    )
    if facts.origin.economics:
        return f"{told} {facts.origin.economics}"
    backorder, holding = getattr(facts.cost, "backorder", None), getattr(facts.cost, "holding", None)
    if backorder is None or holding is None:
        return (
            f"The policy decides on {facts.outcome}, between {amount(z.min())} and {amount(z.max())} "
            f"on these rows; a decision is judged by {facts.cost!r}."
        )
    if not isinstance(backorder, float) or not isinstance(holding, float):
        return f"{told} A unit short costs {backorder}, a unit left over {holding} (by product)."
    share = f"{100 * backorder / (backorder + holding):.0f}"
    return (
        f"{told} A unit short costs {backorder:g} (backorder), a unit left over {holding:g} (holding), "
        f"so an order should be enough on {share} of 100 {facts.each}s."
    )


def costs_what(facts: Facts, judged: Judgement | None) -> str:
    """Return what decisions cost, on rows that the policy had not seen."""
    if judged is None:
        return (
            f"On all rows its decisions cost {amount(facts.own_cost)} a {facts.each}. How much they "
            f"would cost on rows that it had not seen could not be measured: {facts.trials.ours.reason}"
        )
    who = "it" if facts.seen is False else "such a policy"
    told = (
        f"On {len(set(facts.trials.judged.tolist())):,} {facts.each}s not seen before {who} cost "
        f"{amount(judged.ours.cost.value)} a {facts.each} ({span(judged.ours.cost)})"
    )
    if judged.saving is not None:
        word = "less" if judged.saving.value >= 0 else "more"
        told += f", {percent(abs(judged.saving.value))} {word} than the best constant order of the past"
        if not math.isnan(judged.saving.low):
            ends = f"{percent(judged.saving.low)} to {percent(judged.saving.high)}"
            told += f" (95 % interval of the saving {ends})"
    if judged.enough is not None and judged.planned is not None:
        told += (
            f"; it was enough on {100 * judged.enough:.0f} of 100 {facts.each}s, planned were "
            f"{100 * judged.planned:.0f}"
        )
    return f"{told}."


def beside_others(judged: Judgement) -> str:
    """Return whether something else was cheaper."""
    best = judged.cheapest
    if not best.verdict:
        beaten = sum(row.verdict == MORE for row in judged.methods) or "none"
        return (
            f"Nothing tried was cheaper: of {len(judged.methods) - 1} other ways to decide, {beaten} "
            "cost more beyond chance."
        )
    gap = f"{-best.difference.value:.3g}"
    if best.verdict == LESS:
        return f"The {best.label} was cheaper, by {gap}, beyond chance: consider it for these data."
    return f"The {best.label} was cheaper by {gap}, which may be chance ({span(best.difference)})."


def above_bound(facts: Facts, judged: Judgement | None) -> str | None:
    """Return that a cost lies above what was stated, and why that can be; None if none does."""
    bound = facts.promise.bound
    if bound is None:
        return None
    cost = facts.own_cost if facts.seen is False else None if judged is None else judged.ours.cost.value
    if cost is None or cost <= bound:
        return None
    # Each policy of the trials saw a part of the rows only; the bound is that of one that saw them all.
    fewer = "" if facts.seen is False else " Besides, the policies judged learned from fewer rows."
    return (
        f"The cost on {facts.each}s not seen before, {amount(cost)}, lies above the bound of "
        f"{amount(bound)}. {facts.promise.why_above}{fewer}"
    )


def own_decisions(facts: Facts) -> str:
    """Return what the model itself costs on these rows, and how much that is worth."""
    cost = f"The model's own decisions on all {len(facts.rows):,} rows cost {amount(facts.own_cost)} a "
    if facts.seen:
        return f"{cost}{facts.each}: it learned from them, so this says little about new ones."
    if facts.seen is False:
        return f"{cost}{facts.each}: it had not seen them."
    return f"{cost}{facts.each}: whether it learned from them is not known."


def how_judged(facts: Facts) -> str:
    """Return how costs out of sample were found."""
    told = f"{facts.trials.described}; every way to decide learned from the same rows"
    if facts.seen is False:
        told += ", but for this model, which had learned before and is judged as it is"
    told = told[0].upper() + told[1:]
    if len(facts.judged) < len(facts.rows):
        which = (
            "newest" if facts.judged.ordered or facts.judged.days is not None else "chosen at random"
        )
        told += f" (of {len(facts.rows):,} rows {MOST_ROWS:,}, {which})"
    drawn = "single rows"
    if facts.rows.ordered or facts.rows.days is not None:
        drawn = "runs of neighbouring rows"
    told += (
        f". Intervals are a paired bootstrap over {drawn}: they say how far the rows judged could have "
        "fallen out otherwise, not how far the policies could have."
    )
    if not facts.rows.ordered and facts.rows.days is not None:
        told += (
            " Rows were shuffled although they have days: name the column of time to judge them in "
            "order, as they will be decided on."
        )
    return told
