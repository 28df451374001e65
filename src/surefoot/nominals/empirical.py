"""The empirical distribution of past pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.nominals.base import Nominal
from surefoot.nominals.shapes import column_names, count, settle, sizes
from surefoot.typing import ArrayLike, FloatArray, IntArray
from surefoot.validation import context_matrix, mass_vector, outcome_matrix

# Squares and costs of numbers up to this size are still numbers, and from this size on not yet zero.
LARGEST, SMALLEST = 1e100, 1e-100
# A column whose spread is this small a share of its size is constant but for rounding.
CONSTANT_COLUMN = 1e-12


def column_spread(contexts: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted standard deviation of each column, zero where it is only rounding."""
    largest = np.maximum(contexts.max(axis=0), -contexts.min(axis=0))
    size = np.ldexp(1.0, np.frexp(largest)[1])
    centred = contexts - weights @ contexts
    # Divided by a power of two, numbers keep their digits and squares neither overflow nor vanish.
    centred /= size
    spread = np.sqrt(np.einsum("i,ij,ij->j", weights, centred, centred))
    return np.where(spread > CONSTANT_COLUMN, spread * size, 0.0)


def _merge_equal_rows(
    contexts: FloatArray, outcomes: FloatArray, masses: FloatArray
) -> tuple[IntArray, FloatArray, IntArray]:
    """Order rows by value, join equal rows.

    Returns the rows that stay, the sums of their masses, and for each row which of them it is.

    Masses are the weights before they are scaled: whole numbers add up without rounding, so a row
    repeated k times and a row of weight k are the same thing to the last bit, and the order in which
    rows arrived is forgotten. Most data have distinct outcomes, and sorting one column settles
    those; only rows that share their outcome are compared whole.
    """
    order = np.argsort(outcomes[:, 0], kind="stable")
    first = outcomes[order, 0]
    tied = np.zeros(len(first), dtype=bool)
    tied[1:] |= first[1:] == first[:-1]
    tied[:-1] |= first[1:] == first[:-1]
    place = np.empty(len(order), dtype=np.int64)
    if not tied.any():
        place[order] = np.arange(len(order))
        return order, masses[order], place
    rows = order[tied]
    # Masses come last, so that those of equal rows are always added in one order.
    keys = np.column_stack([outcomes[rows], contexts[rows], masses[rows]])
    order[tied] = rows[np.lexsort(keys.T[::-1])]
    contexts, outcomes = contexts[order], outcomes[order]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (outcomes[1:] != outcomes[:-1]).any(axis=1) | (contexts[1:] != contexts[:-1]).any(
        axis=1
    )
    starts = np.flatnonzero(fresh)
    place[order] = np.cumsum(fresh) - 1
    return order[starts], np.add.reduceat(masses[order], starts), place


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Empirical(Nominal):
    """Q puts weight w_i on the past pair (x_i, y_i).

    Parameters
    ----------
    contexts
        Shape (rows, columns); an array or a data frame of numbers.
    outcomes
        Shape (rows,) or (rows, products).
    sample_weight
        Non-negative, one per row; None means equal weights. Weights are scaled to sum to one.
    names
        Column names; None takes those of a data frame.
    offsets
        Shape of the outcomes: what the fixed part of a policy (its ``offset``) is taken to say of each
        row, for example a forecast that had not seen the row. None: the policy is asked.

    Examples
    --------
    >>> Empirical([[1.0], [2.0], [2.0]], [3.0, 4.0, 4.0])
    Empirical(3 rows, 1 column, 1 product)
    >>> Empirical([[1.0], [2.0], [2.0]], [3.0, 4.0, 4.0]).distinct().weights
    array([0.33333333, 0.66666667])
    """

    contexts: FloatArray
    outcomes: FloatArray
    weights: FloatArray
    masses: FloatArray
    weighted: bool
    offsets: FloatArray | None
    names: tuple[str, ...] | None
    _distinct: bool
    _known: dict[str, FloatArray]

    def __init__(
        self,
        contexts: ArrayLike,
        outcomes: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        names: Sequence[str] | None = None,
        offsets: ArrayLike | None = None,
    ) -> None:
        columns = getattr(contexts, "columns", None) if names is None else names
        X = context_matrix("X", contexts)
        y = outcome_matrix("y", outcomes, len(X))
        masses = mass_vector("sample_weight", sample_weight, len(X))
        fixed = None if offsets is None else outcome_matrix("offsets", offsets, len(X))
        if fixed is not None and fixed.shape != y.shape:
            raise InvalidInputError(f"offsets must be of the shape of y {y.shape}, got {fixed.shape}.")
        for name, values in (("X", X), ("y", y)):
            largest = float(max(values.max(), -values.min()))
            if not largest < LARGEST:
                raise InvalidInputError(
                    f"{name} must lie within +-{LARGEST:g}, got {largest:g}: choose other units."
                )
            if (np.abs(values[0]) >= SMALLEST).all():
                continue  # most columns reach it in their first row, and this is quick
            each = np.maximum(values.max(axis=0), -values.min(axis=0))
            tiny = (each > 0.0) & (each < SMALLEST)
            if tiny.any():
                raise InvalidInputError(
                    f"{name} must be zero or reach {SMALLEST:g} in each column, got at most "
                    f"{each[tiny][0]:g} in column {tiny.argmax()}: choose other units."
                )
        names = column_names(columns, X.shape[1])
        self._hold(X, y, masses, fixed, names, weighted=sample_weight is not None)

    def _hold(
        self,
        contexts: FloatArray,
        outcomes: FloatArray,
        masses: FloatArray,
        offsets: FloatArray | None,
        names: tuple[str, ...] | None,
        *,
        weighted: bool,
    ) -> None:
        """Keep arrays that were checked, and that nobody else holds."""
        settle(
            self, contexts=contexts, outcomes=outcomes, masses=masses, offsets=offsets, names=names,
            weights=masses / masses.sum(), weighted=weighted, _distinct=False, _known={},
        )  # fmt: skip

    def __repr__(self) -> str:
        """Print sizes, not data."""
        weighted = ", weighted" if self.weighted else ""
        rows = count(len(self.contexts), "row")
        return f"Empirical({rows}, {sizes(self.n_columns, self.n_products)}{weighted})"

    @property
    def n_columns(self) -> int:
        """How many columns a context has."""
        return int(self.contexts.shape[1])

    @property
    def n_products(self) -> int:
        """How many products an outcome has."""
        return int(self.outcomes.shape[1])

    def sample(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Draw rows with replacement, each with its weight."""
        rows = rng.choice(len(self.weights), size=size, p=self.weights)
        return self.contexts[rows], self.outcomes[rows]

    def take(self, rows: IntArray, masses: FloatArray | None = None) -> "Empirical":
        """Return some rows, in the order asked for, with their own masses or with given ones."""
        contexts = self.contexts[rows]
        if not len(contexts):
            context_matrix("X", contexts)  # which says that there must be some
        given = self.masses[rows] if masses is None else np.broadcast_to(masses, len(contexts))
        masses = mass_vector("sample_weight", given, len(contexts))
        offsets = None if self.offsets is None else self.offsets[rows]
        some = object.__new__(Empirical)  # its rows were checked when they came
        some._hold(contexts, self.outcomes[rows], masses, offsets, self.names, weighted=True)
        return some

    def distinct(self) -> "Empirical":
        """Return the same distribution with ordered, distinct rows of positive weight.

        Rows are ordered by what a policy has to decide about: outcomes, less offsets if there are any.
        """
        if self._distinct:
            return self
        rows, masses, _ = self.distinct_rows()
        merged = self.take(rows, masses)
        object.__setattr__(merged, "_distinct", True)
        object.__setattr__(merged, "_known", self._known)
        return merged

    @property
    def spread(self) -> FloatArray:
        """The standard deviation of each column, zero where it is only rounding.

        Computed once, from the distinct rows, so that the order of rows changes no digit.
        """
        if "spread" not in self._known:
            rows = self.distinct()
            self._known["spread"] = column_spread(rows.contexts, rows.weights)
        return self._known["spread"]

    def distinct_rows(self) -> tuple[IntArray, FloatArray, IntArray]:
        """Return which rows ``distinct`` keeps, in its order, their masses, and each row's place there.

        Rows without weight have the place -1.
        """
        X, y, masses = self.contexts, self.outcomes, self.masses
        if self.offsets is not None:
            X, y = np.hstack([X, self.offsets]), y - self.offsets
        kept = np.flatnonzero(self.weights > 0.0)
        if len(kept) == len(masses):
            return _merge_equal_rows(X, y, masses)
        rows, merged, places = _merge_equal_rows(X[kept], y[kept], masses[kept])
        every = np.full(len(masses), -1, dtype=np.int64)
        every[kept] = places
        return kept[rows], merged, every
