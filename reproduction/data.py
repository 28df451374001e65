"""The data sets of the suite: each has a readable key, and its rows follow from names alone."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from surefoot.datasets import SyntheticData, YazData, load_yaz, synthetic
from surefoot.exceptions import InvalidInputError
from surefoot.random import rng_for
from surefoot.typing import FloatArray
from surefoot.validation import check_choice, check_integer, check_number

SEED = 0  # of the whole suite; every other seed is derived from it and from names
TEST_ROWS = 10_000
TEST_DAYS = 165
# Backorder and holding cost per unit: the paper's, and those of ``surefoot demo``.
PAPER_COSTS = (1.0, 0.2)
RESTAURANT_COSTS = (15.0, 10.0)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to learn from and rows to judge on.

    Attributes
    ----------
    X, y, X_test, y_test
        Contexts and outcomes, shapes (n, s), (n,), (m, s) and (m,).
    backorder, holding
        Costs per unit short and per unit left over.
    mixed_units
        Whether columns come in different units, so that methods that measure distances or norms
        must standardise them.
    truth
        The model behind synthetic rows; None for real ones.
    """

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    backorder: float
    holding: float
    mixed_units: bool
    truth: SyntheticData | None


@dataclass(frozen=True)
class Parts:
    """What a data set's key says, one column for each part; None where it has no such part."""

    kind: str
    n: int
    s: int | None = None
    noise_variance: float | None = None
    contexts: str | None = None
    coefficients: str | None = None
    product: str | None = None


class DataSet(ABC):
    """Something to learn from: it knows its key, and its rows for each repetition."""

    @property
    @abstractmethod
    def key(self) -> str:
        """Readable text that names the data set and nothing else."""

    @property
    @abstractmethod
    def parts(self) -> Parts:
        """The key, part by part."""

    @property
    @abstractmethod
    def repeatable(self) -> bool:
        """Whether another repetition has other rows."""

    @abstractmethod
    def load(self, repetition: int) -> Sample:
        """Return the rows of a repetition; every method sees these very rows."""


@dataclass(frozen=True)
class SyntheticSet(DataSet):
    """The paper's linear demand model (section 5.1) with b = 1 and h = 0.2.

    Examples
    --------
    >>> SyntheticSet(n=10, s=100, noise_variance=0.5).key
    'synthetic/positive/uniform/s=100/variance=0.5/n=10'
    """

    n: int
    s: int
    noise_variance: float
    coefficients: Literal["positive", "mixed"] = "positive"
    contexts: Literal["uniform", "gaussian"] = "uniform"
    test: int = TEST_ROWS

    def __post_init__(self) -> None:
        """Check every part by name."""
        check_integer("n", self.n, at_least=2)
        check_integer("s", self.s, at_least=1)
        check_number("noise_variance", self.noise_variance, at_least=0)
        check_choice("coefficients", self.coefficients, ("positive", "mixed"))
        check_choice("contexts", self.contexts, ("uniform", "gaussian"))
        check_integer("test", self.test, at_least=1)

    @property
    def key(self) -> str:
        """Readable text that names the data set and nothing else."""
        short = "" if self.test == TEST_ROWS else f"/test={self.test}"
        return (
            f"synthetic/{self.coefficients}/{self.contexts}/s={self.s}"
            f"/variance={self.noise_variance:g}/n={self.n}{short}"
        )

    @property
    def parts(self) -> Parts:
        """The key, part by part."""
        return Parts("synthetic", self.n, self.s, self.noise_variance, self.contexts, self.coefficients)

    @property
    def repeatable(self) -> bool:
        """Every repetition draws anew, coefficients too."""
        return True

    def load(self, repetition: int) -> Sample:
        """Draw the rows; those at a smaller n are the first of those at a larger one."""
        data = _drawn(self, repetition)
        return Sample(
            data.X, data.y, data.X_test, data.y_test, *PAPER_COSTS,
            mixed_units=False, truth=data,
        )  # fmt: skip


@lru_cache(maxsize=2)  # neighbouring cells share their data: 14 methods, one draw
def _drawn(which: SyntheticSet, repetition: int) -> SyntheticData:
    check_integer("repetition", repetition, at_least=0)
    return synthetic(
        which.n, which.s, coefficients=which.coefficients, contexts=which.contexts,
        noise_variance=which.noise_variance, test=which.test,
        seed=int(rng_for(SEED, "data", repetition).integers(1 << 31)),
    )  # fmt: skip


@lru_cache(maxsize=1)
def _open_days() -> YazData:
    return load_yaz(drop_closed=True)


@dataclass(frozen=True)
class YazSet(DataSet):
    """A restaurant's demand for one ingredient: learn from ``days``, judge on the last 165.

    Columns that did not vary in those days say nothing and are left out, as in ``surefoot demo``.

    Examples
    --------
    >>> YazSet("lamb", days=60).key
    'yaz/lamb/days=60'
    """

    product: str
    days: int

    def __post_init__(self) -> None:
        """Check every part by name."""
        data = _open_days()
        check_choice("product", self.product, data.products)
        most = len(data.dates) - TEST_DAYS
        if not 10 <= check_integer("days", self.days, at_least=1) <= most:
            raise InvalidInputError(f"days must be between 10 and {most}, got {self.days}.")

    @property
    def key(self) -> str:
        """Readable text that names the data set and nothing else."""
        return f"yaz/{self.product}/days={self.days}"

    @property
    def parts(self) -> Parts:
        """The key, part by part."""
        return Parts("yaz", self.days, product=self.product)

    @property
    def repeatable(self) -> bool:
        """History happened once."""
        return False

    def load(self, repetition: int) -> Sample:
        """Cut the window out of the data."""
        data = _open_days()
        first = len(data.dates) - TEST_DAYS
        train, test = slice(first - self.days, first), slice(first, None)
        X = data.contexts[:, np.ptp(data.contexts[train], axis=0) > 0]
        y = data.product(self.product)
        return Sample(
            X[train], y[train], X[test], y[test], *RESTAURANT_COSTS,
            mixed_units=True, truth=None,
        )  # fmt: skip
