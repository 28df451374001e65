import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from surefoot.ambiguity import Box, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical, Gaussian, row_batches
from surefoot.nominals.empirical import column_spread
from surefoot.policies import Linear
from surefoot.problem import Problem, affine_forms, fitted_problem, sampled_rows
from tests.held_rows import HeldRows, demand
from tests.newsvendors import affine, describe, random_data, repeatable, seeds


@repeatable
@given(seeds)
def test_the_scale_is_the_weighted_standard_deviation(seed):
    X, _, weights = random_data(seed)
    expected = np.sqrt(np.diag(np.cov(X.T, ddof=0, aweights=weights)))
    np.testing.assert_allclose(column_spread(X, weights / weights.sum()), expected, rtol=1e-12)
    np.testing.assert_allclose(
        column_spread(X, weights / weights.sum()),
        np.repeat(X, weights, axis=0).std(axis=0),
        rtol=1e-12,
    )


def test_constant_columns_have_no_spread():
    X = np.array([[5.0, 0.0, 1.0], [5.0, 0.0, 3.0]])
    half = np.full(2, 0.5)
    assert column_spread(X, half).tolist() == [0.0, 0.0, 1.0]
    assert column_spread(3 * X, half).tolist() == [0.0, 0.0, 3.0]


def test_constant_columns_and_unscaled_columns_have_scale_one():
    X, y = np.array([[5.0, 0.0, 3.0], [5.0, 0.0, 9.0]]), np.array([1.0, 2.0])
    assert affine(X, y).scale.tolist() == [1.0, 1.0, 3.0]
    assert affine(X, y, scale=False).scale.tolist() == [1.0, 1.0, 1.0]


def test_rounding_does_not_make_a_column_vary():
    X = np.array([[0.1 + 0.2, 0.3, 1e-9], [0.3, 0.3 * (1 + 1e-9), 2e-9]])
    assert X[0, 0] != X[1, 0]
    np.testing.assert_allclose(column_spread(X, np.full(2, 0.5)), [0.0, 1.5e-10, 5e-10], rtol=1e-6)


@pytest.mark.parametrize("size", [1e-170, 1e170])
def test_the_spread_neither_overflows_nor_vanishes(size):
    X = size * np.array([[1.0], [2.0]])
    np.testing.assert_allclose(column_spread(X, np.full(2, 0.5)), [0.5 * size], rtol=1e-12)


@repeatable
@given(seeds)
def test_scaled_contexts_have_no_units(seed):
    X, y, weights = random_data(seed)
    units = np.array([1e-3, 1.0, 4096.0])
    one, other = affine(X, y, weights), affine(X * units, y, weights)
    np.testing.assert_allclose(one.contexts, other.contexts, rtol=1e-12)
    np.testing.assert_allclose(other.scale, one.scale * units, rtol=1e-12)
    spread = np.sqrt(one.weights @ (one.contexts - one.weights @ one.contexts) ** 2)
    np.testing.assert_allclose(spread, 1.0, rtol=1e-12)


def test_unscaled_contexts_keep_their_units():
    X, y, _ = random_data(0)
    form = affine(X, y, scale=False)
    nominal = Empirical(X, y).distinct()
    np.testing.assert_array_equal(form.contexts, nominal.contexts)
    np.testing.assert_array_equal(form.scale, np.ones(3))


def test_rows_in_batches_are_fitted_to_all_of_them(monkeypatch):
    monkeypatch.setattr(row_batches, "KEPT_NUMBERS", 5 * 300)
    X, y = demand()
    X[:, 2] = 7.0
    rows = HeldRows(X, y)
    for policy in (Linear(), Linear(features=lambda X: np.hstack([X, X[:, :1] ** 2]))):
        problem = Problem(Newsvendor(1.0, 0.2), policy, rows, WassersteinBall(0.1, frozen=(1,)))
        found = fitted_problem(problem).ball
        at_once = fitted_problem(problem.around(Empirical(X, y))).ball
        assert found.scale == pytest.approx(at_once.scale, rel=1e-9)
        assert found.frozen == at_once.frozen == (1, 2)
    stand_ins = sampled_rows(rows)
    assert np.isin(stand_ins.outcomes, y).all()
    assert len(np.unique(stand_ins.outcomes)) == len(stand_ins.outcomes) == 300
    assert (sampled_rows(rows).outcomes == stand_ins.outcomes).all()


