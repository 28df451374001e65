from dataclasses import FrozenInstanceError, dataclass, fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.ambiguity import Adversary, AffineForm, AffineRows, AmbiguitySet
from surefoot.costs import Newsvendor
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import Problem, affine_forms
from tests.newsvendors import affine, prices, random_data, repeatable


@st.composite
def tied_outcomes(draw):
    """Outcomes with ties, a whole weight for each row, and whole prices b and h."""
    rows = draw(st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4)), min_size=1, max_size=10))
    outcomes, weights = zip(*rows, strict=True)
    return outcomes, weights, draw(prices), draw(prices)


def with_outcomes(outcomes, weights, b, h, **options):
    # Different contexts, so that equal outcomes stay different rows.
    X = np.arange(float(len(outcomes)))[:, None]
    return affine(X, np.array(outcomes, dtype=float), weights, b=b, h=h, **options)


def test_immutable():
    form = affine([[1.0], [2.0]], [1.0, 2.0])
    for name in ("radius", "contexts", "movable"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(form, name, None)


def test_a_subset_keeps_the_units():
    X, y, weights = random_data(3)
    form = affine(X, y, weights)
    rows = np.array([4, 1, 7])
    part = form.subset(rows)
    np.testing.assert_array_equal(part.contexts, form.contexts[rows])
    np.testing.assert_array_equal(part.outcomes, form.outcomes[rows])
    assert part.weights.sum() == pytest.approx(1.0, rel=1e-14)
    ratios = part.weights / form.weights[rows]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-14)
    np.testing.assert_array_equal(part.scale, form.scale)


def test_residuals():
    form = affine([[1.0, 2.0], [3.0, 1.0]], [1.0, 2.0], scale=False)
    np.testing.assert_array_equal(form.residuals(np.array([2.0, -1.0]), 0.5), [-0.5, 3.5])


@repeatable
@given(tied_outcomes(), st.sampled_from([1.0, 0.1, 1 / 3]))
def test_the_constant_order_is_the_smallest_outcome_with_least_cost(case, unit):
    outcomes, weights, b, h = case
    form = with_outcomes(outcomes, weights, unit * b, unit * h)

    def cost(z):
        """Exact, in whole numbers."""
        return sum(w * max(h * (z - y), -b * (z - y)) for y, w in zip(outcomes, weights, strict=True))

    least = min(map(cost, outcomes))
    decision, _ = form.constant_order()
    assert decision == min(y for y in outcomes if cost(y) == least)
    covered = Fraction(
        sum(w for y, w in zip(outcomes, weights, strict=True) if y <= decision), sum(weights)
    )
    assert covered >= Fraction(b, b + h)


@repeatable
@given(tied_outcomes())
def test_slopes_of_the_constant_order_are_feasible_and_balance(case):
    outcomes, weights, b, h = case
    form = with_outcomes(outcomes, weights, b, h)
    decision, slopes = form.constant_order()
    assert slopes.min() >= -b
    assert slopes.max() <= h
    assert form.weights @ slopes == pytest.approx(0, abs=1e-13 * (b + h))
    np.testing.assert_array_equal(slopes[form.outcomes < decision], h)
    np.testing.assert_array_equal(slopes[form.outcomes > decision], -b)
    assert len(set(slopes[form.outcomes == decision])) == 1
    # Slopes certify the decision: its cost is what the dual pays.
    cost = form.weights @ form.pieces.evaluate(decision - form.outcomes)
    assert -(form.weights * slopes) @ form.outcomes == pytest.approx(cost, abs=1e-12)


@pytest.mark.parametrize(
    ("b", "h", "rows"), [(1.0, 0.2, 6), (0.7, 0.3, 10), (9.0, 1.0, 10), (1.0, 1.0, 4)]
)
def test_a_quantile_on_a_row_is_that_row(b, h, rows):
    # b / (b + h) of the rows exactly: rounding must not push the answer to the next row.
    form = with_outcomes(range(1, rows + 1), [1] * rows, b, h)
    assert form.constant_order()[0] == round(rows * b / (b + h))


def test_the_order_of_rows_does_not_change_the_constant_order():
    form = with_outcomes([1.0, 2.0, 3.0, 4.0], [5, 1, 1, 3], 1.0, 1.0)
    rows = np.array([3, 1, 0, 2])
    decision, slopes = form.constant_order()
    assert decision == 1.0
    shuffled_decision, shuffled_slopes = form.subset(rows).constant_order()
    assert shuffled_decision == decision
    np.testing.assert_allclose(shuffled_slopes, slopes[rows], atol=1e-14)


def test_slopes_are_read_only():
    _, slopes = with_outcomes([1.0, 2.0], [1, 1], 1.0, 0.2).constant_order()
    with pytest.raises(ValueError, match="read-only"):
        slopes[0] = 0.0


def test_one_row_is_its_own_order():
    form = with_outcomes([4.0], [1], 1.0, 0.2)
    decision, slopes = form.constant_order()
    assert decision == 4.0
    assert slopes.tolist() == [0.0]


