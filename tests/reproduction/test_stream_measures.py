"""Measures of a stream: growth, recovery, times."""

import math

import numpy as np
import pytest

from reproduction.stream_measures import growth_exponent, recovery_rows, times_of
from surefoot.exceptions import InvalidInputError


@pytest.mark.parametrize("power", [0.0, 0.3, 0.5, 1.0])
def test_the_exponent_of_a_power_is_that_power(power):
    times = times_of(100_000)
    regret = 7.0 * times.astype(float) ** power
    assert growth_exponent(times, regret, first=1_000) == pytest.approx(power, abs=1e-9)


def test_only_the_last_times_count():
    times = times_of(100_000)
    regret = np.where(times < 1_000, times, 1_000.0 * np.sqrt(times / 1_000))
    assert growth_exponent(times, regret, first=1_000) == pytest.approx(0.5)
    assert growth_exponent(times, regret, first=1) > 0.55


def test_regret_that_is_not_positive_has_no_exponent():
    assert math.isnan(growth_exponent(np.array([1, 10]), np.array([1.0, -1.0]), first=1))
    with pytest.raises(InvalidInputError, match="times must have two entries >= 100"):
        growth_exponent(np.array([1, 10]), np.array([1.0, 1.0]), first=100)


def test_recovery_counts_from_the_change_and_looks_forward():
    costs = np.concatenate([np.ones(100), np.full(40, 1.5), np.ones(200)])
    oracle = np.ones(340)
    # A window of 50 rows with at most 10 of them at 1.5 is within 10 %.
    assert recovery_rows(costs, oracle, 100, window=50) == 30
    assert recovery_rows(np.full(340, 1.2), oracle, 100, window=50) is None
    assert recovery_rows(np.full(340, 1.05), oracle, 100, window=50) == 0
    assert recovery_rows(costs, oracle, 320, window=50) is None  # not enough rows are left


def test_times_are_even_in_their_logarithm_and_reach_the_end():
    times = times_of(1_000_000, per_decade=10)
    assert times[-1] == 1_000_000
    assert (np.diff(times) > 0).all()
    late = np.log10(times[times >= 1_000])
    assert np.diff(late) == pytest.approx(0.1, abs=0.01)
