"""Forecasts that a robust policy starts from, with errors that no row had a hand in itself."""

from surefoot.forecasts.centred import Forecasts, Question, centred
from surefoot.forecasts.cleaning import Suspect
from surefoot.forecasts.ensemble import Ensemble, confident_radius, cost_bound, ensembled, rare_rows
from surefoot.forecasts.forecast import Forecast
from surefoot.forecasts.forecaster import Forecaster, HonestForecast

__all__ = [
    "Ensemble", "Forecast", "Forecaster", "Forecasts", "HonestForecast", "Question", "Suspect",
    "centred", "confident_radius", "cost_bound", "ensembled", "rare_rows",
]  # fmt: skip
