"""What a stack follows outside what was seen."""

import numpy as np
import pytest

from surefoot.costs import Pieces
from surefoot.forecasts.ensemble import Ensemble
from surefoot.forecasts.outside import decision_bounds, pasts, staying
from surefoot.forecasts.rows import Rows

COST = Pieces.kinked(up=1.0, down=1.0)


def tailed(n=120, seed=0):
    """A walk with its lag, and orders of very different sizes that count beside it."""
    rng = np.random.default_rng(seed)
    sizes = rng.pareto(3.0, size=n)
    z = 100.0 + np.cumsum(rng.normal(size=n + 1))
    return np.column_stack([z[:-1], sizes]), z[1:] + 5.0 * sizes


@pytest.mark.parametrize(("n", "room"), [(10, 4.0), (40, 2.0), (400, 0.2)])
def test_decisions_may_lie_further_outside_with_few_rows(n, room):
    outcomes = np.linspace(-1.0, 3.0, n)
    assert decision_bounds(outcomes) == pytest.approx((-1.0 - room, 3.0 + room))
    assert decision_bounds(outcomes + 1.0)[0] == 0.0


def test_lags_and_columns_like_outcomes_are_pasts_together():
    rng = np.random.default_rng(1)
    z = 50.0 + np.cumsum(rng.normal(size=81))
    X = np.column_stack([z[:-1], z[:-1] + 0.3 * rng.normal(size=80), rng.normal(size=80)])
    rows = Rows.of(X, z[1:], None)
    told = [found.tolist() for found in pasts(rows, np.array([True, False, False]))]
    assert told == [[0, 1], [0]]
    assert pasts(rows, None)[1].tolist() == []


def test_a_past_is_followed_by_its_level_and_other_tails_by_their_line():
    X, y = tailed()
    stack = Ensemble().fit(X, y, None, COST, 0, lagged=np.array([True, False])).stack
    assert stack.trend.tolist() == [0]
    assert (stack.lines[:, 0] == 0.0).all()
    assert stack.lines[1, 1] > 0.0
    assert stack.along.tolist() == [1.0, 0.0]  # what a line follows does not go with the level


def test_staying_leaves_all_but_the_past():
    X, y = tailed()
    X = np.column_stack([X, X[:, 0] / 3.0 + np.random.default_rng(2).normal(size=len(y))])
    stack = Ensemble().fit(X, X[:, 0], None, COST, 0, lagged=np.array([True, False, False])).stack
    assert stack.along[2] > 0.0
    assert staying(stack).along.tolist() == [1.0, 0.0, 0.0]
