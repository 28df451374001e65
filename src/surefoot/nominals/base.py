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
