import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.baselines import SAA
from surefoot.costs.quantiles import weighted_quantile

numbers = st.integers(-20, 20).map(float)
rows = st.lists(st.tuples(numbers, st.integers(0, 4)), min_size=2, max_size=12).filter(
    lambda pairs: sum(weight for _, weight in pairs) > 0
)
price = st.sampled_from([0.2, 0.5, 1.0, 3.0])


@given(rows, price, price)
@settings(deadline=None, max_examples=150)
def test_no_constant_costs_less_and_none_as_cheap_is_smaller(pairs, backorder, holding):
    y, weight = map(np.array, zip(*pairs, strict=True))
    X = np.zeros((len(y), 1))
    model = SAA(backorder, holding).fit(X, y, sample_weight=weight)

    def cost(z):
        return weight @ np.where(y > z, backorder * (y - z), holding * (z - y)) / weight.sum()

    best = min(cost(z) for z in y)  # a piecewise linear function has its minimum at a kink
    assert cost(model.decision_) == pytest.approx(best, abs=1e-12)
    assert model.cost(X, y, weight) == pytest.approx(best, abs=1e-12)
    smaller = [z for z in y[weight > 0] if z < model.decision_]
    assert all(cost(z) > best + 1e-12 for z in smaller)


@given(rows, st.sampled_from([0.5, 2.0, 8.0]), numbers)
@settings(deadline=None, max_examples=50)
def test_it_moves_with_the_outcomes_and_not_with_the_units_of_cost(pairs, factor, shift):
    y, weight = map(np.array, zip(*pairs, strict=True))
    X = np.zeros((len(y), 1))
    plain = SAA(1.0, 0.2).fit(X, y, sample_weight=weight).decision_
    moved = SAA(factor, 0.2 * factor).fit(X, factor * y + shift, sample_weight=weight).decision_
    assert moved == pytest.approx(factor * plain + shift)


def test_a_level_reached_but_for_rounding_is_reached():
    # Ten times 0.1 sums to less than 1, and 0.8 is not eight times 0.1.
    y, weights = np.arange(10.0), np.full(10, 0.1)
    assert np.cumsum(weights)[7] < 0.8
    assert weighted_quantile(y, weights, 0.8) == 7.0
    assert weighted_quantile(y, weights, 1.0) == 9.0
    assert weighted_quantile(y, weights, 0.81) == 8.0


def test_decisions_ignore_the_context(data):
    model = SAA(1.0, 0.2).fit(data.X, data.y)
    np.testing.assert_array_equal(model.predict(data.X_test), np.full(500, model.decision_))
    assert model.decision_ == np.quantile(data.y, 1 / 1.2, method="inverted_cdf")
    two = SAA((1.0, 0.2), (0.2, 1.0)).fit(data.X, np.column_stack([data.y, data.y]))
    assert two.decision_.shape == (2,)
    assert two.decision_[0] > two.decision_[1]
