"""Costs: what a decision costs once the outcome is known."""

from surefoot.costs.base import AuxiliaryCost, ConvexPiecewiseCost, Cost
from surefoot.costs.custom import CustomCost
from surefoot.costs.mean_cvar import MeanCVaR
from surefoot.costs.newsvendor import Newsvendor
from surefoot.costs.pieces import Pieces
from surefoot.costs.pricing import Pricing
from surefoot.costs.quadratic import Quadratic
from surefoot.costs.tiered_newsvendor import TieredNewsvendor

__all__ = [
    "AuxiliaryCost",
    "ConvexPiecewiseCost",
    "Cost",
    "CustomCost",
    "MeanCVaR",
    "Newsvendor",
    "Pieces",
    "Pricing",
    "Quadratic",
    "TieredNewsvendor",
]
