"""Diagnostics: what is guaranteed, what a radius does, what the theory says."""

from surefoot.diagnostics.bounds import Assumption, Claim, StepSizes
from surefoot.diagnostics.constants import Constants
from surefoot.diagnostics.convergence import GapCurve, Rate, empirical_rate, gaps_against_steps
from surefoot.diagnostics.coverage import Coverage, coverage_cell
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
from surefoot.diagnostics.profile import profile_distance
from surefoot.diagnostics.radius_report import RadiusReport, RadiusRow, radius_report
from surefoot.diagnostics.theory import TheoryReport, theory
from surefoot.diagnostics.training import AdversaryPath, adversary_path

__all__ = [
    "AdversaryPath",
    "Assumption",
    "Claim",
    "Constants",
    "CostCurve",
    "Coverage",
    "GapCurve",
    "PriceOfRobustness",
    "RadiusReport",
    "RadiusRow",
    "Rate",
    "StepSizes",
    "TheoryReport",
    "adversary_path",
    "coverage_cell",
    "empirical_rate",
    "gaps_against_steps",
    "leading_directions",
    "plot_column",
    "plot_columns",
    "plot_columns_used",
    "plot_convergence",
    "plot_moves",
    "plot_price",
    "plot_rates",
    "price_of_robustness",
    "profile_distance",
    "radius_report",
    "theory",
]