@pytest.mark.parametrize("scale", [True, False])
def test_constant_columns_move_only_in_the_user_s_own_units(scale):
    X = np.array([[1.0, 7.0], [2.0, 7.0], [4.0, 7.0]])
    form = affine(X, [1.0, 2.0, 3.0], scale=scale)
    assert form.movable.tolist() == [True, not scale]
    assert form.scale[1] == 1.0


def test_only_rows_with_weight_make_a_column_vary():
    X = np.array([[1.0, 7.0], [2.0, 7.0], [4.0, 9.0]])
    assert affine(X, [1.0, 2.0, 3.0], [1, 1, 0]).movable.tolist() == [True, False]
    assert affine(X, [1.0, 2.0, 3.0], [1, 1, 1]).movable.tolist() == [True, True]


def test_an_earlier_fit_lends_its_scale_and_columns():
    X, y, _ = random_data(0)
    fitted = fitted_problem(describe(X, y, frozen=(0,)))
    np.testing.assert_allclose(fitted.ball.scale, affine(X, y).scale, rtol=1e-14)
    assert fitted.ball.frozen == (0,)
    for nominal in (Empirical(X, y), Empirical(X[:2], y[:2])):
        (later,) = affine_forms(fitted.around(nominal))
        later = later.in_plain_units()
        np.testing.assert_array_equal(later.scale, fitted.ball.scale)
        np.testing.assert_array_equal(later.movable, [False, True, True])
        expected = nominal.contexts / fitted.ball.scale
        assert {tuple(row) for row in later.contexts} == {tuple(row) for row in expected}
    assert fitted_problem(fitted) == fitted


def test_a_fit_remembers_which_columns_were_constant():
    X = np.array([[1.0, 7.0], [2.0, 7.0], [4.0, 7.0]])
    fitted = fitted_problem(describe(X, [1.0, 2.0, 3.0]))
    assert fitted.ball.frozen == (1,)
    later = affine_forms(fitted.around(Empirical([[1.0, 7.0], [1.0, 9.0]], [1.0, 2.0])))[0]
    assert later.movable.tolist() == [True, False]  # although now it varies


