"""Forecasts that a robust policy starts from, with errors that no row had a hand in itself."""

from surefoot.forecasts.centred import Forecasts, Question, centred
from surefoot.forecasts.cleaning import Suspect
from surefoot.forecasts.ensemble import Ensemble
from surefoot.forecasts.ensemble_question import (
    confident_radius,
    cost_bound,
    ensembled,
    rare_rows,
    unbounded,
)
from surefoot.forecasts.forecast import Forecast
from surefoot.forecasts.forecaster import Forecaster, HonestForecast
from surefoot.forecasts.rolling import Rolling, later_blocks

__all__ = [
    "Ensemble", "Forecast", "Forecaster", "Forecasts", "HonestForecast", "Question", "Rolling",
    "Suspect",
    "centred", "confident_radius", "cost_bound", "ensembled", "later_blocks", "rare_rows",
    "unbounded",
]  # fmt: skip
