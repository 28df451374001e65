"""The sentences of the paper's section 5.2, each with the number that tests it."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from reproduction.claims import (
    CLEAN,
    LARGE,
    NOISY,
    SMALL,
    Claim,
    Panel,
    Reading,
    Where,
    below,
    claim,
    limit_reading,
    share_reading,
)
from reproduction.methods import METHODS
from reproduction.summary import Summary, TimeRow

# What "DA-SGD" may mean: the paper fixes neither radius nor steps, and its policy has no intercept.
READINGS = {
    "with intercept": "ours-auto-2",
    "no intercept": "ours-auto-2-plain",
    "as printed": "literal",
}
RIVALS = ("erm-vertex", "erm-l1", "forest", "shapley-auto")
ERM_RULES = {"vertex": "erm-vertex", "minimum norm": "erm-norm"}
_LABELS = {method.name: method.label for method in METHODS}
FLAT = 1.5  # times over n whose largest is within this factor of the smallest are called stable
CALM = 2.0  # likewise over the noise, where a solver's path also differs from draw to draw

Test = Callable[[Where, str], bool]


def all_claims(
    summaries: Sequence[Summary],
    times: Sequence[TimeRow] = (),
    *,
    contexts: str = "uniform",
    coefficients: str = "positive",
) -> list[Claim]:
    """Return every claim about one context law and one kind of coefficients."""
    panel = Panel(summaries, contexts=contexts, coefficients=coefficients)
    return [*_costs(panel), *_sizes(panel), *_variances(panel), *_times(panel, times)]


def _each(
    panel: Panel, keep: Callable[[Where], bool], test: Test, rivals: Sequence[str] = RIVALS
) -> Iterator[Reading | None]:
    """Test every reading of DA-SGD at the places kept."""
    for label, ours in READINGS.items():
        yield share_reading(label, panel.places((ours, *rivals), keep), _fixed(test, ours))


def _fixed(test: Test, ours: str) -> Callable[[Where], bool]:
    return lambda where: test(where, ours)


def _costs(panel: Panel) -> Iterator[Claim]:
    def best(where: Where) -> float:
        return min(panel.mean(where, rival) for rival in RIVALS)

    def wins(where: Where, ours: str) -> bool:
        return below(panel.mean(where, ours), best(where))

    def below_erm(where: Where, ours: str) -> bool:
        plain, penalised = panel.mean(where, "erm-vertex"), panel.mean(where, "erm-l1")
        return below(min(plain, penalised), panel.mean(where, ours))

    def poor(where: Where, ours: str) -> bool:
        weaker = min(panel.mean(where, "forest"), panel.mean(where, "shapley-auto"))
        return below(panel.mean(where, ours), weaker)

    def lead(where: Where, ours: str) -> float:
        return best(where) / panel.mean(where, ours)

    def has_clean(where: Where) -> bool:
        return panel.places((*RIVALS, *READINGS.values()), lambda other: other == _clean(where)) != []

    cheapest = "share of cells in which DA-SGD's mean cost is below NV-ERM1, NV-ERM2, RF and Shapley"
    yield claim(
        "small-clean", "When data quality is high (small σ), DA-SGD outperforms other benchmarks "
        "with small sample size.", f"{cheapest} (σ² = 0.1, n ≤ {SMALL})",
        _each(panel, lambda w: w[1] == CLEAN and w[2] <= SMALL, wins),
    )  # fmt: skip
    yield claim(
        "erm-overtakes", "As data size increases, NV-ERM methods surpass DA-SGD.",
        f"share of cells in which NV-ERM1 or NV-ERM2 costs less than DA-SGD (σ² = 0.1, n ≥ {LARGE})",
        _each(panel, lambda w: w[1] == CLEAN and w[2] >= LARGE, below_erm),
    )  # fmt: skip
    yield claim(
        "others-poor", "Shapley and RF exhibit poor performance under current experiment settings.",
        "share of cells in which both cost more than DA-SGD", _each(panel, lambda w: True, poor),
    )  # fmt: skip
    yield claim(
        "noise-helps", "When data quality deteriorates, the advantage of DA-SGD becomes more obvious "
        "even with large data set.",
        "share of (s, n) in which best benchmark / DA-SGD is larger at σ² = 5 than at σ² = 0.1",
        _each(panel, lambda w: w[1] == NOISY and has_clean(w),
              lambda w, ours: lead(w, ours) > lead(_clean(w), ours)),
    )  # fmt: skip
    yield claim(
        "noisy-large", "... the advantage of DA-SGD [is there] even with large data set [at low "
        "quality].", f"{cheapest} (σ² = 5, n ≥ {LARGE})",
        _each(panel, lambda w: w[1] == NOISY and w[2] >= LARGE, wins),
    )  # fmt: skip
    yield claim(
        "high-dimension", "When dimension comes to 1000, the small-data-large-scale phenomenon becomes "
        "more evident, and DA-SGD outperforms other benchmarks.", f"{cheapest} (s = 1000)",
        _each(panel, lambda w: w[0] == 1000, wins),
    )  # fmt: skip
    yield claim(
        "small-noisy", "DA-SGD method demonstrates stronger robustness, performing better with small, "
        "low-quality data.", f"{cheapest} (σ² = 5, n ≤ {SMALL})",
        _each(panel, lambda w: w[1] == NOISY and w[2] <= SMALL, wins),
    )  # fmt: skip


def _clean(where: Where) -> Where:
    return where[0], CLEAN, where[2]


def _paths(panel: Panel, methods: Sequence[str]) -> dict[Where, list[Where]]:
    """Places along n for each (s, variance) with at least three of them, named by the first."""
    lines: dict[tuple[int, float], list[Where]] = {}
    for where in panel.places(methods, lambda w: True):
        lines.setdefault(where[:2], []).append(where)
    return {line[0]: line for line in lines.values() if len(line) >= 3}


def _sizes(panel: Panel) -> Iterator[Claim]:
    def fall(line: Sequence[Where], method: str) -> float:
        """How far the cost ranges over n, as the log of a factor."""
        costs = [panel.mean(where, method) for where in line]
        return math.log(max(costs) / min(costs))

    def jump(line: Sequence[Where], method: str) -> float:
        """The largest change of the log cost from one n to the next."""
        costs = [math.log(panel.mean(where, method)) for where in line]
        return max(abs(b - a) for a, b in itertools.pairwise(costs))

    def calmer(measure: Callable[[Sequence[Where], str], float], ours: str, rivals: Sequence[str]) -> (
        Reading | None
    ):  # fmt: skip
        lines = _paths(panel, (ours, *rivals))
        label = next(label for label, name in READINGS.items() if name == ours)
        return share_reading(label, list(lines), lambda first: measure(lines[first], ours)
                             < min(measure(lines[first], rival) for rival in rivals))  # fmt: skip

    yield claim(
        "size-matters-least", "DA-SGD is least affected by the size of data set.",
        "share of panels (s, σ²) in which largest / smallest mean cost over n is smaller for DA-SGD "
        "than for every benchmark", [calmer(fall, ours, RIVALS) for ours in READINGS.values()],
    )  # fmt: skip
    yield claim(
        "smooth", "[DA-SGD] exhibit[s] a relatively smooth trend as size increasing.",
        "share of panels in which DA-SGD's largest change from one n to the next is smaller than that "
        "of NV-ERM1 and NV-ERM2",
        [calmer(jump, ours, ("erm-vertex", "erm-l1")) for ours in READINGS.values()],
    )  # fmt: skip

    def worst(erm: str) -> Callable[[Where], bool]:
        others = ("literal", "ours-auto-2", "forest", "shapley-auto")
        return lambda where: panel.mean(where, erm) > max(panel.mean(where, name) for name in others)

    methods = ("erm-vertex", "erm-norm", "literal", "ours-auto-2", "forest", "shapley-auto")
    yield claim(
        "erm-worst", "NV-ERM methods are highly influenced by data volume, performing worst with small "
        "data size.",
        f"share of cells in which NV-ERM1 costs more than DA-SGD, RF and Shapley (n ≤ {SMALL})",
        [share_reading(f"NV-ERM1 {rule}", panel.places(methods, lambda w: w[2] <= SMALL), worst(erm))
         for rule, erm in ERM_RULES.items()],
    )  # fmt: skip


def _variances(panel: Panel) -> Iterator[Claim]:
    def known(where: Where) -> bool:
        return not math.isnan(panel.variance(where, "erm-vertex"))

    def least(where: Where, ours: str) -> bool:
        least_rival = min(panel.variance(where, rival) for rival in RIVALS)
        return below(panel.variance(where, ours), least_rival)

    def rises(where: Where, method: str) -> float:
        return panel.variance(where, method) - panel.variance(_clean(where), method)

    def both(where: Where) -> bool:
        clean = panel.places((*RIVALS, *READINGS.values()), lambda v: v == _clean(where))
        return where[1] == NOISY and clean != [] and known(where)

    yield claim(
        "least-variance",
        "The overall fluctuation of the DA-SGD method is smallest among these methods.",
        "share of cells in which DA-SGD's variance over repetitions is the smallest",
        _each(panel, known, least),
    )  # fmt: skip

    def largest(erm: str) -> Callable[[Where], bool]:
        others = ("literal", "ours-auto-2", "forest", "shapley-auto")
        return lambda where: panel.variance(where, erm) > max(panel.variance(where, o) for o in others)

    methods = ("erm-vertex", "erm-norm", "literal", "ours-auto-2", "forest", "shapley-auto")
    yield claim(
        "erm-variance", "NV-ERM methods have the largest variance with small data.",
        f"share of cells in which NV-ERM1's variance is the largest (n ≤ {SMALL})",
        [share_reading(f"NV-ERM1 {rule}",
                       panel.places(methods, lambda w: w[2] <= SMALL and known(w)), largest(erm))
         for rule, erm in ERM_RULES.items()],
    )  # fmt: skip

    def rising(method: str) -> Callable[[Where], bool]:
        return lambda where: rises(where, method) > 0

    yield claim(
        "noise-raises-variance", "As data quality deteriorates, the variances of all methods increase.",
        "share of (s, n) in which the variance at σ² = 5 exceeds that at σ² = 0.1",
        [share_reading(_LABELS[name], panel.places((name, *RIVALS), both), rising(name))
         for name in (*READINGS.values(), *RIVALS)],
    )  # fmt: skip
    yield claim(
        "noise-hurts-least", "... but the impact of DA-SGD is smaller than other benchmarks.",
        "share of (s, n) in which the rise of the variance from σ² = 0.1 to 5 is smallest for DA-SGD",
        _each(panel, both, lambda w, ours: rises(w, ours) < min(rises(w, rival) for rival in RIVALS)),
    )  # fmt: skip


def _times(panel: Panel, times: Sequence[TimeRow]) -> Iterator[Claim]:
    if not times:
        return
    by_columns: dict[int, list[TimeRow]] = {}
    for row in times:
        by_columns.setdefault(row.s, []).append(row)

    def spread(s: int, name: str) -> float:
        values = [getattr(row, name) for row in by_columns[s]]
        return float(max(values) / min(values))

    def ranges(s: int, name: str) -> str:
        values = [1000 * getattr(row, name) for row in by_columns[s]]
        return f"{min(values):.1f} to {max(values):.1f} ms"

    kinds = {"10,000 printed steps": "dasgd_steps", "to a certified 1 %": "dasgd_certified"}
    yield claim(
        "time-flat", "With different size of data set, the time of DA-SGD is stable.",
        f"largest / smallest seconds per instance over n, training and testing; stable: ≤ {FLAT}",
        [limit_reading(f"{label}, s = {s}", spread(s, name), holds=spread(s, name) <= FLAT,
                       detail=ranges(s, name))
         for label, name in kinds.items() for s in by_columns],
    )  # fmt: skip
    yield claim(
        "shapley-slower", "The computational time of Shapley is much longer than DA-SGD and more "
        "sensitive to the data size.",
        "smallest Shapley seconds / DA-SGD seconds over the rows of Table 1 (longer: > 1)",
        [_slower(label, name, times) for label, name in kinds.items()],
    )  # fmt: skip
    yield claim(
        "noise-costs-no-time", "Noise σ has little effect on the computational time.",
        "largest / smallest median fit seconds over σ², mean over (s, n), while other fits ran "
        f"beside; little: ≤ {CALM}",
        [_noise(panel, label, name) for label, name in
         {"ours, fixed radius": "ours-fixed-2", "Shapley, fixed radius": "shapley-fixed"}.items()],
    )  # fmt: skip


def _slower(label: str, name: str, times: Sequence[TimeRow]) -> Reading:
    ratios = [row.shapley / getattr(row, name) for row in times]
    growth = [
        max(getattr(row, column) for row in times) / min(getattr(row, column) for row in times)
        for column in ("shapley", name)
    ]
    detail = (
        f"{min(ratios):.1f} to {max(ratios):.1f} times as long; over the table Shapley's time grows "
        f"{growth[0]:.0f}-fold, DA-SGD's {growth[1]:.0f}-fold"
    )
    return limit_reading(
        label, min(ratios), holds=min(ratios) > 1 and growth[0] > growth[1], detail=detail
    )


def _noise(panel: Panel, label: str, method: str) -> Reading | None:
    groups: dict[tuple[int, int], list[float]] = {}
    for where in panel.places((method,), lambda w: True):
        groups.setdefault((where[0], where[2]), []).append(panel.seconds(where, method))
    ratios = [max(group) / min(group) for group in groups.values() if len(group) > 1 and min(group) > 0]
    if not ratios:
        return None
    value = sum(ratios) / len(ratios)
    return limit_reading(label, value, holds=value <= CALM, detail=f"over {len(ratios)} sizes")
