"""Comparison of ways to decide, on the user's own data."""

from surefoot.comparison.compare import ComparisonProgress, compare
from surefoot.comparison.result import Comparison, ComparisonRow, Trial, paired_interval
from surefoot.comparison.splits import Folds, RollingWindow, Split, Splits

__all__ = [
    "Comparison",
    "ComparisonProgress",
    "ComparisonRow",
    "Folds",
    "RollingWindow",
    "Split",
    "Splits",
    "Trial",
    "compare",
    "paired_interval",
]
