"""Tables and sentences that the page and the documentation share, as plain text."""

from collections import Counter
from dataclasses import dataclass

from reproduction.claims import Claim
from reproduction.methods import METHODS
from reproduction.outputs import Findings, Variant
from reproduction.timing import PassTimes

LABELS = {method.name: method.label for method in METHODS}


@dataclass(frozen=True)
class Table:
    """Headings and rows of text, not yet escaped."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def percent(share: float) -> str:
    """Return a share in per cent, readable from 0.001 % to many times the whole.

    >>> percent(0.00478), percent(264.76), percent(0.0)
    ('0.478 %', '26,476 %', '0 %')
    """
    return f"{100 * share:,.0f} %" if share >= 1 else f"{100 * share:.3g} %"


def variant_name(variant: Variant) -> str:
    """Say which context law and which coefficients.

    >>> variant_name(("uniform", "positive"))
    'uniform contexts, positive coefficients'
    """
    return f"{variant[0]} contexts, {variant[1]} coefficients"


def verdict_counts(claims: list[Claim]) -> str:
    """Count the verdicts in words."""
    counts = Counter(one.verdict for one in claims)
    return ", ".join(f"{verdict}: {count}" for verdict, count in counts.most_common())


def time_table(findings: Findings) -> Table:
    """Table 1."""
    heads = (
        "s", "n", "DA-SGD, paper", "10,000 printed steps", "to a certified 1 %", "faster",
        "Shapley, paper", "Shapley, ours", "faster",
    )  # fmt: skip
    rows = [
        (str(row.s), str(row.n), f"{row.dasgd_paper:.2f} s", f"{row.dasgd_steps:.4f} s",
         f"{row.dasgd_certified:.4f} s", f"{row.dasgd_speedup:,.0f}×", f"{row.shapley_paper:,.1f} s",
         f"{row.shapley:.3f} s", f"{row.shapley_speedup:,.0f}×")
        for row in findings.times
    ]  # fmt: skip
    return Table(heads, tuple(rows))


TIME_NOTE = (
    "Seconds of training and of 10,000 decisions at a fixed radius, one instance after another, the "
    "quickest of a few runs, mean over σ². “Faster” is the paper's figure over ours (for DA-SGD, over "
    "the certified fit). The paper's machine was an i5-11400H with Gurobi 9.5.2."
)


def pass_sentence(one: PassTimes) -> str:
    """Say how long DA-SGD took on many instances."""
    return (
        f"DA-SGD alone on {one.instances:,} instances: {one.certified:.1f} s on {one.threads} cores "
        f"({one.certified_cpu:.1f} s of processor time) to a certified gap of 1 % (largest "
        f"{percent(one.largest_gap)}); 10,000 printed steps on each, one after another, take "
        f"{one.steps:.1f} s ({one.steps_cpu:.1f} s of processor time)."
    )


def gap_table(findings: Findings) -> Table:
    """How well training problems were solved, by method."""
    rows = []
    for name, label in LABELS.items():
        gaps = sorted(r.gap for r in findings.results if r.method == name and r.gap is not None)
        if gaps:
            within = sum(gap <= 0.01 for gap in gaps) / len(gaps)
            middle = gaps[len(gaps) // 2]
            texts = (percent(middle), percent(gaps[-1]), f"{100 * within:.0f} %")
            rows.append((label, f"{len(gaps):,}", *texts))
    return Table(("method", "fits", "median gap", "largest gap", "within 1 %"), tuple(rows))


GAP_NOTE = (
    "How far the returned policy's worst case may be from the least possible, proved by code that "
    "knows no solver; it says nothing about cost on new rows. Linear programs (NV-ERM, Shapley) are "
    "solved exactly, and the other methods solve no optimisation problem. Where n < s and the radius "
    "is small the least possible is near zero, so that a small excess is a large share of it."
)


def settings_table(findings: Findings) -> Table:
    """Every setting of every method that was run."""
    rows = [
        (LABELS.get(name, name), name, ", ".join(f"{key}={value}" for key, value in kept.items()))
        for name, kept in findings.settings.items()
    ]
    return Table(("method", "name", "settings"), tuple(rows))


SETTINGS_NOTE = (
    "The paper leaves most of these unsaid; here is every value. Costs: backorder 1, holding 0.2; "
    "restaurant: 15 and 10. Coefficients and intercept: uniform on [0, 1] (positive) or standard "
    "normal (mixed). Contexts: uniform on [0, 1], or standard normal. σ² is a variance. Radii of "
    "robust linear are in standard deviations of the columns, those of the printed algorithm and of "
    "Shapley in the columns' units. “auto” is five-fold cross-validation. The printed algorithm "
    "starts at θ standard normal and γ uniform on [0, 1]."
)


def variant_table(findings: Findings) -> Table:
    """The verdicts under every context law and kind of coefficients that was run."""
    variants = findings.variants()
    verdicts = [{one.name: _with_values(one) for one in findings.claims[v]} for v in variants]
    rows = [
        (one.sentence, *(known[one.name] for known in verdicts))
        for one in findings.claims[variants[0]]
        if all(one.name in known for known in verdicts)
    ]
    return Table(("sentence", *(variant_name(variant) for variant in variants)), tuple(rows))


def _with_values(one: Claim) -> str:
    values = " · ".join(f"{reading.value:.2f}" for reading in one.readings)
    return f"{one.verdict} ({values})" if values else one.verdict


VARIANT_NOTE = (
    "Numbers are those of the readings above, in their order: with intercept, no intercept, as "
    "printed. Columns after the first rest on a smaller part of the grid and fewer repetitions."
)


def claims_note(findings: Findings) -> str:
    """Say what the verdicts mean, and how many there are of each."""
    main = findings.variants()[0]
    return (
        f"Each sentence of the paper's analysis as a number, for {variant_name(main)}. A statement "
        "about many cells holds if it is true in at least 80 % of them, does not if in at most 20 %; "
        "in between, or where readings of what the paper leaves open disagree, it depends. The paper's "
        "policy has no intercept although its data have one, and it fixes neither radius nor steps: so "
        "DA-SGD is read as ours with an intercept, ours without, and the algorithm as printed. "
        f"Verdicts: {verdict_counts(findings.claims[main])}."
    )
