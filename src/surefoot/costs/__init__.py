"""Costs: what a decision costs once the outcome is known."""

from surefoot.costs.base import ConvexPiecewiseCost, Cost, Pieces
from surefoot.costs.newsvendor import Newsvendor

__all__ = ["ConvexPiecewiseCost", "Cost", "Newsvendor", "Pieces"]