def test_a_nominal_without_rows_is_fitted_to_a_sample():
    gaussian = Gaussian([1.0, 2.0, 0.0], np.diag([4.0, 0.25, 1.0]))
    fitted = fitted_problem(Problem(Newsvendor(1.0, 0.2), Linear(), gaussian, WassersteinBall(0.3)))
    np.testing.assert_allclose(fitted.ball.scale, [2.0, 0.5], rtol=0.1)
    drawn = sampled_rows(gaussian)
    np.testing.assert_allclose(fitted.ball.scale, drawn.contexts.std(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(drawn.contexts, sampled_rows(gaussian).contexts)
    assert np.abs(drawn.contexts - sampled_rows(gaussian, seed=1).contexts).max() > 0.1


# The common unit


@pytest.mark.parametrize("scale", [True, False, (2.0, 3.0, 50.0)])
@pytest.mark.parametrize("size", [1e-5, 1.0, 3.0, 1e6])
def test_columns_share_a_power_of_two_that_makes_them_the_size_of_one(scale, size):
    X, y, weights = random_data(7)
    X = size * X
    (form,) = affine_forms(describe(X, y, weights, scale=scale))
    assert math.frexp(form.column_unit)[0] == 0.5
    spread = np.sqrt(form.weights @ (form.contexts - form.weights @ form.contexts) ** 2)
    assert 0.7 <= math.sqrt(np.mean(spread**2)) <= 1.42
    # The shape of the ball is its own: only the common size is gone.
    plain = form.in_plain_units()
    np.testing.assert_array_equal(plain.scale, form.scale / form.column_unit)
    assert form.radius * form.column_unit == plain.radius == 0.3
    if scale is not True:
        np.testing.assert_array_equal(plain.scale, np.ones(3) if scale is False else scale)


def test_only_columns_that_move_and_vary_decide_the_common_unit():
    X = np.array([[1.0, 7e9, 1e9], [2.0, 7e9, 2e9], [4.0, 7e9, 4e9]])
    y = [1.0, 2.0, 3.0]
    (form,) = affine_forms(describe(X, y, frozen=(2,), scale=False))
    assert form.column_unit == affine_forms(describe(X[:, :1], y, scale=False))[0].column_unit == 1.0
    (still,) = affine_forms(describe(X, y, frozen=(0, 1, 2), scale=False))
    assert still.column_unit == 1.0


def test_frozen_columns_do_not_move():
    frame = pd.DataFrame(
        {"price": [1.0, 2.0, 4.0], "holiday": [0.0, 1.0, 1.0], "heat": [3.0, 1.0, 2.0]}
    )
    y = [1.0, 2.0, 3.0]
    assert affine(frame, y, frozen=("holiday",)).movable.tolist() == [True, False, True]
    assert affine(frame.to_numpy(), y, frozen=(1, -1)).movable.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frozen": ("rain",)}, "frozen must name columns of X (price, heat), got 'rain'."),
        ({"frozen": (2,)}, "frozen must hold column names or positions below 2, got 2."),
        (
            {"support": Box((0, 0, 0), 9)},
            "lower must be one number or one per column (2), got 3 numbers.",
        ),
        (
            {"support": Box((0, 2), 9)},
            "support must contain every context, got column 1 with values in [1, 3] and a box [2, 9].",
        ),
        (
            {"support": Box(0, (3.5, 3))},
            "support must contain every context, "
            "got column 0 with values in [1, 4] and a box [0, 3.5].",
        ),
        (
            {"support": Box(0, 9, outcome=(1.5, 9)), "outcome_cost": 1.0},
            "support must contain every outcome, got values in [1, 3] and bounds [1.5, 9].",
        ),
        (
            {"support": Box(0, 9, outcome=(0, 2.5)), "outcome_cost": 1.0},
            "support must contain every outcome, got values in [1, 3] and bounds [0, 2.5].",
        ),
    ],
)
def test_balls_that_do_not_fit_the_data_are_refused(options, message):
    frame = pd.DataFrame({"price": [1.0, 2.0, 4.0], "heat": [3.0, 1.0, 2.0]})
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        affine(frame, [1.0, 2.0, 3.0], **options)


def test_names_without_a_frame_are_refused():
    with pytest.raises(InvalidInputError, match=r"^frozen names the column 'price', but X has no"):
        affine([[1.0], [2.0]], [1.0, 2.0], frozen=("price",))
    # A map of features leaves no names behind.
    policy, X = Linear(features=lambda X: X**2), pd.DataFrame({"price": [1.0, 2.0]})
    with pytest.raises(InvalidInputError, match=r"^frozen must hold positions of features .*'price'"):
        affine(X, [1.0, 2.0], policy=policy, frozen=("price",))


def test_a_box_on_its_border_is_welcome_and_scaled_with_the_contexts():
    X = np.array([[1.0, 10.0], [3.0, 30.0]])
    form = affine(X, [1.0, 2.0], support=Box((-math.inf, 10), (3, 35)))
    assert form.scale.tolist() == [1.0, 10.0]
    np.testing.assert_array_equal(form.lower, [-math.inf, 1.0])
    np.testing.assert_array_equal(form.upper, [3.0, 3.5])
    assert (form.contexts <= form.upper).all()
    assert (form.contexts >= form.lower).all()


def test_bounds_on_outcomes_that_cannot_move_are_not_checked():
    form = affine([[1.0], [2.0]], [1.0, 2.0], support=Box(0, 9, outcome=(5, 6)))
    assert (form.outcome_lower.tolist(), form.outcome_upper.tolist()) == ([5.0, 5.0], [6.0, 6.0])
