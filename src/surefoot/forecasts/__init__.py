"""Forecasts that a robust policy starts from, with errors that no row had a hand in itself."""

from surefoot.forecasts.centred import Forecasts, Question, centred
from surefoot.forecasts.forecast import Forecast
from surefoot.forecasts.forecaster import Forecaster, HonestForecast

__all__ = ["Forecast", "Forecaster", "Forecasts", "HonestForecast", "Question", "centred"]
