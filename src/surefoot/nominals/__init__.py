"""Nominals: the distribution at the centre of the ball."""

from surefoot.nominals.base import Nominal
from surefoot.nominals.empirical import Empirical

__all__ = ["Empirical", "Nominal"]
