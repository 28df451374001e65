import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.costs import Pieces
from surefoot.costs.quantiles import weighted_quantile, weighted_quantiles

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def weighted_rows(least=1):
    rows = st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(0.01, 1)), min_size=least, max_size=12)
    return rows.map(lambda pairs: (np.array(pairs)[:, 0], np.array(pairs)[:, 1])).map(
        lambda pair: (pair[0], pair[1] / pair[1].sum())
    )


@repeatable
@given(weighted_rows(), st.floats(0.001, 0.999))
def test_a_weighted_quantile_covers_its_level_and_no_smaller_value_does(rows, level):
    values, weights = rows
    found = weighted_quantile(values, weights, level)
    assert type(found) is float
    assert found in values
    assert weights[values <= found].sum() >= level - 1e-9
    assert weights[values < found].sum() < level


@repeatable
@given(weighted_rows(), st.floats(0.05, 5), st.floats(0.05, 5))
def test_a_weighted_quantile_is_the_best_constant_order(rows, up, down):
    values, weights = rows
    pieces = Pieces.kinked(up, down)
    costs = [weights @ pieces.evaluate(trial - values) for trial in values]
    best = weighted_quantile(values, weights, pieces.quantile)
    assert weights @ pieces.evaluate(best - values) <= min(costs) + 1e-9 * (1 + max(costs))


@pytest.mark.parametrize("rows", [7, 10, 49, 60])
def test_a_level_that_falls_on_a_row_stays_there_whatever_the_rounding(rows):
    values, weights = np.arange(rows, 0.0, -1.0), np.full(rows, 1 / rows)
    found = [weighted_quantile(values, weights, k / rows) for k in range(1, rows + 1)]
    assert found == list(range(1, rows + 1))
    between = [weighted_quantile(values, weights, (k - 0.01) / rows) for k in range(1, rows + 1)]
    assert between == found


def test_rows_without_weight_are_never_a_quantile():
    values, weights = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.5, 0.5, 0.0])
    assert [weighted_quantile(values, weights, level) for level in (0.01, 0.5, 0.51, 1.0)] == [
        2,
        2,
        3,
        3,
    ]


def test_quantiles_of_rows_are_those_of_each():
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=(5, 30)).round(1), rng.uniform(size=30)
    found = weighted_quantiles(values, weights, 0.7)
    assert found.tolist() == [weighted_quantile(row, weights, 0.7) for row in values]
