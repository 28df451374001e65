"""What new days may cost: a confidence bound, and the worst case when outcomes shift beyond it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surefoot.engines.choice import worst_case_of
from surefoot.exceptions import InvalidInputError
from surefoot.forecasts import Forecasts, confident_radius, cost_bound, rare_rows, unbounded
from surefoot.nominals import Empirical

# A confidence bound needs so many rows on the rarer side of the best decision.
LEAST_RARE = 5
# Shifts that are stated beside a bound, in standard deviations of the outcome, and the one that
# sentences speak of.
SHIFTS = tuple(round(0.1 * k, 1) for k in range(11))
SHIFT = 0.3


@dataclass(frozen=True)
class Guarantee:
    """What is stated about the cost on new days.

    Attributes
    ----------
    bound
        With 95 % confidence the expected cost on days like those learned from is at most this; None
        where no bound is stated.
    shifted
        For shifts of the outcomes, in their standard deviations: what the cost then is at most. Empty
        where outcomes cannot move because decisions have limits.
    suspects
        How many numbers were left out because they look like errors.
    reason
        Why no bound is stated; empty where one is.
    blocks
        In order of time: what the last blocks of rows cost, each decided from the rows before it.
    block_rows
        How many rows a block has.
    within
        Columns of which single rows lie far beyond the others, with what was seen of them: what rows
        farther out may cost is not in the bound.
    """

    bound: float | None
    shifted: dict[float, float] = field(default_factory=dict)
    suspects: int = 0
    reason: str = ""
    blocks: tuple[float, ...] = ()
    block_rows: int = 0
    within: dict[str, tuple[float, float]] = field(default_factory=dict)

    def sentence(self, shift: float) -> str:
        """Return it in one sentence, for one of the shifts.

        >>> print(Guarantee(71.08, {0.3: 93.2}, suspects=1).sentence(0.3))
        Leaving out 1 number that looks like an error: With 95 % confidence the expected cost on new \
days like these is at most 71.1; if outcomes shift by 0.3 standard deviations, at most 93.2.
        """
        if self.bound is None:
            return self.reason
        told = self._told() + self._as_long_as()
        if self.suspects:
            errors = "number that looks like an error"
            if self.suspects > 1:
                errors = "numbers that look like errors"
            told = f"Leaving out {self.suspects} {errors}: {told}"
        if not self.shifted:
            return f"{told}."
        worst = self.shifted[shift]
        return f"{told}; if outcomes shift by {shift:g} standard deviations, at most {worst:.3g}."

    def _as_long_as(self) -> str:
        ranges = [f"{name} is between {a:.3g} and {b:.3g}" for name, (a, b) in self.within.items()]
        return f" as long as {', '.join(ranges)}" if ranges else ""

    def _told(self) -> str:
        if not self.blocks:
            return (
                "With 95 % confidence the expected cost on new days like these is at most "
                f"{self.bound:.3g}"
            )
        return (
            f"The last {len(self.blocks)} blocks of {self.block_rows} rows, each decided from the rows "
            f"before it, cost {self._listed()} on average; the next {self.block_rows} are predicted to "
            f"cost at most {self.bound:.3g} (95 % if blocks vary as these did)"
        )

    def _listed(self) -> str:
        *first, last = (f"{cost:.3g}" for cost in self.blocks)
        return f"{', '.join(first)} and {last}"


def guarantee_of(model: Any, shifts: Sequence[float]) -> Guarantee:
    """Return what is stated about a fitted model whose ensemble has the rows of its fit at hand."""
    rows = getattr(model, "nominal_", None)
    if not decides(model) or not isinstance(rows, Empirical) or rows.offsets is None:
        raise InvalidInputError(
            "guarantee needs the ensemble of nominal='auto' with the rows of its fit, got another "
            "policy, a model from a file or one that has learned on: use worst_case(X, y)."
        )
    honest, suspects = model.problem_.around(rows), len(model.suspects_)
    rare = rare_rows(honest)
    if rare < LEAST_RARE - 1e-9:
        return Guarantee(None, suspects=suspects, reason=(
            f"No bound is stated: of {len(rows.weights)} rows only about {rare:.1f} lie on the "
            f"rarer side of the best decisions, and {LEAST_RARE} are needed for one that holds."
        ))  # fmt: skip
    if (np.ptp(rows.outcomes, axis=0) == 0.0).any():
        return Guarantee(None, suspects=suspects, reason=(
            f"No bound is stated: all {rows.masses.sum():g} outcomes are equal, and so do not tell how "
            "much others may cost."
        ))  # fmt: skip
    rolled = getattr(model, "_rolling", None)
    bound = cost_bound(honest, rolled)
    labels, named = model._column_labels(), unbounded(honest, bound)
    within = {
        labels[j].name: (float(column.min()) * labels[j].unit, float(column.max()) * labels[j].unit)
        for j, column in enumerate(rows.contexts.T)
        if named[j]
    }
    blocks = () if rolled is None else tuple(rolled.costs.tolist())
    length = 0 if rolled is None else rolled.rows
    if not np.isfinite(getattr(honest.ball, "outcome_cost", np.inf)):
        # decisions have limits
        return Guarantee(bound, {}, suspects, "", blocks, length, within)
    radius = confident_radius(honest, model.parameters_, rolled)
    shifted = {
        float(shift): worst_case_of(honest.at_radius(radius + shift), model.parameters_)[0]
        for shift in shifts
    }
    return Guarantee(bound, shifted, suspects, "", blocks, length, within)


def decides(estimator: Any) -> bool:
    """Return whether an ensemble decides, and no policy was solved for."""
    offset = getattr(estimator.problem_.policy, "offset", None)
    return isinstance(offset, Forecasts) and offset.decides
