"""What the trials amount to: costs with intervals, paired differences, what columns are worth."""

from dataclasses import dataclass

import numpy as np

from surefoot.report.facts import Facts
from surefoot.report.intervals import bootstrap_means, by_row, interval, run_length
from surefoot.report.pictures import Interval
from surefoot.typing import FloatArray

# Columns shown, the strongest first.
SHOWN_COLUMNS = 8
LESS, MORE, OPEN = "costs less", "costs more", "not settled"


@dataclass(frozen=True)
class MethodRow:
    """One way to decide: its cost, and the difference to the model's on the same rows.

    ``verdict`` is empty for the model itself.
    """

    label: str
    cost: Interval
    difference: Interval
    verdict: str


@dataclass(frozen=True)
class Judgement:
    """What the trials say.

    Attributes
    ----------
    methods
        The cheapest first.
    saving
        Share of the constant order's cost that the model saves, with its interval; None where there
        is no such order or it costs nothing.
    enough, planned
        Share of outcomes that decisions covered, and that the costs ask for; None for costs that are
        not a newsvendor's.
    unknown, wrong
        What each column is worth: how much more a row costs without it, and with an error in it.
    """

    methods: tuple[MethodRow, ...]
    saving: Interval | None
    enough: float | None
    planned: float | None
    unknown: tuple[Interval, ...]
    wrong: tuple[Interval, ...]

    @property
    def ours(self) -> MethodRow:
        """The model, or its recipe."""
        return next(row for row in self.methods if not row.verdict)

    @property
    def cheapest(self) -> MethodRow:
        """The cheapest of all."""
        return self.methods[0]


def judge(facts: Facts) -> Judgement | None:
    """Return what the trials say, or None if the model's recipe gave no answer."""
    trials = facts.trials
    if trials.ours.reason:
        return None
    _, costs = by_row(trials.judged, np.column_stack([method.costs for method in trials.answered]))
    timed = facts.rows.days is not None or facts.rows.ordered
    run = run_length(len(costs), ordered=timed)
    means = bootstrap_means(costs, run, seed=0)
    rows = []
    for k, method in enumerate(trials.answered):
        difference = Interval(
            method.label, float(costs[:, k].mean() - costs[:, 0].mean()),
            *interval(means[:, k] - means[:, 0], len(costs)),
        )  # fmt: skip
        verdict = (
            "" if k == 0 else MORE if difference.low > 0 else LESS if difference.high < 0 else OPEN
        )
        kind = {"": "ours", MORE: "worse", LESS: "better"}.get(verdict, "other")
        cost = Interval(method.label, float(costs[:, k].mean()), *interval(means[:, k], len(costs)))
        rows.append(
            MethodRow(method.label, cost._replace(kind="ours" if k == 0 else "other"),
                      difference._replace(kind=kind), verdict)
        )  # fmt: skip
    enough, planned = _service(facts)
    return Judgement(
        methods=tuple(sorted(rows, key=lambda row: row.cost.value)),
        saving=_saving(facts, means, len(costs)), enough=enough, planned=planned,
        unknown=_columns(facts, trials.effects.unknown, timed=timed),
        wrong=_columns(facts, trials.effects.wrong, timed=timed),
    )  # fmt: skip


def _saving(facts: Facts, means: FloatArray, rows: int) -> Interval | None:
    names = [method.name for method in facts.trials.answered]
    if "saa" not in names or facts.cost.floor(facts.rows.y.shape[1]) < 0.0:
        return None  # a share of a cost that may be negative says nothing
    k = names.index("saa")
    constant = float(facts.trials.answered[k].costs.mean())
    if not (constant > 0 and (means[:, k] > 0).all()):
        return None
    low, high = interval(1.0 - means[:, 0] / means[:, k], rows)
    return Interval("saving", 1.0 - float(facts.trials.ours.costs.mean()) / constant, low, high)


def _service(facts: Facts) -> tuple[float | None, float | None]:
    """Return how often decisions were enough, and how often the costs ask them to be."""
    backorder, holding = getattr(facts.cost, "backorder", None), getattr(facts.cost, "holding", None)
    if not isinstance(backorder, float) or not isinstance(holding, float) or facts.rows.y.shape[1] > 1:
        return None, None
    covered = facts.trials.ours.decisions[:, 0] >= facts.judged.y[facts.trials.judged, 0]
    return float(covered.mean()), backorder / (backorder + holding)


def _columns(facts: Facts, effects: FloatArray, *, timed: bool) -> tuple[Interval, ...]:
    """Return what columns are worth, the strongest first; those without any effect are left out."""
    _, effects = by_row(facts.trials.effects.rows, effects)
    means = bootstrap_means(effects, run_length(len(effects), ordered=timed), seed=0)
    names = facts.rows.names
    intervals = []
    for k, j in enumerate(facts.trials.effects.columns):
        if (effects[:, k] != 0.0).any():
            low, high = interval(means[:, k], len(effects))
            kind = "worse" if low > 0 else "other"
            intervals.append(Interval(names[j], float(effects[:, k].mean()), low, high, kind))
    return tuple(sorted(intervals, key=lambda entry: -entry.value)[:SHOWN_COLUMNS])
