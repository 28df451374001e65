"""Nominals that other people's code draws from: a function, a scipy.stats distribution."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals.base import SizedNominal
from surefoot.nominals.shapes import checked_draw, column_names, context_columns, settle, sizes
from surefoot.typing import FloatArray
from surefoot.validation import check_integer, numeric_array

# A trial draw of so many rows tells the shape of what a distribution draws.
TRIAL_ROWS = 2

Draw = Callable[[np.random.Generator, int], tuple[Any, Any]]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Sampler(SizedNominal):
    """Q is whatever a function draws: a simulator, a generative model.

    Parameters
    ----------
    fn
        Called as ``fn(rng, size)``; returns contexts (size, columns) and outcomes (size,) or
        (size, products). Take all randomness from ``rng``, a ``numpy.random.Generator``, and runs
        repeat from their seed. Every draw is checked.
    n_columns, n_products
        How many numbers a context and an outcome have.
    names
        Column names, or None.

    Examples
    --------
    >>> import numpy as np
    >>> def rainy_days(rng, size):
    ...     rain = rng.exponential(2.0, size=(size, 1))
    ...     return rain, rng.poisson(10.0 + 3.0 * rain[:, 0])
    >>> nominal = Sampler(rainy_days, n_columns=1)
    >>> nominal
    Sampler(rainy_days, 1 column, 1 product)
    >>> X, y = nominal.sample(np.random.default_rng(0), 4)
    >>> X.shape, y.shape
    ((4, 1), (4, 1))
    """

    fn: Draw
    names: tuple[str, ...] | None

    def __init__(
        self, fn: Draw, n_columns: int, n_products: int = 1, *, names: Sequence[str] | None = None
    ) -> None:
        if not callable(fn):
            raise InvalidTypeError(f"fn must be a function fn(rng, size), got {fn!r}.")
        columns = check_integer("n_columns", n_columns, at_least=1)
        products = check_integer("n_products", n_products, at_least=1)
        labels = column_names(names, columns)
        settle(self, fn=fn, _n_columns=columns, _n_products=products, names=labels)

    def __repr__(self) -> str:
        """Print the function's name and sizes."""
        name = getattr(self.fn, "__name__", type(self.fn).__name__)
        return f"Sampler({name}, {sizes(self.n_columns, self.n_products)})"

    def sample(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Call the function and check what it returns."""
        return checked_draw("fn", self.fn(rng, size), size, self.n_columns, self.n_products)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Joint(Sampler):
    """Q is a frozen joint distribution of scipy.stats, the outcome last.

    Parameters
    ----------
    distribution
        For example ``scipy.stats.multivariate_t(loc, shape, df=4)``; anything with
        ``rvs(size=, random_state=)`` that draws vectors.
    n_products
        How many of the last numbers of a draw are outcomes.
    names
        Names of the context's columns, or None.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> heavy = stats.multivariate_t(loc=[0.0, 10.0], shape=[[1.0, 0.5], [0.5, 1.0]], df=4)
    >>> nominal = Joint(heavy)
    >>> nominal
    Joint(multivariate_t, 1 column, 1 product)
    >>> X, y = nominal.sample(np.random.default_rng(0), 3)
    >>> X.shape, y.shape
    ((3, 1), (3, 1))
    """

    distribution: Any

    def __init__(
        self, distribution: Any, n_products: int = 1, *, names: Sequence[str] | None = None
    ) -> None:
        length = _draw_length(distribution)
        columns = context_columns("distribution", length, n_products)
        settle(self, distribution=distribution)
        super().__init__(self._drawn, columns, length - columns, names=names)

    def __repr__(self) -> str:
        """Print the distribution's name and sizes."""
        name = type(self.distribution).__name__.removesuffix("_frozen")
        return f"Joint({name}, {sizes(self.n_columns, self.n_products)})"

    def _drawn(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Draw vectors and part them into contexts and outcomes."""
        drawn = self.distribution.rvs(size=size, random_state=rng)
        # scipy.stats drops the axis of a single draw.
        joint = numeric_array("a draw of distribution", drawn).reshape(
            size, self.n_columns + self.n_products
        )
        return joint[:, : self.n_columns], joint[:, self.n_columns :]


def _draw_length(distribution: Any) -> int:
    """Return how many numbers a draw has, found by drawing, or refuse the distribution."""
    wanted = (
        "distribution must be a frozen joint distribution of scipy.stats such as "
        "multivariate_normal(mean, cov)"
    )
    rvs = getattr(distribution, "rvs", None)
    if not callable(rvs):
        raise InvalidTypeError(f"{wanted}, with rvs(size=, random_state=), got {distribution!r}.")
    try:
        trial = np.asarray(rvs(size=TRIAL_ROWS, random_state=np.random.default_rng(0)))
    except TypeError as error:
        raise InvalidTypeError(
            f"{wanted}, with rvs(size=, random_state=), got {type(distribution).__name__} ({error})."
        ) from error
    if trial.ndim != 2 or len(trial) != TRIAL_ROWS:
        kind = "single numbers" if trial.shape == (TRIAL_ROWS,) else f"shape {trial.shape[1:]}"
        raise InvalidInputError(
            f"{wanted}, which draws vectors (context first, outcome last), got "
            f"{type(distribution).__name__}, which draws {kind}."
        )
    return int(trial.shape[1])
