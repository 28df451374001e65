r"""Costs that differ by row: a policy for each of a few cost ratios, and decisions between them.

Row i pays b_i for a unit short and h_i for a unit left over. With the stake s_i = b_i + h_i and the
ratio r_i = b_i / s_i that is

.. math:: c_i(z, y) = s_i \, \bigl( r_i (y - z)^+ + (1 - r_i) (z - y)^+ \bigr)

The stake says how much the row matters, so it is a weight. The ratio says which quantile of the outcome
is the best decision, so that one policy cannot serve two ratios. Policies are learned at a few levels
of the ratio, each from all rows. Their decisions on a row are put in rising order, so that a dearer
shortage never orders less; that brings them no farther from the true quantiles (Chernozhukov,
Fernandez-Val and Galichon 2010). In between, decisions are linear in the normal quantile of the ratio,
which is exact where errors are normal. One linear policy of context and ratio was rejected: quantiles
far out are not linear in the ratio, and the order need not rise with it.
"""

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from surefoot.estimators.decision_maker import DecisionMaker
from surefoot.estimators.inputs import like_contexts
from surefoot.exceptions import DataWarning, InvalidInputError, warn_user
from surefoot.typing import FloatArray
from surefoot.validation import numeric_array

# More ratios than this are decided on between as many levels; a fit takes its time at each.
MOST_LEVELS = 7
# Ratios (and stakes) that differ by less than this share are the same up to rounding.
SAME = 1e-9


@dataclass(frozen=True, eq=False)
class RowCosts:
    """What a unit short and a unit left over cost in each row, both of shape (rows,)."""

    backorder: FloatArray
    holding: FloatArray

    @classmethod
    def of(cls, backorder: Any, holding: Any, usual: tuple[Any, Any], rows: int) -> "RowCosts":
        """Return checked costs; one that is None is the usual one, in every row.

        >>> RowCosts.of([1.0, 3.0], None, (9.0, 1.0), rows=2).ratios
        array([0.5 , 0.75])
        """
        named = zip(("backorder", "holding"), (backorder, holding), usual, strict=True)
        return cls(*(_column(name, other if own is None else own, rows) for name, own, other in named))

    @property
    def stakes(self) -> FloatArray:
        """How much each row matters: b + h."""
        return self.backorder + self.holding

    @property
    def ratios(self) -> FloatArray:
        """Which quantile of the outcome is the best decision: b / (b + h)."""
        return self.backorder / self.stakes

    def masses(self, masses: FloatArray) -> FloatArray:
        """Return weights that count stakes, with the sum of the weights given.

        Equal stakes leave whole weights whole: those count observations, which stakes never do.
        """
        stakes = self.stakes
        if stakes.max() - stakes.min() <= SAME * stakes.max():
            return masses
        return np.asarray(masses * stakes * (masses.sum() / float(masses @ stakes)))

    def best_constant(self, outcomes: FloatArray) -> float:
        """Return the constant decision of least cost, the smallest if there are several.

        >>> RowCosts.of([1.0, 1.0, 9.0], 1.0, (None, None), 3).best_constant(np.array([1.0, 2.0, 5.0]))
        5.0
        """
        order = np.argsort(outcomes, kind="stable")
        reached = np.cumsum(self.stakes[order]) >= self.backorder.sum() * (1.0 - SAME)
        return float(outcomes[order][int(np.argmax(reached))])

    def evaluate(self, decisions: FloatArray, outcomes: FloatArray) -> FloatArray:
        """Return what each decision costs, shape (rows,)."""
        short = np.maximum(outcomes - decisions, 0.0)
        left = np.maximum(decisions - outcomes, 0.0)
        return np.asarray(self.backorder * short + self.holding * left)

    def mean(self, decisions: FloatArray, outcomes: FloatArray, weights: FloatArray) -> float:
        """Return the mean cost of decisions; weights sum to one."""
        return float(weights @ self.evaluate(decisions, outcomes))


def _column(name: str, values: Any, rows: int) -> FloatArray:
    """Return a cost of each row, positive and finite; a number is that of all rows."""
    array = numeric_array(name, values)
    if array.ndim == 0:
        array = np.full(rows, float(array))
    if array.shape != (rows,):
        raise InvalidInputError(
            f"{name} must be a number or one for each row of X ({rows}), got shape {array.shape}."
        )
    wrong = np.flatnonzero(~((array > 0.0) & np.isfinite(array)))
    if len(wrong):
        row = int(wrong[0])
        raise InvalidInputError(f"{name} must be > 0 and finite, got {array[row]:g} in row {row}.")
    return array


def cost_levels(ratios: FloatArray) -> FloatArray:
    """Return the ratios to learn policies at: all there are if they are few, else evenly spread ones.

    >>> cost_levels(np.array([0.8, 0.5, 0.8]))
    array([0.5, 0.8])
    >>> len(cost_levels(np.linspace(0.5, 0.9, 40)))
    7
    """
    levels = np.unique(ratios)
    levels = np.asarray(levels[np.concatenate([[True], np.diff(levels) > SAME])])
    if len(levels) <= MOST_LEVELS:
        return levels
    # Evenly in normal quantiles, between which decisions are interpolated: ends stay as they are.
    scores = np.asarray(ndtri(levels), dtype=np.float64)
    reached = np.linspace(float(scores[0]), float(scores[-1]), MOST_LEVELS)
    return np.asarray(np.interp(reached, scores, levels), dtype=np.float64)


