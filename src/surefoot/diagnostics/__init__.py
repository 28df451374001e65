"""Diagnostics: what is guaranteed, what a radius does, what the theory says."""

from surefoot.diagnostics.adversary_path import AdversaryPath, adversary_path
from surefoot.diagnostics.pictures import (
    leading_directions,
    plot_column,
    plot_columns,
    plot_columns_used,
    plot_convergence,
    plot_moves,
    plot_price,
    plot_rates,
)
from surefoot.diagnostics.price import CostCurve, PriceOfRobustness, price_of_robustness
from surefoot.diagnostics.radius_report import RadiusReport, RadiusRow, radius_report
from surefoot.diagnostics.theory import TheoryReport, theory
from surefoot.diagnostics.theory_bounds import Assumption, Claim, StepSizes
from surefoot.diagnostics.theory_constants import Constants

__all__ = [
    "AdversaryPath",
    "Assumption",
    "Claim",
    "Constants",
    "CostCurve",
    "PriceOfRobustness",
    "RadiusReport",
    "RadiusRow",
    "StepSizes",
    "TheoryReport",
    "adversary_path",
    "leading_directions",
    "plot_column",
    "plot_columns",
    "plot_columns_used",
    "plot_convergence",
    "plot_moves",
    "plot_price",
    "plot_rates",
    "price_of_robustness",
    "radius_report",
    "theory",
]
