"""The Wasserstein ball: distributions that can be reached by moving mass not too far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from surefoot.ambiguity.balance import left_out
from surefoot.ambiguity.base import AmbiguitySet, plain_columns
from surefoot.ambiguity.form import Adversary, AffineForm, AffineRows
from surefoot.ambiguity.lower_bound import lower_bound, unpenalised
from surefoot.ambiguity.plan import Plan
from surefoot.ambiguity.transport import TransportForm
from surefoot.ambiguity.worst_case import adversary, worst_value
from surefoot.exceptions import InvalidInputError
from surefoot.io import register
from surefoot.sets import Box
from surefoot.typing import BoolArray, FloatArray, IntArray
from surefoot.validation import check_choice, check_instance, check_number, numeric_array

# Ways to have the radius chosen from data; ``estimators.radius_rules`` says what each one means.
RADIUS_RULES = ("auto", "paper", "profile")
# Of several products under a linear policy: one adversary for all where that is exact and quick, an
# adversary of its own for each, or one for all.
ADVERSARIES = ("auto", "each", "joint")
# What a form has computed and no radius changes.
KEPT = ("supported", "_constant_order", "gap_floor", "column_sizes", "largest_radius")


def _scale(value: Any) -> bool | tuple[float, ...]:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    units = np.zeros(0) if isinstance(value, str) else numeric_array("scale", value)
    if units.ndim != 1 or not units.size or not (units > 0.0).all():
        raise InvalidInputError(
            f"scale must be True, False or one number > 0 per column, got {value!r}."
        )
    return tuple(units.tolist())


@register
@dataclass(frozen=True)
class WassersteinBall(AmbiguitySet):
    r"""All distributions P with W_p(P, Q) <= radius.

    Moving (x, y) to (x', y') costs

    .. math:: d_1 = \|x' - x\|_2 + \kappa |y' - y|, \qquad
              d_2 = \|x' - x\|_2^2 + \kappa |y' - y|^2

    and the budget is radius^p: the radius is always a distance.

    With several products one adversary moves the context once and every product's cost feels it
    ("joint"), or each product of a linear policy faces an adversary of its own with this radius
    ("each"). The worst case of the total is then the sum of the products' worst cases, never below
    that of the joint one.

    Parameters
    ----------
    radius
        A number >= 0, or the name of a rule by which an estimator chooses it: "auto" is
        cross-validation, "profile" a quantile of the score at the best policy (95 % coverage,
        shrinking like 1/sqrt(rows)), "paper" the paper's Corollary, which does not hold.
    order
        p, 1 or 2.
    outcome_cost
        kappa > 0, the transport cost of moving the outcome by one unit. Infinite: only contexts move.
    support
        A ``Box`` that moved samples may not leave; None is all of space.
    frozen
        Columns (names or positions) that never move: categories, calendar flags.
    scale
        True: distances are measured in standard deviations of each column, so that one radius
        means the same for every column. False: in the user's own units. Numbers: in these units,
        one for each column.
    adversary
        Of several products under a linear policy: "each" has one of its own, or all face a "joint"
        one. "auto" is "joint" where the default solver proves that (order 2, no support, costs of at
        most 1,024 lines together), and "each" elsewhere. One product, and products under any other
        policy, face one adversary.

    Examples
    --------
    >>> WassersteinBall(0.3)  # doctest: +NORMALIZE_WHITESPACE
    WassersteinBall(radius=0.3, order=2, outcome_cost=inf, support=None, frozen=(), scale=True,
                    adversary='auto')
    >>> WassersteinBall(-1.0)
    Traceback (most recent call last):
    surefoot.exceptions.InvalidInputError: radius must be >= 0, got -1.0.
    """

    rules: ClassVar[tuple[str, ...]] = RADIUS_RULES

    radius: float | str
    order: int = 2
    outcome_cost: float = math.inf
    support: Box | None = None
    frozen: Sequence[str | int] = ()
    scale: bool | Sequence[float] = True
    adversary: str = "auto"

    def __post_init__(self) -> None:
        """Check every option by name."""
        self.check_radius()
        object.__setattr__(self, "order", int(check_choice("order", self.order, (1, 2))))
        kappa = check_number("outcome_cost", self.outcome_cost, above=0, finite=False)
        object.__setattr__(self, "outcome_cost", kappa)
        if self.support is not None:
            check_instance("support", self.support, Box, "a Box or None")
        object.__setattr__(self, "frozen", plain_columns(self.frozen))
        object.__setattr__(self, "scale", _scale(self.scale))
        check_choice("adversary", self.adversary, ADVERSARIES)

    def on_columns(self, kept: IntArray) -> Self:
        """Return the ball on some of the columns, of which none is frozen."""
        scale = self.scale if isinstance(self.scale, bool) else tuple(self.scale[j] for j in kept)
        return replace(super().on_columns(kept), scale=scale)

    def column_scale(self, spread: FloatArray) -> FloatArray:
        """Return the unit of each column: its standard deviation, one, or as given."""
        if isinstance(self.scale, bool):
            return np.where(spread > 0.0, spread, 1.0) if self.scale else np.ones(len(spread))
        if len(self.scale) != len(spread):
            raise InvalidInputError(
                f"scale must have one number per column ({len(spread)}), got {len(self.scale)}."
            )
        return np.array(self.scale)

    def movable(self, spread: FloatArray, names: Sequence[str] | None) -> BoolArray:
        """Return the columns that are not frozen nor, if moves are measured in spreads, constant."""
        free = ~self.frozen_columns(len(spread), names)
        return free & (spread > 0.0) if self.scale is True else free

    def fitted(self, scale: FloatArray, movable: BoolArray) -> Self:
        """Return the ball with the units and the columns that a fit has found."""
        frozen = tuple(np.flatnonzero(~movable).tolist())
        return replace(self, scale=tuple(scale.tolist()), frozen=frozen)

    def form(self, rows: AffineRows, movable: BoolArray) -> "WassersteinForm":
        """Return rows with the ball around them, in their units."""
        n_columns = len(rows.scale)
        lower, upper = np.full(n_columns, -np.inf), np.full(n_columns, np.inf)
        low, high = -math.inf, math.inf
        if self.support is not None:
            lower, upper = (bound / rows.scale for bound in self.support.arrays(n_columns))
            low, high = self.support.outcome
        share = rows.outcome_unit / rows.column_unit
        return WassersteinForm(
            **{field.name: getattr(rows, field.name) for field in fields(AffineRows)},
            movable=movable, radius=self.size / rows.column_unit, order=self.order,
            outcome_cost=self.outcome_cost * (share if self.order == 1 else share**2),
            lower=lower, upper=upper,
            outcome_lower=low / rows.outcome_unit - rows.offsets,
            outcome_upper=high / rows.outcome_unit - rows.offsets,
        )  # fmt: skip


class WassersteinForm(TransportForm, AffineForm):
    """Rows of one product in a Wasserstein ball, with exact worst cases and bounds."""

    def worst_value(self, theta: FloatArray, intercept: float) -> tuple[float, float]:
        """Return the worst-case expected cost of a policy and the multiplier that attains it."""
        return worst_value(self, theta, intercept)

    def adversary(self, theta: FloatArray, intercept: float) -> Adversary:
        """Return the worst distribution for a policy, as atoms that respect the budget."""
        return adversary(self, theta, intercept)

    def lower_bound(self, slopes: FloatArray | Plan) -> float:
        """Return what the slopes, or a plan, prove: no policy has a smaller worst case."""
        return max(self.pieces.least, lower_bound(self, slopes) - self.unresolved)

    @cached_property
    def unresolved(self) -> float:
        """What columns without a penalty that differ in their last digits alone could gain."""
        return left_out(self, unpenalised(self))

    @property
    def tight(self) -> bool:
        """A smoothed cost is bounded through some of its tangents, order 1 in a box by reweighting.

        In a box, more than two lines are bounded through whole sets of lines, without mixtures.
        """
        free = not self.boxed or (self.order == 2 and self.pieces.two)
        return self.pieces.smoothing == 0.0 and free and self.unresolved == 0.0

    def at_radius(self, radius: float) -> Self:
        """Return the form at another radius, in units of the ball."""
        radius = radius / self.column_unit
        if radius == self.radius:
            return self
        form = replace(self, radius=radius)
        # Whoever looks for a radius asks many times: what rows and cost alone decide is kept.
        form.__dict__.update({name: self.__dict__[name] for name in KEPT if name in self.__dict__})
        return form

    def collapse_radius(self) -> float:
        """Return the radius, in units of the ball, from which on the best policy is constant."""
        return self.largest_radius * self.column_unit
