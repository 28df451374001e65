"""Contamination: a share of the rows may be anything."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from surefoot.ambiguity.balance import balanced, balanced_value, left_out, with_mean
from surefoot.ambiguity.base import AmbiguitySet
from surefoot.ambiguity.form import Adversary, AffineForm, AffineRows
from surefoot.exceptions import InvalidInputError
from surefoot.io import register
from surefoot.sets import Box
from surefoot.typing import BoolArray, FloatArray
from surefoot.validation import check_instance

# Halvings of the share of the slopes that can be kept, and of the shares on the two steepest lines.
HALVINGS, MIXTURES = 40, 33
# Up to this share what the other rows prove by themselves is worth a look.
SMALL_SHARE = 0.01


@register
@dataclass(frozen=True)
class Contamination(AmbiguitySet):
    r"""All distributions that agree with the nominal but for a share of their mass.

    .. math:: \{(1 - \epsilon) Q + \epsilon R : R \text{ anywhere in the support}\}

    This is Huber's neighbourhood: each of them is within total variation :math:`\epsilon` of Q. For
    gross errors: a typed digit too many, a broken sensor, an unrecorded sale.

    Parameters
    ----------
    radius
        epsilon in [0, 1): the share of rows that may be anything; "auto" has an estimator choose it by
        cross-validation.
    support
        A ``Box`` with finite bounds on contexts and ``outcome=(lower, upper)``; None is the range of
        the data.

    Examples
    --------
    >>> from surefoot import Problem, DASGD
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> rows = Empirical([[0.0], [1.0], [2.0], [3.0]], [1.0, 2.0, 2.5, 4.0])
    >>> problem = Problem(Newsvendor(1.0, 0.2), Linear(), rows, Contamination(0.1))
    >>> DASGD().solve(problem).converged
    True

    References
    ----------
    Huber (1964), "Robust estimation of a location parameter", Ann. Math. Statist. 35.
    """

    rules: ClassVar[tuple[str, ...]] = ("auto",)

    radius: float | str
    support: Box | None = None

    def __post_init__(self) -> None:
        self.check_radius()
        if not isinstance(self.radius, str) and not self.radius < 1.0:
            raise InvalidInputError(f"radius must be < 1, a share of the rows, got {self.radius}.")
        if self.support is not None:
            check_instance("support", self.support, Box, "a Box or None")

    def movable(self, spread: FloatArray, names: Sequence[str] | None) -> BoolArray:
        """Return all columns: a row that may be anything may be so in each of them."""
        del names
        return np.ones(len(spread), dtype=bool)

    def form(self, rows: AffineRows, movable: BoolArray) -> "ContaminationForm":
        """Return rows with the set around them, in their units."""
        del movable
        lower, upper = rows.contexts.min(axis=0), rows.contexts.max(axis=0)
        low, high = float(rows.outcomes.min()), float(rows.outcomes.max())
        if self.support is not None:
            lower, upper = (bound / rows.scale for bound in self.support.arrays(len(rows.scale)))
            # With an offset an outcome anywhere is an error anywhere between these.
            low = self.support.outcome[0] / rows.outcome_unit - float(rows.offsets.max())
            high = self.support.outcome[1] / rows.outcome_unit - float(rows.offsets.min())
        if not np.isfinite([*lower, *upper, low, high]).all():
            raise InvalidInputError(
                "support must have finite bounds on every column and outcome=(lower, upper) where rows "
                f"may be anything, got {self.support!r}."
            )
        return ContaminationForm(
            **{field.name: getattr(rows, field.name) for field in fields(AffineRows)},
            share=self.size, lower=lower, upper=upper, outcome_bounds=(low, high),
        )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class ContaminationForm(AffineForm):
    """Rows of one product of which a share may be anything in a box.

    Attributes
    ----------
    share
        epsilon.
    lower, upper, outcome_bounds
        The support.
    """

    share: float
    lower: FloatArray
    upper: FloatArray
    outcome_bounds: tuple[float, float]

    def adversary(self, theta: FloatArray, intercept: float) -> Adversary:
        """Return the rows that stay, and the worst point of the support with the rest of the mass."""
        costs = self.pieces.evaluate(self.residuals(theta, intercept))
        context, outcome, worst = self._worst_point(theta, intercept)
        kept = (1.0 - self.share) * self.weights
        value = float(kept @ costs) + self.share * worst
        rows = np.flatnonzero(kept > 0.0)
        moved = self.share > 0.0
        away = np.full(int(moved), -1, dtype=np.int64)
        return Adversary(
            value=value,
            expected_cost=value,
            multiplier=np.array([worst - float(kept @ costs) / max(float(kept.sum()), 1e-300)]),
            transport_cost=np.array([self.share]),
            rows=np.concatenate([rows, away]),
            products=np.zeros(len(rows) + len(away), dtype=np.int64),
            contexts=np.vstack([self.contexts[rows], *[context] * len(away)]),
            outcomes=np.append(self.outcomes[rows], [outcome] * len(away)),
            weights=np.append(kept[rows], [self.share] * len(away)),
            distances=np.append(np.zeros(len(rows)), np.ones(len(away))),
        )

    def _worst_point(self, theta: FloatArray, intercept: float) -> tuple[FloatArray, float, float]:
        """Return the context and outcome of the support that cost most, and their cost."""
        low, high = self.outcome_bounds
        best: tuple[FloatArray, float, float] = (self.lower, low, -np.inf)
        for slope, level in zip(self.pieces.slopes, self.pieces.intercepts, strict=True):
            context = np.where(slope * theta > 0.0, self.upper, self.lower)
            outcome = low if slope > 0.0 else high
            cost = slope * (float(context @ theta) + intercept - outcome) + level
            if cost > best[2]:
                best = (context, outcome, cost)
        # A smoothed cost lies above its lines.
        residual = np.array([float(best[0] @ theta) + intercept - best[1]])
        return best[0], best[1], max(best[2], float(self.pieces.evaluate(residual)[0]))

    def lower_bound(self, slopes: FloatArray) -> float:
        """Return what slopes prove: no policy has a smaller worst case.

        Rows sit on lines of mean slope u_i, the contaminating mass on the two steepest lines at points
        of the box. If no policy gains to first order, E[w (x', 1)] = 0, no policy costs less than
        E[v] - E[w y']. Slopes are shrunk until such points exist; at zero slopes they do.
        """
        inside = np.clip(slopes, -self.pieces.down, self.pieces.up)
        if self.share <= SMALL_SHARE:
            # The mass that stays costs no less than without the other, which costs the least there is.
            still = balanced_value(self, balanced(self, inside, self.contexts)) - self.unresolved
            least = max(self.pieces.least, (1.0 - self.share) * still + self.share * self.pieces.least)
            if self.share == 0.0:
                return least
        else:
            least = self.pieces.least
        proved = max(self._bound(inside, share_up) for share_up in self._mixtures(inside))
        return max(least, proved)

    def _mixtures(self, slopes: FloatArray) -> FloatArray:
        """Return shares of the contaminating mass on the upper line that are worth a trial."""
        up, down = self.pieces.up, self.pieces.down
        grid = np.linspace(0.0, 1.0, MIXTURES)
        if not self.intercept or self.share == 0.0:
            return grid
        # With a free intercept the mean slope of all mass is zero...
        mean = -(1.0 - self.share) * float(self.weights @ slopes) / self.share
        shares = np.append(grid, (mean + down) / (up + down))
        # ...and no row has a steeper slope than the lines, so not every share can be balanced.
        least = (down - (1.0 - self.share) * up / self.share) / (up + down)
        most = down / (self.share * (up + down))
        return np.asarray(np.clip(shares, max(least, 0.0), min(most, 1.0)))

    def _bound(self, slopes: FloatArray, share_up: float) -> float:
        """Return the bound for a mixture of the contaminating mass, with slopes shrunk to fit it."""
        up, down = self.pieces.up, self.pieces.down
        if self.intercept:
            wanted = -self.share * (share_up * up - (1.0 - share_up) * down) / (1.0 - self.share)
            slopes = with_mean(slopes, self.weights, (-down, up), wanted)
        low, high = 0.0, 1.0
        if self._feasible(slopes, share_up):
            low = 1.0
        for _ in range(HALVINGS if low < 1.0 else 0):
            middle = 0.5 * (low + high)
            fits = self._feasible(*self._shrunk(slopes, share_up, middle))
            low, high = (middle, high) if fits else (low, middle)
        kept, mixture = self._shrunk(slopes, share_up, low)
        if not self._feasible(kept, mixture):
            return -np.inf
        lines = np.asarray(self.pieces.slopes), np.asarray(self.pieces.intercepts)
        levels = self.pieces.levels_at(kept)
        rows = float(self.weights @ (levels - kept * self.outcomes))
        low_y, high_y = self.outcome_bounds
        point = mixture * (lines[1][-1] - up * low_y) + (1.0 - mixture) * (lines[1][0] + down * high_y)
        return float((1.0 - self.share) * rows + self.share * point)

    def _shrunk(self, slopes: FloatArray, share_up: float, kept: float) -> tuple[FloatArray, float]:
        """Return slopes times a share, with the mixture that keeps the mean slope in balance."""
        up, down = self.pieces.up, self.pieces.down
        balanced = down / (up + down)
        return kept * slopes, balanced + kept * (share_up - balanced)

    def _feasible(self, slopes: FloatArray, share_up: float) -> bool:
        """Whether points of the box balance the slopes, column by column."""
        up, down = self.pieces.up, self.pieces.down
        need = -(1.0 - self.share) * (self.weights * slopes) @ self.contexts
        rise, fall = self.share * share_up * up, self.share * (1.0 - share_up) * down
        least, most = rise * self.lower - fall * self.upper, rise * self.upper - fall * self.lower
        slack = 1e-12 * (np.abs(least) + np.abs(most) + np.abs(need))
        return bool(((need >= least - slack) & (need <= most + slack)).all())

    @property
    def tight(self) -> bool:
        """The contaminating mass sits on the two steepest lines, which are all there are of two."""
        return self.pieces.two and self.pieces.smoothing == 0.0 and self.unresolved == 0.0

    @cached_property
    def unresolved(self) -> float:
        """What columns that differ in their last digits alone could gain beside so small a share."""
        return left_out(self, self.contexts) if self.share <= SMALL_SHARE else 0.0

    def at_radius(self, radius: float) -> Self:
        """Return the form at another share."""
        return replace(self, share=radius)

    def collapse_radius(self) -> float:
        """Return the share of which useful ones are shares: half of the rows."""
        return 0.5
