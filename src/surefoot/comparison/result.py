"""What a comparison found: costs, paired differences with intervals, scores."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from surefoot.comparison.picture import draw
from surefoot.comparison.splits import Splits
from surefoot.exceptions import InvalidInputError
from surefoot.text_table import text_table
from surefoot.tracing import load_extra
from surefoot.typing import FloatArray


@dataclass(frozen=True)
class Trial:
    """One method on one split.

    Attributes
    ----------
    method, split, name
        Which method, and the number and name of the split.
    train, test
        Rows of the split to learn from and to judge on.
    learned, judged
        How many of them were: all, or a sample.
    cost
        Mean cost over the judged rows; None if the method failed.
    yardstick
        Mean cost of the constant SAA order on the same split.
    seconds
        For fitting and deciding.
    reason
        Why there is no cost; empty if there is one.
    notes
        Warnings, each once.
    """

    method: str
    split: int
    name: str
    train: int
    test: int
    learned: int
    judged: int
    cost: float | None
    yardstick: float
    seconds: float
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ComparisonRow:
    """One method in the table of a comparison.

    Attributes
    ----------
    method
        Its name.
    cost
        Mean cost over the splits on which it gave an answer; NaN if there are none.
    difference, low, high
        Mean of (its cost - the reference's cost) over the splits on which both gave an answer, and the
        ends of its confidence interval: positive if it costs more than the reference.
    wins
        On how many of these splits it cost less than the reference.
    pairs
        How many these are.
    score
        Prescriptiveness, 1 - cost / cost of the constant SAA order: 0 is no better than a constant.
    seconds
        Mean time for fitting and deciding on a split.
    failures
        On how many splits it gave no answer.
    """

    method: str
    cost: float
    difference: float
    low: float
    high: float
    wins: int
    pairs: int
    score: float
    seconds: float
    failures: int


def paired_interval(
    differences: Sequence[float] | FloatArray, standard_error: float, confidence: float
) -> tuple[float, float]:
    """Return the ends of the t interval around the mean of some differences.

    >>> low, high = paired_interval([1.0, 2.0, 3.0], standard_error=0.5, confidence=0.95)
    >>> round(low, 3), round(high, 3)
    (-0.151, 4.151)
    """
    if len(differences) < 2:
        return math.nan, math.nan
    mean = float(np.mean(differences))
    half_width = float(stats.t.ppf(0.5 + confidence / 2, len(differences) - 1)) * standard_error
    return mean - half_width, mean + half_width


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The result of ``compare``.

    Attributes
    ----------
    methods, reference
        Names in the order given, and the one that others are compared with.
    trials
        Every method on every finished split.
    status
        A sentence: whether all splits are done.
    """

    methods: tuple[str, ...]
    reference: str
    trials: tuple[Trial, ...] = field(repr=False)
    splits: Splits
    rows_in_all: int
    n_splits: int
    confidence: float
    status: str

    @property
    def complete(self) -> bool:
        """Whether every split is done."""
        return len(self.trials) == self.n_splits * len(self.methods)

    @property
    def rows(self) -> tuple[ComparisonRow, ...]:
        """One row for each method, in the order given."""
        return tuple(self.row(name) for name in self.methods)

    def costs(self, method: str) -> FloatArray:
        """Return the mean cost on each finished split, NaN where the method failed."""
        if method not in self.methods:
            raise InvalidInputError(f"method must be one of {', '.join(self.methods)}, got {method!r}.")
        return np.array([math.nan if t.cost is None else t.cost for t in self._of(method)])

    def _of(self, method: str) -> list[Trial]:
        return [trial for trial in self.trials if trial.method == method]

    def differences(self, method: str) -> FloatArray:
        """Return cost - the reference's cost on each split on which both gave an answer."""
        paired = self.costs(method) - self.costs(self.reference)
        return np.asarray(paired[~np.isnan(paired)])

    def row(self, method: str) -> ComparisonRow:
        """Return the row of one method."""
        costs, trials = self.costs(method), self._of(method)
        answered = ~np.isnan(costs)
        yardsticks = np.array([trial.yardstick for trial in trials])[answered]
        paired = self.differences(method)
        low, high = self._interval(method, paired)
        constant = float(yardsticks.mean()) if answered.any() else 0.0
        mean = float(costs[answered].mean()) if answered.any() else math.nan
        seconds = [trial.seconds for trial in trials if trial.cost is not None]
        return ComparisonRow(
            method=method, cost=mean,
            difference=float(paired.mean()) if len(paired) else math.nan, low=low, high=high,
            wins=int((paired < 0).sum()), pairs=len(paired),
            score=1.0 - mean / constant if constant > 0 else math.nan,
            seconds=float(np.mean(seconds)) if seconds else math.nan,
            failures=int((~answered).sum()),
        )  # fmt: skip

    def _interval(self, method: str, paired: FloatArray) -> tuple[float, float]:
        if method == self.reference and len(paired):
            return 0.0, 0.0
        if len(paired) < 2:
            return math.nan, math.nan
        trials = self._of(method)
        train = float(np.mean([trial.train for trial in trials]))
        test = float(np.mean([trial.test for trial in trials]))
        error = self.splits.standard_error(paired, train, test)
        return paired_interval(paired, error, self.confidence)

    def reasons(self) -> dict[str, str]:
        """Return, for each method that failed somewhere, where and why it first did."""
        reasons: dict[str, str] = {}
        for method in self.methods:
            failed = [trial for trial in self._of(method) if trial.cost is None]
            if failed:
                first = failed[0]
                where = f"on {len(failed)} of {len(self._of(method))} splits, first {first.name}"
                reasons[method] = f"no answer {where}: {first.reason}"
        return reasons

    def sampled(self) -> str:
        """Return in a sentence of how many rows methods saw a sample; empty where they saw all."""
        usual = self._of(self.reference)[0]
        sentences = []
        if usual.learned < usual.train or usual.judged < usual.test:
            sentences.append(
                f"Of each split a sample: learned from {usual.learned:,} of {usual.train:,} rows, "
                f"judged on {usual.judged:,} of {usual.test:,}."
            )
        firsts = [self._of(method)[0] for method in self.methods]
        sentences += [
            f"{one.method} learned from {one.learned:,} of {one.train:,} rows."
            for one in firsts
            if one.learned != usual.learned
        ]
        return " ".join(sentences)

    def notes(self) -> dict[str, int]:
        """Return every warning that a fit gave, and in how many fits it was given."""
        return dict(Counter(note for trial in self.trials for note in trial.notes).most_common())

    def to_frame(self) -> Any:
        """Return the rows as a pandas data frame, indexed by method."""
        pandas = load_extra("pandas", "to_frame needs pandas: pip install pandas")
        return pandas.DataFrame([asdict(row) for row in self.rows]).set_index("method")

    def picture(self, target: str | Path | Any) -> None:
        """Draw differences and intervals into a file, or onto matplotlib axes."""
        draw(self, target)

    def cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return headings, and a line of texts for each method, the cheapest first."""
        rows = sorted(self.rows, key=lambda row: (math.isnan(row.cost), row.cost))
        decimals = _decimals([row.cost for row in rows])
        interval = f"{100 * self.confidence:g} % interval"
        head = ("", "cost", "difference", interval, "cheaper", "score", "s/fit")
        return head, [_line(row, self.reference, decimals) for row in rows]

    def legend(self) -> str:
        """Return what stands in the columns of ``cells``."""
        return (
            f"difference: cost beyond that of {self.reference}, on the same splits; cheaper: splits on "
            "which a method beats it.\nscore: 1 - cost / cost of the constant SAA order."
        )

    def about(self) -> list[str]:
        """Return how rows were split, of how many methods saw a sample, and whether all is done."""
        told = (self.splits.describe(self.rows_in_all), self.sampled(), self.status)
        return [sentence for sentence in told if sentence]

    def __str__(self) -> str:
        """Return the table, with a line for each method that failed."""
        head, lines = self.cells()
        parts = [*self.about(), "", text_table(head, lines, right=6), "", self.legend()]
        parts += [f"{method}: {reason}" for method, reason in self.reasons().items()]
        warned = sum(bool(trial.notes) for trial in self.trials)
        if warned:
            parts.append(f"{warned} of {len(self.trials)} fits gave warnings: see notes().")
        return "\n".join(parts)

    __repr__ = __str__


def _decimals(costs: list[float]) -> int:
    """Return how many decimals show four digits of the largest cost."""
    largest = max((abs(cost) for cost in costs if not math.isnan(cost)), default=0.0)
    return max(0, 3 - math.floor(math.log10(largest))) if largest > 0 else 0


def _line(row: ComparisonRow, reference: str, decimals: int) -> tuple[str, ...]:
    if math.isnan(row.cost):
        return (row.method, "-", "", "", "", "", "")
    cost, score = f"{row.cost:.{decimals}f}", "-" if math.isnan(row.score) else f"{row.score:.3f}"
    end = (score, f"{row.seconds:.2f}")
    if row.method == reference:
        return (row.method, cost, "", "", "", *end)
    difference = "-" if math.isnan(row.difference) else f"{row.difference:+.{decimals}f}"
    # Methods that order the same have no interval: a width of zero would claim certainty.
    known = not math.isnan(row.low) and row.low < row.high
    interval = f"{row.low:+.{decimals}f} to {row.high:+.{decimals}f}" if known else "-"
    return (row.method, cost, difference, interval, f"{row.wins} of {row.pairs}", *end)
