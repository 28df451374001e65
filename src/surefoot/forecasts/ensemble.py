r"""Members that decide in different ways, averaged by what they would have cost: the default.

Each member's decisions on rows that it had not seen (honest decisions) are there for every row, and so
are those of their average, with weights from other rows. The average is the convex combination w that
minimises

.. math:: n \log \mathrm{mean\ cost}(H w) + \lambda \, KL(w \| w_0)

over the honest decisions H: few rows leave the weights near w_0, many let the data speak, and so does
a member whose errors are a small share of the others'. Up to a constant the first part is minus the
logarithm of the likelihood of outcomes whose errors have a density like exp(-cost), of the scale that
suits them best. Contexts are cut near what was seen, and decisions near the outcomes seen; beyond, they
follow the outcome's own past, or a line that hardly errs. Rows that look like errors are left out and
named. In columns with long tails lines may go on. Where rows are in order of time, H holds decisions on
later rows, learned from earlier ones, too.
"""

from dataclasses import dataclass, replace

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
from surefoot.forecasts.later_rows import LaterRows, Occurrences, later_rows
from surefoot.forecasts.outside import decision_bounds, following, is_sure, lined, pasts, staying
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.stack import Member, Stack
from surefoot.io import register
from surefoot.random import rng_for
from surefoot.typing import BoolArray, FloatArray, IntArray

# Members learn from so many rows at most; more do not change what they say.
MOST_ROWS = 20_000
# Rows with less than this share of the largest mass say nothing.
NEGLIGIBLE = 1e-6
# The weight of the plain forecast before any data, and how strongly weights are held there.
FIRST_WEIGHT, HOLD = 0.25, 6.0
STEPS = 300
# The unit of cost is that of the average itself, found in so many rounds at most: until it stays above
# this share of what it was.
MOST_UNITS, SETTLED = 4, 0.98
# Contexts may lie outside what was seen by this share of its range, or by a few gaps between rows
# if they are few. They are called far, which warns, from a whole range on.
MARGIN, GAPS = 0.05, 1.0
FAR_MARGIN, FAR_GAPS = 1.0, 20.0
# Decisions on a later row count so many times: half of the rows, if not of one time, are later ones.
TIMES_LATER = 2.0
# Columns that rise with the outcome go with its past to a new level if that costs later rows this
# share.
CLEARLY = 0.9
# A shift is rehearsed with so many draws for each row, and weights answer the worst so many times.
REHEARSALS, TURNS = 8, 5


@register
@dataclass(frozen=True)
class Ensemble:
    """How the default decides.

    Parameters
    ----------
    protect
        A shift of contexts, in standard deviations of each column, that decisions are rehearsed for:
        every row is decided under contexts that have moved in several ways, and members are weighed
        by the most costly one of each row; nothing is followed outside what was seen. Zero takes the
        data as they are.

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
        lagged: BoolArray | None = None,
        occurrences: Occurrences | None = None,
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
        lagged
            Columns known to hold outcomes of earlier rows; None is none.
        occurrences
            When each row was, None where that is not known. Nothing is asked of it where a shift is
            rehearsed.
        """
        n = len(outcomes)
        masses = np.ones(n) if masses is None else masses
        some = np.flatnonzero(masses > NEGLIGIBLE * masses.max())
        if len(some) < n:
            part = contexts[some], outcomes[some], masses[some]
            when = None if occurrences is None else occurrences.among(some, n)
            return self.fit(*part, pieces, seed, frozen, lagged, when).among(some)
        clean = cleaned(contexts, outcomes)
        kept = clean.kept
        if len(kept) > MOST_ROWS:
            kept = np.sort(rng_for(seed, "ensemble").choice(kept, MOST_ROWS, replace=False))
        # Trees draw rows by their place, which must not depend on other products.
        kept = kept[np.argsort(outcomes[kept], kind="stable")]
        rows = Rows.of(clean.contexts[kept], clean.outcomes[kept], masses[kept])
        margins = max(MARGIN, GAPS / n), max(FAR_MARGIN, FAR_GAPS / n)
        bounds = decision_bounds(clean.outcomes[kept])
        past, lags = pasts(rows, lagged)
        tried = candidates(rows, pieces, seed, past, constant=self.protect > 0.0)
        members = [one.member(one.constant(rows, rows.masses, pieces)) for one in tried]
        parts = fold_masses(rows, seed)
        honest = np.clip(honest_decisions(tried, rows, parts, pieces), *bounds)[None]
        later = None
        if self.protect > 0.0:
            honest = np.clip(honest + self._rehearsed(rows, members, seed, frozen), *bounds)
        elif occurrences is not None:
            when = occurrences.among(kept, n)
            later = later_rows(rows, when, lagged, members, margins, pieces, seed)
        record = _Record(rows, honest, pieces)
        if later is not None:
            record = record.beside(later)
        stack = Stack(
            tuple(members), record.weights(rows.masses), clean.least, clean.most, *margins, *bounds,
            trend=None,
        )  # fmt: skip
        if self.protect == 0.0:  # to follow contexts is what protection is against
            stack = following(stack, rows, past, lags, tried[1], pieces)
            scores = tried[1].scores
            sure = scores is not None and is_sure(rows, past, lags, scores)
            stack = record.outside(stack, sure=sure)
        decided = by_others(parts, lambda masses: np.asarray(honest[0] @ record.weights(masses)))
        return HonestStack(stack, decided, kept, clean.suspects)

    def _rehearsed(
        self, rows: Rows, members: list[Member], seed: int, frozen: BoolArray | None
    ) -> FloatArray:
        """Return how far decisions move when contexts do, shape (rehearsals, rows, members).

        Contexts stay in the first, all move in the direction in which decisions rise most and in the
        opposite one in the next two, and each row moves at random in the others.
        """
        rng = rng_for(seed, "rehearsals")
        spread = np.where(np.isfinite(rows.spread), rows.spread, 0.0)
        if frozen is not None:
            spread = np.where(frozen, 0.0, spread)
        before = np.column_stack([member(rows.contexts) for member in members])
        standard = (rows.contexts - rows.mean) / np.where(spread > 0.0, spread, np.inf)
        middle = before.mean(axis=1)
        slope = np.linalg.lstsq(standard, middle - middle.mean(), rcond=None)[0]
        along = slope / (float(np.linalg.norm(slope)) or 1.0)
        ways = [along, -along, *rng.standard_normal((REHEARSALS, *rows.contexts.shape))]
        moves = [np.zeros_like(before)]
        for way in ways:
            moved = rows.contexts + self.protect * spread * way
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

    def among(self, some: IntArray) -> "HonestStack":
        """Return the same, of rows that were some of others."""
        suspects = tuple(one._replace(row=int(some[one.row])) for one in self.suspects)
        return replace(self, kept=some[self.kept], suspects=suspects)


