"""How a context becomes a decision."""

from abc import ABC, abstractmethod
from typing import Any

from surefoot.typing import FloatArray


class Policy(ABC):
    """A family of maps z = f(theta; x) from contexts to decisions."""

    @abstractmethod
    def decide(self, parameters: Any, contexts: FloatArray) -> FloatArray:
        """Return decisions of shape (rows, products) for contexts of shape (rows, columns)."""
