"""Which rows to learn from and which to judge on, and how far the answers depend on each other."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.estimators.preparation import Table
from surefoot.exceptions import InvalidInputError
from surefoot.random import rng_for
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_integer

# Beyond this correlation of neighbouring windows an interval would be a guess.
LARGEST_CORRELATION = 0.9


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from and rows to judge on, by position; no row is in both."""

    name: str
    train: IntArray
    test: IntArray

    def sampled(self, most: int | None, rng: np.random.Generator) -> "Split":
        """Return a split of at most so many rows to learn from, and to judge on; None is all."""
        return Split(self.name, some_of(self.train, most, rng), some_of(self.test, most, rng))


def some_of(rows: IntArray, most: int | None, rng: np.random.Generator) -> IntArray:
    """Return at most so many rows, drawn at random, in the order in which they came.

    >>> some_of(np.arange(5), 9, np.random.default_rng(0))
    array([0, 1, 2, 3, 4])
    >>> some_of(np.arange(100), 3, np.random.default_rng(0))
    array([51, 63, 83])
    """
    if most is None or len(rows) <= most:
        return rows
    return np.sort(rng.choice(rows, most, replace=False))


def taken(X: Any, rows: IntArray) -> Any:
    """Return some rows of contexts, in the order asked for and in the shape in which they came."""
    if isinstance(X, Table):
        return X.take(rows)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "columns") or isinstance(X, np.ndarray):
        return X[rows]
    return [X[row] for row in rows]


class Splits(ABC):
    """A way to split rows. Every method is judged on the same splits."""

    @abstractmethod
    def splits(self, rows: int, seed: int) -> tuple[Split, ...]:
        """Return the splits of so many rows; refuse too few rows."""

    @abstractmethod
    def standard_error(self, differences: FloatArray, train: float, test: float) -> float:
        """Return the standard error of the mean of the splits' differences.

        Parameters
        ----------
        differences
            One for each split, at least two.
        train, test
            Rows learned from and judged on in a split, on average.
        """

    @abstractmethod
    def describe(self, rows: int) -> str:
        """Return how rows are split, in words."""


@dataclass(frozen=True)
class Folds(Splits):
    r"""Repeated shuffled K-fold cross-validation, for rows in no particular order.

    Splits share most of their training rows, so their differences are correlated and a plain t
    interval is far too narrow. Its variance is corrected as Nadeau and Bengio proposed, with J splits
    and sample variance s^2:

    .. math:: \left(\frac1J + \frac{n_\text{test}}{n_\text{train}}\right) s^2

    Parameters
    ----------
    folds
        Parts that rows are cut into, at least 2; each is judged on once, after learning from the rest.
    repeats
        How many times, with rows shuffled anew.

    Examples
    --------
    >>> [split.test.tolist() for split in Folds(2, repeats=1).splits(4, seed=0)]
    [[2, 3], [0, 1]]

    References
    ----------
    Nadeau and Bengio, Inference for the generalization error, Machine Learning 52 (2003).
    """

    folds: int = 5
    repeats: int = 3

    def __post_init__(self) -> None:
        check_integer("folds", self.folds, at_least=2)
        check_integer("repeats", self.repeats, at_least=1)

    def splits(self, rows: int, seed: int) -> tuple[Split, ...]:
        """Return one split for each fold of each repeat."""
        # Two rows at least must remain to learn from.
        least = max(self.folds, 4 if self.folds == 2 else 3)
        if rows < least:
            raise InvalidInputError(f"X must have at least {least} rows for {self}, got {rows}.")
        made = []
        for repeat in range(self.repeats):
            order = rng_for(seed, "compare", "folds", repeat).permutation(rows)
            for fold, part in enumerate(np.array_split(order, self.folds)):
                test = np.sort(part)
                train = np.setdiff1d(np.arange(rows), test)
                made.append(Split(f"repeat {repeat + 1}, fold {fold + 1}", train, test))
        return tuple(made)

    def standard_error(self, differences: FloatArray, train: float, test: float) -> float:
        """Return the corrected standard error."""
        spread = float(np.std(differences, ddof=1))
        return spread * math.sqrt(1.0 / len(differences) + test / train)

    def describe(self, rows: int) -> str:
        """Return how rows are split, in words."""
        times = f", {self.repeats} times" if self.repeats > 1 else ""
        return f"{self.folds}-fold cross-validation{times}"


@dataclass(frozen=True)
class RollingWindow(Splits):
    r"""Learn from the newest rows, judge on those that follow, move on: for rows in order of time.

    The last window ends at the last row; older rows that fill no window are left out. No row is
    judged on twice. Neighbouring windows share training rows, and good and bad seasons last; so with
    r the correlation of neighbouring differences (at least 0), J windows count as fewer:

    .. math:: \frac{s^2}{J} \, \frac{1 + r}{1 - r}

    Parameters
    ----------
    train
        Rows to learn from, at least 2.
    test
        Rows to judge on, right after those.
    step
        How far to move on, at least ``test``; None is ``test``.

    Examples
    --------
    >>> for split in RollingWindow(train=3, test=2).splits(8, seed=0):
    ...     print(split.train, split.test)
    [1 2 3] [4 5]
    [3 4 5] [6 7]
    """

    train: int
    test: int
    step: int | None = None

    def __post_init__(self) -> None:
        check_integer("train", self.train, at_least=2)
        check_integer("test", self.test, at_least=1)
        if self.step is not None:
            check_integer("step", self.step, at_least=1)
            if self.step < self.test:
                raise InvalidInputError(
                    f"step must be >= test ({self.test}), so that no row is judged twice, "
                    f"got {self.step}."
                )

    def splits(self, rows: int, seed: int) -> tuple[Split, ...]:
        """Return the windows, oldest first; the seed plays no part."""
        step = self.test if self.step is None else self.step
        windows = (rows - self.train - self.test) // step + 1
        if windows < 2:
            needed = self.train + self.test + step
            raise InvalidInputError(
                f"X must have at least {needed} rows for two windows of {self}, got {rows}."
            )
        ends = [rows - step * k for k in reversed(range(windows))]
        return tuple(
            Split(
                f"rows {end - self.test} to {end - 1}",
                np.arange(end - self.test - self.train, end - self.test),
                np.arange(end - self.test, end),
            )
            for end in ends
        )

    def standard_error(self, differences: FloatArray, train: float, test: float) -> float:
        """Return the standard error of so many windows as they are worth."""
        centred = differences - differences.mean()
        size = float(centred @ centred)
        if size == 0.0:
            return 0.0
        r = min(max(float(centred[1:] @ centred[:-1]) / size, 0.0), LARGEST_CORRELATION)
        spread = float(np.std(differences, ddof=1))
        return spread * math.sqrt((1.0 + r) / (1.0 - r) / len(differences))

    def describe(self, rows: int) -> str:
        """Return how rows are split, in words."""
        return (
            f"{len(self.splits(rows, 0))} windows in order of time: learn from {self.train} rows, "
            f"judge on the next {self.test}"
        )
