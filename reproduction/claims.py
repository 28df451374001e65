"""A sentence of the paper, turned into numbers, with a verdict that says on what it depends."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from reproduction.summary import Summary

HOLDS, FAILS, DEPENDS, UNTESTED = "holds", "does not hold", "depends", "not tested"
# A statement about many cells holds if it is true in at least this share of them, and fails if it
# is true in no more than the rest.
MOST, FEW = 0.8, 0.2
# The paper's words in numbers.
SMALL, LARGE = 50, 300
CLEAN, NOISY = 0.1, 5.0
_NAMED = 2  # so few failures are named one by one
_COORDINATES = ("s", "σ²", "n")

# Policies that collapse to the same constant differ in their last digits: that is a tie.
_TIE = 1e-9

Where = tuple[int, float, int]  # s, noise variance, n


@dataclass(frozen=True)
class Reading:
    """A claim under one reading of what the paper leaves open.

    Attributes
    ----------
    label
        The reading: which form of DA-SGD, which tie-break.
    value
        The number; what it is, the claim's ``measure`` says.
    verdict
        "holds", "does not hold" or "depends".
    detail
        Where it holds and where not.
    """

    label: str
    value: float
    verdict: str
    detail: str


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what our results say of it."""

    name: str
    sentence: str
    measure: str
    readings: tuple[Reading, ...]

    @property
    def verdict(self) -> str:
        """The verdict of all readings if they agree, else "depends"."""
        verdicts = {reading.verdict for reading in self.readings}
        if not verdicts:
            return UNTESTED
        return verdicts.pop() if len(verdicts) == 1 else DEPENDS

    @property
    def depends_on(self) -> str:
        """On what the verdict depends; empty if on nothing."""
        if self.verdict != DEPENDS:
            return ""
        if len({reading.verdict for reading in self.readings}) == 1:
            return "; ".join(f"{reading.label}: {reading.detail}" for reading in self.readings)
        return "; ".join(
            f"{reading.label}: {reading.verdict}"
            + (f" ({reading.detail})" if reading.verdict == DEPENDS else "")
            for reading in self.readings
        )


class Panel:
    """The summaries of one context law and one kind of coefficients, by place and method."""

    def __init__(
        self,
        summaries: Iterable[Summary],
        *,
        contexts: str = "uniform",
        coefficients: str = "positive",
    ) -> None:
        self._known: dict[tuple[Where, str], Summary] = {
            ((one.s, one.noise_variance, one.n), one.method): one
            for one in summaries
            if one.noise_variance is not None
            and (one.contexts, one.coefficients) == (contexts, coefficients)
            and one.mean is not None
        }
        self._means = {key: one.mean for key, one in self._known.items() if one.mean is not None}

    def places(self, methods: Sequence[str], keep: Callable[[Where], bool]) -> list[Where]:
        """Return the places that pass and at which every one of the methods has a mean."""
        found = {where for where, _ in self._known}
        whole = [where for where in found if all((where, name) in self._known for name in methods)]
        return sorted(where for where in whole if keep(where))

    def mean(self, where: Where, method: str) -> float:
        """Mean out-of-sample cost."""
        return self._means[where, method]

    def variance(self, where: Where, method: str) -> float:
        """Variance of the out-of-sample cost over repetitions; NaN after a single one."""
        found = self._known[where, method].variance
        return float("nan") if found is None else found

    def seconds(self, where: Where, method: str) -> float:
        """Median time of a fit."""
        return float(self._known[where, method].fit_seconds or 0.0)


def below(value: float, other: float) -> bool:
    """Whether a value is smaller by more than rounding.

    >>> below(0.3, 0.1 + 0.2), below(0.29, 0.3)
    (False, True)
    """
    return value < other - _TIE * abs(other)


def share_reading(
    label: str, places: Sequence[Where], true_at: Callable[[Where], bool]
) -> Reading | None:
    """Judge a statement about places: the value is the share of places where it is true.

    >>> share_reading("all", [(100, 1.0, 10), (100, 1.0, 30)], lambda where: where[2] == 10)
    Reading(label='all', value=0.5, verdict='depends', detail='1 of 2; not at n=30')
    """
    if not places:
        return None
    failing = [where for where in places if not true_at(where)]
    share = 1.0 - len(failing) / len(places)
    verdict = HOLDS if share >= MOST else FAILS if share <= FEW else DEPENDS
    return Reading(label, share, verdict, _detail(places, failing))


def limit_reading(label: str, value: float, *, holds: bool, detail: str) -> Reading:
    """Judge a single number."""
    return Reading(label, value, HOLDS if holds else FAILS, detail)


def _detail(places: Sequence[Where], failing: Sequence[Where]) -> str:
    text = f"{len(places) - len(failing)} of {len(places)}"
    if not failing:
        return text
    if len(failing) == len(places):
        return f"{text}; nowhere"
    for index, name in enumerate(_COORDINATES):
        # One coordinate may say it all: "not at s=1000".
        values = {where[index] for where in failing}
        if sum(where[index] in values for where in places) == len(failing):
            return f"{text}; not at {name}=" + ", ".join(f"{value:g}" for value in sorted(values))
    return f"{text}; {_breakdown(places, failing)}"


def _breakdown(places: Sequence[Where], failing: Sequence[Where]) -> str:
    """Count along the coordinate that matters most, or name the failures if they are few."""
    if len(failing) <= _NAMED:
        return "not at " + ", ".join(f"s={s} σ²={v:g} n={n}" for s, v, n in failing)
    tables = []
    for index, name in enumerate(_COORDINATES):
        counts = []
        for value in sorted({where[index] for where in places}):
            here = [where for where in places if where[index] == value]
            right = sum(where not in failing for where in here)
            counts.append((value, right, len(here)))
        shares = [right / total for _, right, total in counts]
        tables.append((max(shares) - min(shares), name, counts))
    _, name, counts = max(tables, key=lambda table: table[0])
    return f"by {name}: " + ", ".join(f"{value:g}: {right}/{total}" for value, right, total in counts)


def claim(name: str, sentence: str, measure: str, readings: Iterable[Reading | None]) -> Claim:
    """Return a claim with the readings that could be tested."""
    return Claim(name, sentence, measure, tuple(one for one in readings if one is not None))