@dataclass(frozen=True, eq=False)
class _Record:
    """What members decided on rows that they had not seen.

    Attributes
    ----------
    rows
        What they learned from.
    decisions
        Shape (ways, rows, members): of each row, and of later ones.
    pieces
        The cost.
    later
        The later ones; None is none.
    stays
        Whether columns that rise with the outcome stayed in decisions on these while its past moved.
    """

    rows: Rows
    decisions: FloatArray
    pieces: Pieces
    later: LaterRows | None = None
    stays: bool = False

    def beside(self, later: LaterRows) -> "_Record":
        """Return the record with later rows; columns stay where they are unless it pays to move."""
        moved, stayed = (
            replace(self, decisions=np.concatenate([self.decisions, told[None]], axis=1), later=later)
            for told in (later.moved, later.stayed)
        )
        costs = [
            float(later.masses @ one._later_costs(one._later_decisions())) for one in (moved, stayed)
        ]
        return moved if costs[0] < CLEARLY * costs[1] else replace(stayed, stays=True)

    def outside(self, stack: Stack, *, sure: bool) -> Stack:
        """Return a stack that follows the past as suits later rows, or a line if that is sure.

        The line must not have cost later rows outside more than what is followed otherwise.
        """
        stack = staying(stack) if self.stays else stack
        if not sure:
            return stack
        if self.later is not None:
            out = np.isfinite(self.later.lined)
            line, otherwise = (
                self.later.masses[out] @ self._later_costs(decided)[out]
                for decided in (self.later.lined, self._later_decisions())
            )
            if line > otherwise:
                return stack
        return lined(stack, self.rows)

    def _later_decisions(self) -> FloatArray:
        """Return the average decision on each later row."""
        told = self.decisions[0, len(self.rows.outcomes) :]
        return np.asarray(told @ self.weights(self.rows.masses))

    def _later_costs(self, decided: FloatArray) -> FloatArray:
        """Return what decisions on later rows cost."""
        assert self.later is not None
        return self.pieces.evaluate(decided - self.rows.outcomes[self.later.places])

    def weights(self, masses: FloatArray) -> FloatArray:
        """Return the weights of members if rows have these masses, some of which may be zero."""
        count, outcomes = self.rows.observations(masses), self.rows.outcomes
        if self.later is not None:
            places = self.later.places
            shares = masses[places] / self.rows.masses[places]
            outcomes = np.append(outcomes, outcomes[places])
            masses = np.append(masses, TIMES_LATER * shares * self.later.masses)
        some = masses > 0.0
        return worst_weights(self.decisions[:, some], outcomes[some], masses[some], self.pieces, count)


def worst_weights(
    honest: FloatArray, outcomes: FloatArray, masses: FloatArray, pieces: Pieces, count: float
) -> FloatArray:
    """Return weights that are good for the most costly of several decisions on each row.

    Weights and the most costly decisions answer each other in turns; shares of decisions are averaged
    over turns (fictitious play), so that they settle.

    Parameters
    ----------
    honest
        Shape (decisions, rows, members).
    outcomes, masses, pieces, count
        As ``stack_weights`` takes them.
    """
    ways, flat = len(honest), honest.reshape(-1, honest.shape[2])
    told = np.tile(outcomes, ways)
    shares = np.tile(masses / ways, (ways, 1))
    weights = stack_weights(flat, told, shares.ravel(), pieces, count)
    for turn in range(TURNS if ways > 1 else 0):
        costs = pieces.evaluate(honest @ weights - outcomes)
        worst = costs == costs.max(axis=0)
        answer = masses * worst / worst.sum(axis=0)
        shares = shares + (answer - shares) / (turn + 1)
        weights = stack_weights(flat, told, shares.ravel(), pieces, count)
    return weights


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
    shares, weights, unit = masses / masses.sum(), prior, np.inf
    decisions, slopes = np.ascontiguousarray(honest), np.array(pieces.slopes)
    for _ in range(MOST_UNITS):
        mean = float(shares @ pieces.evaluate(honest @ weights - outcomes))
        if mean == 0.0 or mean > SETTLED * unit:
            break
        unit = mean
        weights = np.asarray(
            exponentiated_gradient(
                decisions, outcomes, shares, slopes, pieces.kinks, prior, count / unit / HOLD, STEPS
            )
        )
    return weights
