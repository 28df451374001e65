r"""Members that decide in different ways, averaged by what they would have cost: the default.

Each member's decisions on rows that it had not seen (honest decisions) are there for every row, and so
are those of their average, with weights from other rows. The average is the convex combination w that
minimises

.. math:: \frac{n}{\sigma} \, \mathrm{mean\ cost}(H w) + \lambda \, KL(w \| w_0)

over the honest decisions H, with sigma the standard deviation of the prior average's costs: few rows
leave the weights near w_0, many let the data speak. Contexts are cut near what was seen, and decisions
near the outcomes seen; beyond, they follow trends on which parts of the rows agree. Rows that look like
errors are left out and named.
"""

import math
from dataclasses import dataclass

import numpy as np

from surefoot.costs import Pieces
from surefoot.engines.weight_kernel import exponentiated_gradient
from surefoot.forecasts.candidates import (
    by_others,
    candidates,
    fold_masses,
    honest_decisions,
)
from surefoot.forecasts.cleaning import Suspect, cleaned
from surefoot.forecasts.extrapolation import linear_trend
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.stack import Member, Stack
from surefoot.io import register
from surefoot.random import rng_for
from surefoot.typing import BoolArray, FloatArray, IntArray

# Members learn from so many rows at most; more do not change what they say.
MOST_ROWS = 20_000
# The weight of the plain forecast before any data, and how strongly weights are held there.
FIRST_WEIGHT, HOLD = 0.25, 10.0
STEPS = 300
# Contexts may lie outside what was seen by this share of its range, or by a few gaps between rows
# if they are few. They are called far, which warns, from a whole range on.
MARGIN, GAPS = 0.05, 1.0
FAR_MARGIN, FAR_GAPS = 1.0, 20.0
# Decisions may lie outside outcomes by so many ranges over the number of rows, one at most.
DECISION_GAPS = 20.0
# A shift is rehearsed with so many draws for each row.
REHEARSALS = 8


@register
@dataclass(frozen=True)
class Ensemble:
    """How the default decides.

    Parameters
    ----------
    protect
        A shift of contexts, in standard deviations of each column, that decisions are rehearsed for:
        every row is decided under contexts that have moved, and members, constants and weights are
        chosen by what that costs. Zero takes the data as they are.

    Examples
    --------
    >>> from surefoot.costs import Pieces
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=60, s=20, seed=0)
    >>> honest = Ensemble().fit(data.X, data.y, None, Pieces.kinked(up=0.2, down=1.0), seed=0)
    >>> honest.stack(data.X_test).shape, len(honest.decisions)
    ((10000,), 60)
    >>> honest.suspects
    ()
    """

    protect: float = 0.0

    def fit(
        self,
        contexts: FloatArray,
        outcomes: FloatArray,
        masses: FloatArray | None,
        pieces: Pieces,
        seed: int,
        frozen: BoolArray | None = None,
    ) -> "HonestStack":
        """Learn from rows, which should be distinct.

        Parameters
        ----------
        contexts, outcomes
            Shapes (n, s) and (n,).
        masses
            How often each row counts, or None for once each.
        pieces
            The cost.
        seed
            Of trees, samples and rehearsals.
        frozen
            Columns that do not move when a shift is rehearsed; None is none.
        """
        n = len(outcomes)
        masses = np.ones(n) if masses is None else masses
        clean = cleaned(contexts, outcomes)
        kept = clean.kept
        if len(kept) > MOST_ROWS:
            kept = np.sort(rng_for(seed, "ensemble").choice(kept, MOST_ROWS, replace=False))
        # Trees draw rows by their place, which must not depend on other products.
        kept = kept[np.argsort(outcomes[kept], kind="stable")]
        rows = Rows.of(clean.contexts[kept], clean.outcomes[kept], masses[kept])
        margins = max(MARGIN, GAPS / n), max(FAR_MARGIN, FAR_GAPS / n)
        bounds = _decision_bounds(outcomes[kept])
        found = candidates(rows, pieces, seed, constant=self.protect > 0.0)
        members = [one.member(one.constant(rows, rows.masses, pieces)) for one in found]
        parts = fold_masses(rows, seed)
        honest = np.clip(honest_decisions(found, rows, parts, pieces), *bounds)[None]
        if self.protect > 0.0:
            honest = np.clip(honest + self._rehearsed(rows, members, seed, frozen), *bounds)

        def weighed(masses: FloatArray) -> FloatArray:
            some = masses > 0.0
            decided = honest[:, some].reshape(-1, len(members))
            y, shares = (np.tile(part[some], len(honest)) for part in (rows.outcomes, masses))
            return stack_weights(decided, y, shares, pieces, rows.observations(masses))

        weights = weighed(rows.masses)
        trend = linear_trend(rows, pieces, seed)
        stack = Stack(tuple(members), weights, clean.least, clean.most, *margins, *bounds, trend)
        decided = by_others(parts, lambda masses: np.asarray(honest[0] @ weighed(masses)))
        return HonestStack(stack, decided, kept, clean.suspects)

    def _rehearsed(
        self, rows: Rows, members: list[Member], seed: int, frozen: BoolArray | None
    ) -> FloatArray:
        """Return how far decisions move when contexts do, shape (rehearsals, rows, members)."""
        rng = rng_for(seed, "rehearsals")
        spread = np.where(np.isfinite(rows.spread), rows.spread, 0.0) * self.protect
        if frozen is not None:
            spread = np.where(frozen, 0.0, spread)
        before = np.column_stack([member(rows.contexts) for member in members])
        moves = []
        for _ in range(REHEARSALS):
            moved = rows.contexts + spread * rng.standard_normal(rows.contexts.shape)
            moves.append(np.column_stack([member(moved) for member in members]) - before)
        return np.stack(moves)


@dataclass(frozen=True, eq=False)
class HonestStack:
    """An average of members with what it decided on rows that it had not seen.

    Attributes
    ----------
    stack
        Learned from the rows that were kept.
    decisions
        One for each of the rows ``kept``.
    kept
        Which rows were learned from.
    suspects
        Numbers that look like errors.
    """

    stack: Stack
    decisions: FloatArray
    kept: IntArray
    suspects: tuple[Suspect, ...]


def _decision_bounds(outcomes: FloatArray) -> tuple[float, float]:
    """Return the least and the largest sensible decision; never negative where outcomes never were."""
    low, high = float(outcomes.min()), float(outcomes.max())
    room = (high - low) * min(DECISION_GAPS / len(outcomes), 1.0)
    return (max(low - room, 0.0) if low >= 0.0 else low - room), high + room


def stack_weights(
    honest: FloatArray, outcomes: FloatArray, masses: FloatArray, pieces: Pieces, count: float
) -> FloatArray:
    """Return the convex weights of members whose honest decisions have shape (rows, members)."""
    size = honest.shape[1]
    if size == 1:
        return np.ones(1)
    first = max(FIRST_WEIGHT, 1.0 / size)
    prior = np.full(size, (1.0 - first) / (size - 1))
    prior[0] = first
    shares = masses / masses.sum()
    costs = pieces.evaluate(honest @ prior - outcomes)
    deviation = math.sqrt(float(shares @ (costs - shares @ costs) ** 2))
    if deviation == 0.0:
        return prior
    slopes = np.array(pieces.slopes)
    strength = count / deviation / HOLD
    return np.asarray(
        exponentiated_gradient(
            np.ascontiguousarray(honest), outcomes, shares, slopes, pieces.kinks, prior, strength, STEPS
        )
    )
