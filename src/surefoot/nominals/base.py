"""The centre of the ambiguity ball."""

from abc import ABC, abstractmethod

import numpy as np

from surefoot.typing import FloatArray


class Nominal(ABC):
    """A distribution Q of (context, outcome) that can be sampled."""

    # Names of the columns of a context, where they are known.
    names: tuple[str, ...] | None = None

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """How many numbers a context has."""

    @property
    @abstractmethod
    def n_products(self) -> int:
        """How many numbers an outcome has."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Draw ``size`` pairs: contexts (size, columns) and outcomes (size, products)."""


class SizedNominal(Nominal):
    """A nominal that knows its sizes once it is made."""

    _n_columns: int
    _n_products: int

    @property
    def n_columns(self) -> int:
        """How many columns a context has."""
        return self._n_columns

    @property
    def n_products(self) -> int:
        """How many products an outcome has."""
        return self._n_products