def test_slopes_stay_feasible_on_a_row_of_almost_no_weight():
    # The second row is lighter than the slack in the quantile.
    weights = [0.5 - 1.05e-12, 1e-13, 0.5 + 0.95e-12]
    form = with_outcomes([1.0, 2.0, 3.0], weights, 1.0, 1.0)
    _, slopes = form.constant_order()
    assert slopes.min() >= -1.0
    assert slopes.max() <= 1.0
    assert form.weights @ slopes == pytest.approx(0, abs=1e-11)


# The size below which a gap stops being relative


def test_floor_is_a_hundredth_of_the_best_constant_cost(make_affine):
    form = make_affine(1, backorder=1.0, holding=0.25, weighted=True)
    costs = [
        float(form.weights @ np.maximum(0.25 * (z - form.outcomes), form.outcomes - z))
        for z in form.outcomes
    ]
    assert form.gap_floor == pytest.approx(0.01 * min(costs))


@pytest.mark.parametrize("lines", ["newsvendor", "tiered", "flat", "salvage", "four"])
def test_the_floor_is_a_size_whatever_the_sign_of_the_cost(make_lines, lines):
    assert make_lines(1, lines=lines).gap_floor > 0.0


# Costs of more than two lines


def total_cost(form, z):
    lines = zip(form.pieces.slopes, form.pieces.intercepts, strict=True)
    r = z - form.outcomes
    return float(form.weights @ np.max([w * r + v for w, v in lines], axis=0))


@pytest.mark.parametrize("lines", ["tiered", "flat", "salvage", "four"])
@given(seed=st.integers(0, 10_000))
@repeatable
def test_the_constant_order_of_more_than_two_lines_is_certified_by_its_slopes(make_lines, lines, seed):
    form = make_lines(seed % 50, lines=lines, rows=9, weighted=bool(seed % 2))
    decision, slopes = form.constant_order()
    grid = np.linspace(form.outcomes.min() - 3.0, form.outcomes.max() + 3.0, 801)
    cost = total_cost(form, decision)
    assert cost <= min(total_cost(form, z) for z in grid) + 1e-12
    assert form.mean_cost(decision - form.outcomes) == pytest.approx(cost, rel=1e-13)
    # Slopes balance, lie between those of the row's lines, and pay for the cost.
    assert form.weights @ slopes == pytest.approx(0.0, abs=1e-12)
    step = 1e-6
    r = decision - form.outcomes
    ahead, behind = form.pieces.slope_at(r + step), form.pieces.slope_at(r - step)
    assert (slopes <= ahead + 1e-12).all()
    assert (slopes >= behind - 1e-12).all()
    level = np.interp(slopes, form.pieces.slopes, form.pieces.intercepts)
    assert form.weights @ (level - slopes * form.outcomes) == pytest.approx(cost, rel=1e-9)


def test_at_the_collapse_radius_of_order_one_no_policy_beats_the_constant(make_lines):
    for lines in ("tiered", "flat", "salvage", "four"):
        form = make_lines(3, lines=lines, order=1)
        form = form.at_radius(form.collapse_radius() * (1 + 1e-9))
        decision, slopes = form.constant_order()
        cost = total_cost(form, decision)
        assert form.worst_value(np.zeros(3), decision)[0] == pytest.approx(cost, rel=1e-13)
        assert form.lower_bound(slopes) == pytest.approx(cost, rel=1e-8)


# A set of one's own


class Unmoved(AffineForm):
    """The nominal and nothing else: what a form must answer at least."""

    def adversary(self, theta, intercept):
        n = len(self.weights)
        cost = self.mean_cost(self.residuals(theta, intercept))
        return Adversary(
            cost, cost, np.zeros(1), np.zeros(1), np.arange(n), np.zeros(n, dtype=np.int64),
            self.contexts, self.outcomes, self.weights, np.zeros(n),
        )  # fmt: skip

    def at_radius(self, radius):
        return self


@dataclass(frozen=True)
class Nominal(AmbiguitySet):
    radius: float = 0.0

    def form(self, rows, movable):
        assert movable.all()
        return Unmoved(**{field.name: getattr(rows, field.name) for field in fields(AffineRows)})


def unmoved(cost):
    X, y, weights = random_data(2)
    return affine_forms(Problem(cost, Linear(), Empirical(X, y, weights), Nominal()))[0]


def test_a_set_of_one_s_own_needs_no_more_than_an_adversary():
    form = unmoved(Newsvendor(1.0, 0.2))
    decision, slopes = form.constant_order()
    value, gamma = form.worst_value(np.zeros(3), decision)
    assert value == form.mean_cost(decision - form.outcomes)
    assert gamma == 0.0
    assert form.lower_bound(slopes) == 0.0
    assert (form.tight, form.geometry, form.collapse_radius()) == (False, None, 1.0)
    assert repr(form.adversary(np.zeros(3), decision)) == (
        f"Adversary(value={value:.6g}, expected_cost={value:.6g}, 30 atoms, transport_cost=[0.])"
    )


def test_the_least_cost_is_a_bound_also_where_a_kink_is_rounded():
    form = unmoved(Newsvendor(1.0, 0.2, smoothing=1.0))
    best = form.pieces.evaluate(np.linspace(-3.0, 3.0, 6001)).min()
    assert form.lower_bound(form.constant_order()[1]) <= best + 1e-12
