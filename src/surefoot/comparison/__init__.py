"""Comparison of ways to decide, on the user's own data."""

from surefoot.comparison.compare import Progress, compare
from surefoot.comparison.result import Comparison, Row, Trial, paired_interval
from surefoot.comparison.splits import Folds, RollingWindow, Split, Splits

__all__ = [
    "Comparison",
    "Folds",
    "Progress",
    "RollingWindow",
    "Row",
    "Split",
    "Splits",
    "Trial",
    "compare",
    "paired_interval",
]
