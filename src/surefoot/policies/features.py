"""Feature maps: what a policy sees of a context."""

import copy
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.io import register
from surefoot.random import rng_for
from surefoot.typing import ArrayLike, FloatArray
from surefoot.validation import (
    check_flag,
    check_instance,
    check_integer,
    check_number,
    numeric_array,
)

# Median distances are taken over at most this many rows: all pairs of more say nothing new.
MOST_ROWS = 500
# A column whose spread is a smaller share of its size than this is constant up to rounding.
CONSTANT_COLUMN = 1e-12


class FeatureMap(ABC):
    """A map from contexts (rows, columns) to features (rows, features)."""

    @abstractmethod
    def __call__(self, contexts: FloatArray) -> ArrayLike:
        """Return the features of each row."""

    def size(self, n_columns: int) -> int | None:
        """Return how many features there are for so many columns, None if only a trial can tell."""
        del n_columns
        return None

    def fitted(self, contexts: FloatArray) -> Self:
        """Return the map with what it needs to know of the data; itself if that is nothing."""
        del contexts
        return self


@runtime_checkable
class Transformer(Protocol):
    """Anything that follows scikit-learn's convention for transformers."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn from contexts."""

    def transform(self, X: Any) -> Any:
        """Return features."""


@register
@dataclass(frozen=True)
class Polynomial(FeatureMap):
    """All products of up to ``degree`` columns.

    Parameters
    ----------
    degree
        Largest number of factors.
    interactions
        False: powers of single columns only.

    Examples
    --------
    >>> import numpy as np
    >>> Polynomial(degree=2)(np.array([[2.0, 3.0]]))
    array([[2., 3., 4., 6., 9.]])
    """

    degree: int = 2
    interactions: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", check_integer("degree", self.degree, at_least=1))
        object.__setattr__(self, "interactions", check_flag("interactions", self.interactions))

    def size(self, n_columns: int) -> int:
        """Return how many products there are."""
        if not self.interactions:
            return self.degree * n_columns
        return math.comb(n_columns + self.degree, min(n_columns, self.degree)) - 1

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the products, lowest degree first."""
        columns = range(contexts.shape[1])
        if not self.interactions:
            return np.hstack([contexts**power for power in range(1, self.degree + 1)])
        return np.column_stack(
            [
                contexts[:, list(chosen)].prod(axis=1)
                for power in range(1, self.degree + 1)
                for chosen in itertools.combinations_with_replacement(columns, power)
            ]
        )


@register
@dataclass(frozen=True)
class Select(FeatureMap):
    """Some of the columns, by position; without any, a column of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> Select((2, 0))(np.array([[1.0, 2.0, 3.0]]))
    array([[3., 1.]])
    """

    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        check_instance("columns", self.columns, Iterable, "a sequence of positions such as (2, 0)")
        columns = tuple(check_integer("columns", column, at_least=0) for column in self.columns)
        object.__setattr__(self, "columns", columns)

    def size(self, n_columns: int) -> int:
        """Return how many columns are kept."""
        del n_columns
        return max(len(self.columns), 1)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the columns."""
        if not self.columns:
            return np.zeros((len(contexts), 1))
        return np.ascontiguousarray(contexts[:, list(self.columns)])