def within_levels(ratios: FloatArray, levels: FloatArray) -> FloatArray:
    """Return ratios cut to those learned at, with a warning where that changes one."""
    least, most = levels[0], levels[-1]
    outside = (ratios < least - SAME) | (ratios > most + SAME)
    if outside.any():
        learned = f"{least:.4g}" if least == most else f"{least:.4g} to {most:.4g}"
        warn_user(
            f"{int(outside.sum())} of {len(ratios)} rows have a cost ratio b / (b + h) outside those "
            f"of fit ({learned}), such as {ratios[outside][0]:.4g} in row {int(outside.argmax())}: "
            "they are decided on at the nearest.",
            DataWarning,
        )
    return np.clip(ratios, least, most)


def between_levels(decisions: FloatArray, ratios: FloatArray, levels: FloatArray) -> FloatArray:
    """Return decisions at ratios, between those at levels: shape (rows, levels) to (rows,).

    Decisions that fall from a level to the next are put in rising order first.

    >>> between_levels(np.array([[8.0, 0.0]]), np.array([0.5]), np.array([0.3, 0.7])).round(12)
    array([4.])
    """
    decisions = np.sort(decisions, axis=1)
    if len(levels) == 1:
        return decisions[:, 0]
    reached, grid = ndtri(ratios), ndtri(levels)
    above = np.clip(np.searchsorted(grid, reached), 1, len(levels) - 1)
    share = np.clip((reached - grid[above - 1]) / (grid[above] - grid[above - 1]), 0.0, 1.0)
    rows = np.arange(len(decisions))
    low, high = decisions[rows, above - 1], decisions[rows, above]
    return np.asarray((1.0 - share) * low + share * high)


@contextmanager
def warned_once() -> Iterator[None]:
    """Let what each level would say be said once."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        yield
    for text, category in dict.fromkeys((str(one.message), one.category) for one in caught):
        warn_user(text, category)


class DecidesByRowCosts(DecisionMaker):
    """A decision maker whose rows may each have costs of their own."""

    @abstractmethod
    def predict(self, X: Any, backorder: Any = None, holding: Any = None) -> FloatArray:
        """Return decisions, each at the cost ratio of its row."""

    @abstractmethod
    def cost(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        backorder: Any = None,
        holding: Any = None,
    ) -> float:
        """Return the mean realised cost of the decisions, summed over products."""

    def decide(self, X: Any, backorder: Any = None, holding: Any = None) -> Any:
        """Return the decisions of ``predict``, as a frame or series where X is one.

        Parameters
        ----------
        X
            Contexts; a pandas or polars frame gives decisions of its kind, with its index, named
            after the outcomes of the fit.
        backorder, holding
            Costs of a unit in each row, if the model learned from such.
        """
        return like_contexts(X, self.predict(X, backorder, holding), self._named_outcomes())

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        backorder: Any = None,
        holding: Any = None,
    ) -> float:
        """Return minus the mean realised cost, so that bigger is better."""
        return -self.cost(X, y, sample_weight, backorder=backorder, holding=holding)


def refuse_levels(model: Any, asked: str) -> None:
    """Refuse what only a single policy can answer, where there is one for each cost ratio.

    Decisions between the policies of two ratios are no policy of the problem that either was learned
    from, so that a certificate, a worst case or a stream of the whole would speak of neither.
    """
    if "levels_" in vars(model):
        raise InvalidInputError(
            f"{asked} must have one policy to speak of, got one for each cost ratio: ask the policies "
            "in levels_, whose ratios are cost_levels_."
        )


def joint_outcome(levels: Sequence[Any]) -> tuple[bool | None, str, int]:
    """Return whether the fits at all levels converged, in what words, and in how many steps."""
    states = [level.converged_ for level in levels]
    converged = False if False in states else None if None in states else True
    first = next(k for k, state in enumerate(states) if state is converged)
    many = f"A policy for each of {len(levels)} cost ratios" if len(levels) > 1 else "One cost ratio"
    status = f"{many}, see levels_; number {first}: {levels[first].status_}"
    return converged, status, sum(level.n_steps_ for level in levels)


def told_costs(model: Any, backorder: Any, holding: Any) -> dict[str, Any]:
    """Return the costs of rows that were given, for a model that can take them."""
    given = {"backorder": backorder, "holding": holding}
    costs = {name: value for name, value in given.items() if value is not None}
    if costs and not isinstance(model, DecidesByRowCosts):
        raise InvalidInputError(
            f"{next(iter(costs))} must be None for a model other than RobustNewsvendor, whose costs "
            f"are its own, got values beside {type(model).__name__}."
        )
    return costs
