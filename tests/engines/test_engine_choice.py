"""Which engine computes what, and what an engine says before it starts."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot import DASGD, Box, Problem, Simplex, WassersteinBall
from surefoot.costs import MeanCVaR, Newsvendor, Quadratic
from surefoot.engines.affine import Affine
from surefoot.engines.affine_stream import AffineStream
from surefoot.engines.autodiff import RADII, Autodiff
from surefoot.engines.autodiff_stream import AutodiffStream
from surefoot.engines.choice import (
    adversary_of,
    begin_stream,
    check_stream,
    engine_class,
    engine_for,
    radius_grid,
    restored_stream,
    resume_stream,
    steps_together,
    stream_class,
    why_no_engine,
    why_no_stream,
    worst_case_of,
    worst_values,
)
from surefoot.engines.engine import Engine, Options
from surefoot.engines.featured_stream import FeaturedStream
from surefoot.engines.optimizers import Adam
from surefoot.engines.step_rules import AdaptiveStep
from surefoot.engines.stream import StreamOptions, column_records, support_of
from surefoot.engines.stream_kernels import COLUMN, FORMER_COLUMN
from surefoot.exceptions import UnsupportedProblemError
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import MLP, Linear, LinearParameters, MaxAffine, RandomFourier
from surefoot.problem import affine_forms

COST = Newsvendor(1.0, 0.2)


def rows(count=30, columns=3, products=1):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, columns)) * [1.0, 10.0, 0.1][:columns]
    y = X @ rng.normal(size=(columns, products)) + rng.normal(size=(count, products)) + 10.0
    return Empirical(X, y[:, 0] if products == 1 else y)


NORMAL = Gaussian([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]])
PLAIN = Problem(COST, Linear(), rows(), WassersteinBall(0.1))

COMPILED = {
    "plain": PLAIN,
    "smoothed": replace(PLAIN, cost=Newsvendor(1.0, 0.2, smoothing=0.5)),
    "order 1 in a box": replace(PLAIN, ball=WassersteinBall(0.1, order=1, support=Box(-1e3, 1e3))),
    "outcomes move": replace(PLAIN, ball=WassersteinBall(0.1, outcome_cost=2.0)),
    "features": replace(PLAIN, policy=Linear(features=RandomFourier(5)).fitted(rows().contexts)),
    "limits one by one": replace(PLAIN, policy=Linear(decisions=Box(0.0, 20.0))),
    "products": replace(PLAIN, nominal=rows(products=2)),
    "without rows": replace(PLAIN, nominal=NORMAL),
}
DIFFERENTIATED = {
    "a neural policy": replace(PLAIN, policy=MLP((4,))),
    "a policy of several lines": replace(PLAIN, policy=MaxAffine(3)),
    "a curved cost": replace(PLAIN, cost=Quadratic()),
    "limits and moving outcomes": replace(
        PLAIN, policy=Linear(decisions=Box(0.0, 20.0)), ball=WassersteinBall(0.1, outcome_cost=2.0)
    ),
    "limits and a smoothed cost": replace(
        PLAIN, policy=Linear(decisions=Box(0.0, 20.0)), cost=Newsvendor(1.0, 0.2, smoothing=0.5)
    ),
    "a curved cost without rows": replace(PLAIN, cost=Quadratic(), nominal=NORMAL),
}


@pytest.mark.parametrize("name", COMPILED)
def test_linear_policies_with_piecewise_linear_costs_are_compiled(name):
    problem = COMPILED[name]
    assert engine_class(problem) is Affine
    assert not steps_together(problem, Options())
    assert why_no_engine(problem, Options()) is None
    assert issubclass(Affine, Engine)


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_the_rest_is_differentiated(name):
    problem = DIFFERENTIATED[name]
    assert engine_class(problem) is Autodiff
    assert steps_together(problem, Options())
    assert why_no_engine(problem, Options()) is None


@pytest.mark.parametrize("name", COMPILED)
def test_an_optimizer_asks_for_the_engine_that_has_one(name):
    problem = COMPILED[name]
    assert engine_class(problem, optimizer=Adam()) is Autodiff
    assert steps_together(problem, Options(optimizer=Adam()))


def test_an_engine_is_made_of_its_class():
    assert isinstance(engine_for([PLAIN, PLAIN.at_radius(0.5)], [0, 1], Options()), Affine)
    curved = DIFFERENTIATED["a curved cost"]
    assert isinstance(engine_for([curved], [0], Options(max_steps=10)), Autodiff)
    assert isinstance(engine_for([PLAIN], [0], Options(max_steps=10, optimizer=Adam())), Autodiff)


@pytest.mark.parametrize(
    ("problem", "options", "reason"),
    [
        (COMPILED["without rows"], Options(inner_steps=3), "needs an Empirical nominal"),
        (COMPILED["outcomes move"], Options(inner_steps=3), "moves contexts only"),
        (replace(PLAIN, cost=Quadratic(), ball=WassersteinBall(0.1, order=1)), Options(), "unbounded"),
        (
            Problem(MeanCVaR(0.1), Linear(), rows(products=3), WassersteinBall(0.1)),
            Options(),
            "Simplex",
        ),
    ],
    ids=["fresh draws", "outcomes", "growth", "no limits"],
)
def test_no_engine_is_a_reason_and_not_an_exception(problem, options, reason):
    assert reason in why_no_engine(problem, options)
    with pytest.raises(UnsupportedProblemError, match=reason):
        DASGD(inner_steps=options.inner_steps).solve(problem)


def test_what_has_a_reason_no_more_is_solved():
    portfolio = Problem(
        MeanCVaR(0.1), Linear(decisions=Simplex()), rows(products=3), WassersteinBall(0.1)
    )
    assert why_no_engine(portfolio, Options()) is None
    assert engine_class(portfolio) is Autodiff


# Radii


def test_radii_of_a_compiled_problem_fall_from_where_policies_collapse():
    problem = replace(PLAIN, nominal=rows(products=2))
    grid = radius_grid(problem)
    collapse = max(form.collapse_radius() for form in affine_forms(problem))
    assert grid[0] == pytest.approx(collapse, rel=1e-12)
    assert grid[-2] == pytest.approx(0.003 * collapse, rel=1e-12)
    assert grid[-1] == 0.0
    assert len(grid) == 12
    assert (np.diff(grid) < 0.0).all()
    np.testing.assert_allclose(np.diff(np.log(grid[:-1])), np.log(0.003) / 10, rtol=1e-9)


def test_radii_follow_the_units_of_the_ball():
    own = replace(PLAIN, ball=WassersteinBall(0.1, scale=False))
    larger = replace(own, nominal=Empirical(1000.0 * own.nominal.contexts, own.nominal.outcomes))
    np.testing.assert_allclose(radius_grid(larger), 1000.0 * radius_grid(own), rtol=1e-12)
    richer = replace(PLAIN, nominal=Empirical(PLAIN.nominal.contexts, 1e3 * PLAIN.nominal.outcomes))
    np.testing.assert_allclose(radius_grid(richer), radius_grid(PLAIN), rtol=1e-9)


def test_radii_of_any_other_problem_are_shares_of_the_spread():
    curved = DIFFERENTIATED["a curved cost"]
    np.testing.assert_allclose(radius_grid(curved), RADII, rtol=1e-12)
    own = replace(curved, ball=WassersteinBall(0.1, scale=False))
    spread = own.nominal.contexts.std(axis=0)
    expected = np.sqrt(np.mean(spread**2)) * np.array(RADII)
    np.testing.assert_allclose(radius_grid(own), expected, rtol=1e-12)


@pytest.mark.parametrize("cost", [COST, Quadratic()], ids=["compiled", "differentiated"])
def test_where_nothing_moves_there_is_one_radius(cost):
    still = Empirical(np.ones((8, 2)), np.arange(8.0))
    assert radius_grid(Problem(cost, Linear(), still, WassersteinBall(0.1))).tolist() == [0.0]


# Worst cases


def some_policy(problem):
    """Parameters that fit a problem, good or bad."""
    columns = problem.policy.transform(np.zeros((1, problem.nominal.n_columns))).shape[1]
    theta = np.random.default_rng(1).normal(size=(columns, problem.nominal.n_products))
    return LinearParameters(theta, np.full(problem.nominal.n_products, 10.0))


@pytest.mark.parametrize("name", ["plain", "order 1 in a box", "outcomes move", "products", "features"])
def test_worst_values_are_those_of_the_adversary(name):
    problem = COMPILED[name]
    parameters = some_policy(problem)
    found = adversary_of(problem, parameters)
    values, kind = worst_values(problem, parameters, np.array([0.0, 0.05, problem.radius, 1.0]))
    assert kind == "exact"
    assert values[2] == pytest.approx(found.value, rel=1e-9)
    assert (np.diff(values) > 0.0).all()


def test_the_adversary_of_a_nominal_without_rows_moves_draws_of_it():
    problem = COMPILED["without rows"]
    found = adversary_of(problem, some_policy(problem))
    assert len(np.unique(found.rows)) == 2_000
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.transport_cost[0] == pytest.approx(0.1**2, rel=1e-6)
    again = adversary_of(problem, some_policy(problem))
    np.testing.assert_array_equal(again.contexts, found.contexts)


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (PLAIN, "exact"),
        (COMPILED["smoothed"], "exact"),
        (COMPILED["limits one by one"], "exact"),
        (
            replace(COMPILED["limits one by one"], ball=WassersteinBall(0.1, support=Box(-1e3, 1e3))),
            "bound",
        ),
        (
            replace(COMPILED["smoothed"], ball=WassersteinBall(0.1, support=Box(-1e3, 1e3))),
            "bound",
        ),
    ],
    ids=["plain", "smoothed", "limits", "limits in a box", "smoothed in a box"],
)
def test_worst_values_say_what_they_are(problem, kind):
    assert worst_values(problem, some_policy(problem), np.array([0.1]))[1] == kind


# Streams


def stream_options(**parts):
    told = {
        "cost": COST, "policy": Linear(), "ball": WassersteinBall(0.1), "radius": None,
        "step": AdaptiveStep(), "window": 0.0, "random_state": 0,
    }  # fmt: skip
    return StreamOptions(**{**told, **parts})


def first_records(contexts, ball):
    size = contexts.shape[1]
    return column_records(contexts, ball.frozen_columns(size), support_of(ball, size))


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ({}, AffineStream),
        ({"policy": Linear(features=RandomFourier(5))}, FeaturedStream),
        ({"cost": Quadratic()}, AutodiffStream),
        ({"policy": Linear(features=RandomFourier(5)), "cost": Quadratic()}, FeaturedStream),
    ],
    ids=["compiled", "features", "differentiated", "features of a curved cost"],
)
def test_a_stream_begins_goes_on_and_comes_back_as_it_was(parts, kind):
    options, nominal = stream_options(**parts), rows(60)
    X, y = nominal.contexts, nominal.outcomes
    assert why_no_stream(options, 1) is None
    stream = begin_stream(options, first_records(X[:16], options.ball), X[:16], y[:16])
    assert type(stream) is kind
    stream.learn(X[16:40], y[16:40])
    again = restored_stream(options, 1, stream.arrays())
    assert type(again) is kind
    for one in (stream, again):
        one.learn(X[40:], y[40:])
    np.testing.assert_array_equal(again.decide(X), stream.decide(X))
    assert np.ptp(stream.decide(X)) > 0.0


@pytest.mark.parametrize("parts", [{}, {"policy": Linear(features=RandomFourier(5))}])
def test_a_state_of_an_earlier_version_goes_on(parts):
    options, nominal = stream_options(**parts), rows(60)
    X, y = nominal.contexts, nominal.outcomes
    stream = begin_stream(options, first_records(X[:16], options.ball), X[:16], y[:16])
    former = {}
    for name, array in stream.arrays().items():
        former[name] = array
        if array.dtype == COLUMN:
            former[name] = np.zeros(array.shape, FORMER_COLUMN)
            for field in COLUMN.names:
                former[name][field] = array[field]
            former[name]["most"] = np.inf
    assert any(array.dtype == FORMER_COLUMN for array in former.values())
    fitted = replace(options, policy=options.policy.fitted(X))
    check_stream(fitted, 1, X.shape[1], former)
    again = restored_stream(options, 1, former)
    for one in (stream, again):
        one.learn(X[16:], y[16:])
    np.testing.assert_array_equal(again.decide(X), stream.decide(X))


@pytest.mark.parametrize(
    "parts",
    [{}, {"policy": Linear(features=RandomFourier(5))}, {"policy": Linear(intercept=False)}],
    ids=["plain", "features", "no intercept"],
)
def test_a_stream_goes_on_from_a_fitted_policy(parts):
    options, nominal = stream_options(**parts), rows(60)
    policy = options.policy.fitted(nominal.contexts)
    problem = Problem(COST, policy, nominal, options.ball)
    parameters = DASGD(gap_tol=0.05).solve(problem).parameters
    stream = resume_stream(options, problem, parameters)
    expected = policy.transform(nominal.contexts) @ parameters.theta + parameters.intercept
    np.testing.assert_allclose(stream.decide(nominal.contexts), expected, rtol=1e-9)


def test_the_stream_s_engine_is_that_of_its_question():
    assert stream_class(stream_options(), 1) is AffineStream
    assert stream_class(stream_options(), 4) is AffineStream
    assert stream_class(stream_options(cost=Quadratic()), 1) is AutodiffStream
    limited = Linear(decisions=Box(0.0, 1.0))
    moving = WassersteinBall(0.1, outcome_cost=1.0)
    assert stream_class(stream_options(policy=limited), 1) is AffineStream
    assert stream_class(stream_options(policy=limited, ball=moving), 1) is AutodiffStream


def test_no_stream_is_a_reason_too():
    endless = stream_options(cost=Quadratic(), ball=WassersteinBall(0.1, order=1))
    assert "unbounded" in why_no_stream(endless, 1)
    three = stream_options(policy=Linear(decisions=Box([0.0] * 3, [1.0] * 3)))
    assert why_no_stream(three, 3) is None
    assert "3" in why_no_stream(three, 2)


@pytest.mark.parametrize("products", [1, 2])
@pytest.mark.parametrize("changes", [{}, {"order": 1}, {"outcome_cost": 2.0}, {"support": Box(-9, 9)}])
def test_the_worst_case_alone_is_that_of_the_adversary(products, changes):
    rng = np.random.default_rng(0)
    rows = Empirical(rng.normal(size=(30, 2)), rng.normal(size=(30, products)))
    problem = Problem(COST, Linear(), rows, WassersteinBall(0.3, **changes))
    parameters = LinearParameters(rng.normal(size=(2, products)), rng.normal(size=products))
    whole = adversary_of(problem, parameters)
    value, multiplier = worst_case_of(problem, parameters)
    assert value == pytest.approx(whole.value, rel=1e-12)
    np.testing.assert_allclose(multiplier, whole.multiplier, rtol=1e-12)