@register
@dataclass(frozen=True)
class RandomFourier(FeatureMap):
    r"""Random Fourier features: a linear policy in them is a kernel policy.

    .. math:: g_k(x) = \sqrt{2/D} \cos(w_k' D_\sigma^{-1} x / \ell + u_k)

    With w standard normal and u uniform, g(x)'g(x') tends to the Gaussian kernel
    :math:`\exp(-\|x - x'\|^2 / (2 \ell^2))` of the standardised contexts as D grows.

    Parameters
    ----------
    n_features
        D, how many features.
    bandwidth
        l > 0 in standard deviations, or "auto": the median distance of the rows seen in ``fitted``.
    seed
        Of the random frequencies.
    scale
        Standard deviation of each column; None: found in ``fitted``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> fourier = RandomFourier(n_features=2000, bandwidth=1.0).fitted(X)
    >>> G = fourier(X)
    >>> abs(G @ G.T - np.exp(-0.5 * (X - X.T) ** 2 / X.var())).max() < 0.05
    np.True_

    References
    ----------
    Rahimi and Recht (2007), "Random features for large-scale kernel machines"; Bertsimas and Koduri
    (2022) for decisions.
    """

    n_features: int = 100
    bandwidth: float | str = "auto"
    seed: int = 0
    scale: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name, least in (("n_features", 1), ("seed", 0)):
            number = check_integer(name, getattr(self, name), at_least=least)
            object.__setattr__(self, name, number)
        if isinstance(self.bandwidth, str):
            if self.bandwidth != "auto":
                raise InvalidInputError(
                    f"bandwidth must be a number > 0 or 'auto', got {self.bandwidth!r}."
                )
        else:
            object.__setattr__(self, "bandwidth", check_number("bandwidth", self.bandwidth, above=0))
        if self.scale is not None:
            scale = numeric_array("scale", self.scale)
            if scale.ndim != 1 or scale.size == 0:
                raise InvalidInputError(
                    f"scale must be one number > 0 per column or None, got shape {scale.shape}."
                )
            for entry in scale.tolist():
                check_number("scale", entry, above=0)
            object.__setattr__(self, "scale", tuple(scale.tolist()))

    def size(self, n_columns: int) -> int:
        """Return the number of features that was asked for."""
        del n_columns
        return self.n_features

    def fitted(self, contexts: FloatArray) -> Self:
        """Return the map with what is still open, scale and bandwidth, from these rows."""
        scale, bandwidth = self.scale, self.bandwidth
        if scale is None:
            spread = contexts.std(axis=0)
            # A spread that is only rounding would blow noise up to full size.
            varies = spread > CONSTANT_COLUMN * np.abs(contexts).max(axis=0)
            scale = tuple(np.where(varies, spread, 1.0).tolist())
        if isinstance(bandwidth, str):
            rows = contexts[:: math.ceil(len(contexts) / MOST_ROWS)] / np.asarray(scale)
            median = _median_distance(rows) if len(rows) > 1 else 0.0
            bandwidth = median if median > 0.0 else 1.0
        return replace(self, bandwidth=bandwidth, scale=scale)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the cosines."""
        if self.scale is None or isinstance(self.bandwidth, str):
            raise InvalidInputError(
                "features must be fitted before they are used, got RandomFourier without a scale: "
                "use RandomFourier(...).fitted(X)."
            )
        if contexts.shape[1] != len(self.scale):
            raise InvalidInputError(
                f"X must have as many columns as RandomFourier was fitted to ({len(self.scale)}), "
                f"got {contexts.shape[1]}."
            )
        rng = rng_for(self.seed, "fourier")
        frequencies = rng.normal(size=(contexts.shape[1], self.n_features))
        phases = rng.uniform(0.0, 2.0 * np.pi, size=self.n_features)
        angles = contexts / (np.asarray(self.scale) * self.bandwidth) @ frequencies + phases
        return np.asarray(np.sqrt(2.0 / self.n_features) * np.cos(angles))


@dataclass(frozen=True)
class Transformed(FeatureMap):
    """A scikit-learn transformer as a feature map; ``fitted`` fits a copy of it."""

    transformer: Transformer
    ready: bool = False

    def fitted(self, contexts: FloatArray) -> Self:
        """Return the map with a fitted copy of the transformer."""
        if self.ready:
            return self
        transformer = copy.deepcopy(self.transformer)
        transformer.fit(contexts)
        return replace(self, transformer=transformer, ready=True)

    def __call__(self, contexts: FloatArray) -> Any:
        """Return the transformed rows as a dense array."""
        mapped = self.transformer.transform(contexts)
        return mapped.toarray() if hasattr(mapped, "toarray") else mapped


def _median_distance(rows: FloatArray) -> float:
    """Return the median distance between two rows; scipy would do, but loads slowly."""
    centred = rows - rows.mean(axis=0)
    lengths = (centred**2).sum(axis=1)
    squares = lengths[:, None] + lengths - 2.0 * centred @ centred.T
    pairs = squares[np.triu_indices(len(rows), 1)]
    # What is left of equal rows is rounding.
    return float(np.sqrt(np.median(np.where(pairs > 1e-12 * lengths.max(), pairs, 0.0))))


def feature_map(features: Any) -> FeatureMap | Callable[[FloatArray], ArrayLike] | None:
    """Return what the user gave as a feature map, or refuse it by name."""
    if features is None or isinstance(features, FeatureMap):
        return features
    # A class is no transformer: its name without parentheses is a slip.
    kind = isinstance(features, type)
    if not kind and isinstance(features, Transformer):
        return Transformed(features)
    if kind or not callable(features):
        raise InvalidTypeError(
            "features must be a FeatureMap, a transformer, a function of a context matrix or None, "
            f"got {features!r}."
        )
    given: Callable[[FloatArray], ArrayLike] = features
    return given
