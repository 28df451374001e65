"""Rows that do not fit into memory: they come in batches, pass after pass."""

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from surefoot.nominals.base import Nominal
from surefoot.nominals.empirical import Empirical
from surefoot.random import rng_for
from surefoot.typing import FloatArray

# A batch holds about so many numbers, 8 MiB...
BATCH_NUMBERS = 2**20
# ...and the rows that are kept from all of them so many, 16 MiB.
KEPT_NUMBERS = 2**21


class Moments(NamedTuple):
    """How many rows some columns have, their means, sums of squares around them, and ranges."""

    rows: int
    mean: FloatArray
    squares: FloatArray
    least: FloatArray
    most: FloatArray

    @classmethod
    def of(cls, columns: FloatArray) -> "Moments":
        """Return the moments of some rows, shape (rows, columns)."""
        mean = columns.mean(axis=0)
        centred = columns - mean
        squares = np.einsum("ij,ij->j", centred, centred)
        return cls(len(columns), mean, squares, columns.min(axis=0), columns.max(axis=0))

    def joined(self, other: "Moments") -> "Moments":
        """Return the moments of both sets of rows together (Chan, Golub and LeVeque 1983)."""
        rows = self.rows + other.rows
        apart, share = other.mean - self.mean, other.rows / rows
        return Moments(
            rows,
            self.mean + share * apart,
            self.squares + other.squares + self.rows * share * apart**2,
            np.minimum(self.least, other.least),
            np.maximum(self.most, other.most),
        )

    @property
    def spread(self) -> FloatArray:
        """The standard deviation of each column, zero where all rows have one value."""
        return np.where(self.least < self.most, np.sqrt(self.squares / self.rows), 0.0)


class Survey(NamedTuple):
    """What one pass over all rows tells: moments of the contexts, and rows drawn from all."""

    contexts: Moments
    sample: Empirical


class RowBatches(Nominal):
    """Q puts the same weight on each of many rows, of which only a batch is in memory at a time.

    A subclass says how many rows there are and hands them out in batches. ``ParquetRows`` reads them
    from files.
    """

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def batches(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield every row once: contexts (rows, columns) and outcomes (rows, products).

        Each call begins a new pass, with the rows in the same order.
        """

    @property
    def batch_rows(self) -> int:
        """How many rows a batch has at most."""
        return max(BATCH_NUMBERS // (self.n_columns + self.n_products), 1)

    @cached_property
    def survey(self) -> Survey:
        """What one pass over all rows tells; it is taken when it is first asked for.

        The sample is drawn without replacement, always the same rows.
        """
        size = min(self.n_rows, max(KEPT_NUMBERS // (self.n_columns + self.n_products), 2))
        drawn = rng_for(0, "survey").choice(self.n_rows, size, replace=False, shuffle=False)
        drawn.sort()
        first, moments, kept = 0, None, list[tuple[FloatArray, FloatArray]]()
        for contexts, outcomes in self.batches():
            inside = drawn[
                np.searchsorted(drawn, first) : np.searchsorted(drawn, first + len(contexts))
            ]
            kept.append((contexts[inside - first], outcomes[inside - first]))
            first += len(contexts)
            batch_moments = Moments.of(contexts)
            moments = batch_moments if moments is None else moments.joined(batch_moments)
        assert moments is not None  # there is a row, or the nominal had been refused
        X, y = (np.concatenate(part) for part in zip(*kept, strict=True))
        return Survey(moments, Empirical(X, y, names=self.names))
