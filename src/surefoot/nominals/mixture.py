"""Several nominals, one of which is drawn from at a time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals.base import Nominal, SizedNominal
from surefoot.nominals.shapes import count, settle, sizes
from surefoot.typing import ArrayLike, FloatArray
from surefoot.validation import check_instance, numeric_array

# Weights may miss a sum of one by this much rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Mixture(SizedNominal):
    r"""Q is a weighted mean of distributions.

    .. math:: Q = \sum_k p_k Q_k

    Parameters
    ----------
    components
        Nominals of one size, for example last season's rows and a Gaussian fitted to all years.
    weights
        p_k >= 0, one for each component, with sum one; None means equal weights.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot.nominals import Empirical, Gaussian
    >>> calm = Gaussian(mean=[0.0, 5.0], covariance=np.eye(2))
    >>> rush = Empirical([[3.0]], [20.0])
    >>> nominal = Mixture([calm, rush], weights=[0.9, 0.1])
    >>> nominal
    Mixture(2 components, 1 column, 1 product)
    >>> X, y = nominal.sample(np.random.default_rng(0), 1000)
    >>> int((y == 20.0).sum())
    104
    """

    components: tuple[Nominal, ...]
    weights: FloatArray
    names: tuple[str, ...] | None

    def __init__(self, components: Sequence[Nominal], weights: ArrayLike | None = None) -> None:
        parts = _checked_components(components)
        if weights is None:
            shares = np.full(len(parts), 1.0 / len(parts))
        else:
            shares = _checked_weights(weights, len(parts))
        named = next((part.names for part in parts if part.names), None)
        settle(self, components=parts, weights=shares, names=named)
        settle(self, _n_columns=parts[0].n_columns, _n_products=parts[0].n_products)

    def __repr__(self) -> str:
        """Print sizes, not components."""
        parts = count(len(self.components), "component")
        return f"Mixture({parts}, {sizes(self.n_columns, self.n_products)})"

    def sample(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Draw from each component as often as chance has it, in random order."""
        contexts = np.empty((size, self.n_columns))
        outcomes = np.empty((size, self.n_products))
        # A step-by-step method must not see one component after the other.
        places = rng.permutation(size)
        first = 0
        for component, number in zip(self.components, rng.multinomial(size, self.weights), strict=True):
            if number > 0:
                rows = places[first : first + number]
                contexts[rows], outcomes[rows] = component.sample(rng, int(number))
                first += number
        return contexts, outcomes


def _checked_components(components: Sequence[Nominal]) -> tuple[Nominal, ...]:
    """Return components of one size and with one set of column names, or refuse them."""
    if not isinstance(components, Iterable):
        raise InvalidTypeError(f"components must be a sequence of nominals, got {components!r}.")
    parts = tuple(components)
    if not parts:
        raise InvalidInputError("components must hold at least one nominal, got none.")
    for k, part in enumerate(parts):
        check_instance(f"components[{k}]", part, Nominal, "a nominal such as Empirical(X, y)")
    wanted = sizes(parts[0].n_columns, parts[0].n_products)
    named = next((part.names for part in parts if part.names), None)
    for k, part in enumerate(parts):
        got = sizes(part.n_columns, part.n_products)
        if got != wanted:
            raise InvalidInputError(
                f"components must have one size, got {wanted} in components[0] and {got} in "
                f"components[{k}]."
            )
        if part.names is not None and part.names != named:
            raise InvalidInputError(
                f"components must have the same column names, got {named} and {part.names} in "
                f"components[{k}]."
            )
    return parts


def _checked_weights(weights: ArrayLike, n_components: int) -> FloatArray:
    """Return probabilities, one for each component, or refuse them."""
    shares = numeric_array("weights", weights)
    if shares.shape != (n_components,):
        raise InvalidInputError(
            f"weights must have one entry per component ({n_components}), got shape {shares.shape}."
        )
    if (shares < 0).any():
        raise InvalidInputError(f"weights must be >= 0, got {shares.min()}.")
    total = float(shares.sum())
    if not abs(total - 1.0) <= ROUNDING:
        raise InvalidInputError(f"weights must have the sum 1, got {total:g}.")
    return np.asarray(shares / total)
