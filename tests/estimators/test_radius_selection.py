"""The radius by cross-validation: of affine policies, of corrections of a forecast, of any policy."""

import os
import re
import threading

import numpy as np
import pytest

from surefoot import Box, Exact, Problem, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import MeanCVaR, Newsvendor, Quadratic
from surefoot.engines import affine, autodiff
from surefoot.engines.choice import radius_grid
from surefoot.estimators import RadiusPath, radius_selection
from surefoot.estimators.radius_selection import choose_radius
from surefoot.exceptions import DataWarning, InvalidInputError
from surefoot.forecasts import Forecaster, Question
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import Linear, LinearParameters
from surefoot.problem import affine_forms
from surefoot.sets import Simplex
from surefoot.solvers import DASGD, Adam, PrimalDual, primal_dual

COST = Newsvendor(1.0, 0.2)


def problem_of(X, y, weight=None, *, intercept=True, order=2, **options):
    ball = WassersteinBall(0.0, order=order, **options)
    return Problem(COST, Linear(intercept=intercept), Empirical(X, y, weight), ball)


def collapse_radius(problem):
    """The largest radius at which some product still reacts, in units of the ball."""
    return max(form.collapse_radius() for form in affine_forms(problem))


def choose(problem, seed=0, solver=None):
    rehearsal = problem.around(problem.nominal.distinct())
    return choose_radius(Question(problem, rehearsal), solver or PrimalDual(), seed)


def correct(problem, seed=0):
    """The radius for a correction of a forecast whose errors are the outcomes."""
    distinct = problem.around(problem.nominal.distinct())
    return choose_radius(Question(distinct, distinct, corrects=True), PrimalDual(), seed)


def noise_and_signal(seed, n=60, s=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, s))
    return X, rng.normal(size=n), 2.0 * X.sum(axis=1) + rng.normal(size=n)


# ---------------------------------------------------------------- the grid


@pytest.mark.parametrize("order", [1, 2])
def test_grid_runs_from_the_collapse_radius_down_to_zero(data, order):
    noise = np.random.default_rng(0).normal(size=60)
    radii = radius_grid(problem_of(data.X, np.column_stack([noise, data.y]), order=order))
    apart = [collapse_radius(problem_of(data.X, y, order=order)) for y in (noise, data.y)]
    assert radii[0] == pytest.approx(apart[1], rel=1e-12)
    assert radii[0] > 1.2 * apart[0]
    assert radii[-1] == 0.0
    assert len(radii) == affine.N_RADII
    assert (np.diff(radii) < 0).all()
    np.testing.assert_allclose(radii[1:-1] / radii[:-2], radii[1] / radii[0])
    assert radii[-2] == pytest.approx(0.003 * radii[0])


def test_from_the_collapse_radius_on_the_policy_is_constant(data):
    largest = radius_grid(problem_of(data.X, data.y))[0]
    for factor, constant in ((1.01, True), (0.8, False)):
        model = RobustNewsvendor(radius=factor * largest, solver=Exact(gap_tol=1e-7))
        spread = np.ptp(model.fit(data.X, data.y).predict(data.X))
        assert (spread < 1e-6) == constant


def test_grid_is_zero_where_nothing_can_move():
    X = np.column_stack([np.ones(6), np.full(6, 2.0)])
    np.testing.assert_array_equal(radius_grid(problem_of(X, np.arange(6.0))), [0.0])


# ---------------------------------------------------------------- the choice


def test_choice_is_the_cheapest_radius_of_the_grid(data):
    for order in (1, 2):
        model = RobustNewsvendor(order=order, nominal=None).fit(data.X, data.y)
        path = model.radius_path_
        assert isinstance(path, RadiusPath)
        assert model.radius_ == path.radius
        assert path.radius in path.radii
        assert 0.0 <= path.radius <= collapse_radius(problem_of(data.X, data.y, order=order))
        assert path.fold_costs.shape == (5, len(path.radii))
        assert path.fold_weights.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(
            path.mean_costs, np.average(path.fold_costs, axis=0, weights=path.fold_weights)
        )
        assert path.radius == path.radii[np.argmin(path.mean_costs)]
        assert (path.fold_costs > 0).all()


def test_of_equally_good_radii_the_largest_is_chosen():
    # Two rows: each fold learns from one row, so every radius gives the same constant order.
    path = choose(problem_of([[0.0], [1.0]], [1.0, 3.0]))
    assert np.ptp(path.mean_costs) == 0.0
    assert path.radius == path.radii[0] > 0


def test_path_prints_the_choice(data):
    text = repr(choose(problem_of(data.X, data.y)))
    number = r"[\d.e-]+"
    assert re.fullmatch(rf"RadiusPath\(radius={number}, 12 radii from 0 to {number}, 5 folds\)", text)


def test_choice_is_reproducible_and_depends_on_the_seed(data):
    problem = problem_of(data.X, data.y)
    first, second, other = (choose(problem, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.fold_costs, second.fold_costs)
    assert first.radius == second.radius
    assert (first.fold_costs != other.fold_costs).any()


def test_choice_does_not_depend_on_the_number_of_threads(data, monkeypatch):
    problem = problem_of(data.X, np.column_stack([data.y, data.y**2]))
    threaded = choose(problem)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    before = threading.active_count()
    alone = choose(problem)
    assert threading.active_count() == before
    np.testing.assert_array_equal(threaded.fold_costs, alone.fold_costs)


@pytest.mark.parametrize("order", [1, 2])
def test_a_strong_signal_asks_for_a_smaller_radius_than_noise(order):
    shares = []
    for seed in range(3):
        X, noise, signal = noise_and_signal(seed, n=100)
        models = [RobustNewsvendor(order=order, nominal=None).fit(X, y) for y in (signal, noise)]
        shares.append([model.radius_ / model.radius_path_.radii[0] for model in models])
    # Seen: 0.01 to 0.18 against 0.56 to 1.
    of_signal, of_noise = np.mean(shares, axis=0)
    assert of_signal < 0.3
    assert of_noise > 0.5


def test_choice_helps_out_of_sample():
    X, noise, _ = noise_and_signal(5, n=30, s=20)
    X_test, noise_test, _ = noise_and_signal(6, n=2000, s=20)
    chosen = RobustNewsvendor().fit(X, noise).cost(X_test, noise_test)
    greedy = RobustNewsvendor(radius=0.0).fit(X, noise).cost(X_test, noise_test)
    assert chosen < 0.7 * greedy


# ---------------------------------------------------------------- folds


@pytest.fixture
def folds(monkeypatch):
    """The (rows, kept rows, held-out rows) of every fold that was solved."""
    seen, solve = [], radius_selection.held_out_costs

    def record(problem, rows, solver, radii, parts, seed, past=False):
        everyone = np.arange(len(rows.weights))
        seen.extend((rows, np.setdiff1d(everyone, part), part) for part in parts)
        return solve(problem, rows, solver, radii, parts, seed, past)

    monkeypatch.setattr(radius_selection, "held_out_costs", record)
    return seen


@pytest.mark.parametrize(("n", "count"), [(60, 5), (7, 5), (5, 5), (4, 4), (3, 3), (2, 2)])
def test_folds_part_the_rows(data, folds, n, count):
    choose(problem_of(data.X[:n], data.y[:n]))
    assert len(folds) == count
    held_out = np.concatenate([fold[2] for fold in folds])
    np.testing.assert_array_equal(np.sort(held_out), np.arange(n))
    for _, kept, held in folds:
        np.testing.assert_array_equal(np.sort(np.concatenate([kept, held])), np.arange(n))
    sizes = [len(fold[2]) for fold in folds]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("nominal", "n"), [(None, 20), (Forecaster(), 40)])
def test_duplicates_never_straddle_folds(data, folds, nominal, n):
    X, y = np.repeat(data.X[:n], 3, axis=0), np.repeat(data.y[:n], 3)
    shuffled = np.random.default_rng(0).permutation(3 * n)
    RobustNewsvendor(nominal=nominal).fit(X[shuffled], y[shuffled])
    assert len(folds) == 5
    for rows, kept, held_out in folds:
        inside = {row.tobytes() for row in rows.contexts[kept]}
        outside = {row.tobytes() for row in rows.contexts[held_out]}
        assert len(inside) + len(outside) == n
        assert not inside & outside


def test_repeated_rows_do_not_make_noise_look_like_signal():
    X, noise, _ = noise_and_signal(0, n=30, s=20)
    once = RobustNewsvendor(nominal=Forecaster()).fit(X, noise)
    twice = RobustNewsvendor(nominal=Forecaster()).fit(np.repeat(X, 2, axis=0), np.repeat(noise, 2))
    np.testing.assert_allclose(twice.radius_path_.fold_costs, once.radius_path_.fold_costs, rtol=1e-9)
    assert twice.radius_ == pytest.approx(once.radius_)
    # Had a twin of each row been learned, radius zero would have cost next to nothing.
    assert twice.radius_path_.mean_costs[-1] > 2 * twice.radius_path_.mean_costs[0]


def test_heavy_folds_count_more(data):
    differs = 0
    for seed in range(6):
        weight = np.random.default_rng(seed).exponential(size=60) ** 3
        path = choose(problem_of(data.X, data.y, weight))
        assert path.fold_weights.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(path.mean_costs, path.fold_weights @ path.fold_costs)
        assert path.radius == path.radii[np.argmin(path.mean_costs)]
        differs += path.radius != path.radii[np.argmin(path.fold_costs.mean(axis=0))]
    assert differs > 0  # else the weights of the folds would not have been put to the test


@pytest.mark.parametrize("order", [1, 2])
def test_fold_costs_are_those_of_an_exact_solve(data, folds, monkeypatch, order):
    monkeypatch.setattr(primal_dual, "ROUGH_GAP", 1e-4)
    monkeypatch.setattr(primal_dual, "ROUGH_STEPS", 200_000)
    problem = problem_of(data.X, data.y, order=order, scale=tuple(data.X.std(axis=0)))
    path = choose(problem)
    column, exact = 4, []
    for rows, kept, held_out in folds:
        training = problem.around(rows.take(kept)).at_radius(float(path.radii[column]))
        found = Exact(gap_tol=1e-6).solve(training).parameters
        test = rows.take(held_out)
        r = (test.contexts @ found.theta + found.intercept - test.outcomes)[:, 0]
        exact.append(np.average(np.maximum(0.2 * r, -r), weights=test.weights))
    np.testing.assert_allclose(path.fold_costs[:, column], exact, rtol=0.01)


def test_costs_of_products_are_added(data):
    outcomes = np.column_stack([data.y, data.y])
    both, one = (choose(problem_of(data.X, y)) for y in (outcomes, data.y))
    np.testing.assert_allclose(both.mean_costs, 2.0 * one.mean_costs, rtol=0.05)


# ---------------------------------------------------------------- small and odd data


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_few_rows_are_enough(data, n, order, intercept):
    model = RobustNewsvendor(order=order, intercept=intercept, nominal=None)
    model.fit(data.X[:n], data.y[:n])
    assert model.radius_ in model.radius_path_.radii
    assert len(model.radius_path_.fold_costs) == n
    assert np.isfinite(model.predict(data.X_test)).all()
    assert model.converged_


@pytest.mark.parametrize("order", [1, 2])
def test_all_rows_identical(order):
    X, y = np.tile([1.0, 2.0], (8, 1)), np.full(8, 3.0)
    with pytest.warns(DataWarning, match="Constant columns"):
        model = RobustNewsvendor(order=order).fit(X, y)
    assert model.radius_ == 0.0
    np.testing.assert_allclose(model.predict([[1.0, 2.0], [5.0, 5.0]])[0], 3.0)
    assert model.cost(X, y) == pytest.approx(0.0, abs=1e-9)


def test_one_outcome_only(data):
    model = RobustNewsvendor().fit(data.X, np.full(60, 4.0))
    np.testing.assert_allclose(model.predict(data.X_test), 4.0)
    assert model.converged_


@pytest.mark.parametrize(
    "options",
    [{"support": Box(0.0, 1.0)}, {"outcome_cost": 2.0}, {"frozen": (0, 1)}],
    ids=["box", "outcomes move", "frozen"],
)
def test_every_geometry_has_a_choice(data, options):
    model = RobustPolicy(COST, ball=WassersteinBall("auto", **options)).fit(data.X[:30], data.y[:30])
    path = model.radius_path_
    assert model.radius_ == path.radius == path.radii[np.argmin(path.mean_costs)]
    assert model.radius_ < path.radii[0]  # these data have a signal


def test_the_smoothed_cost_has_a_choice(data):
    model = RobustPolicy(Newsvendor(1.0, 0.2, smoothing=0.05)).fit(data.X[:30], data.y[:30])
    assert model.radius_ in model.radius_path_.radii


# ---------------------------------------------------------------- after a forecast


def test_a_correction_is_tried_at_shares_of_the_collapse_radius(data):
    problem = problem_of(data.X, data.y)
    path = correct(problem)
    shares = path.radii / collapse_radius(problem)
    np.testing.assert_allclose(shares, [1.0, 0.6, 0.35, 0.2, 0.1, 0.03, 0.0])
    assert path.fold_costs.shape == (5, 7)
    assert path.fold_weights.sum() == pytest.approx(1.0)
    again = correct(problem)
    np.testing.assert_array_equal(again.fold_costs, path.fold_costs)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gain", [0.5, 0.9, 1.1, 3.0])
def test_a_correction_must_be_better_by_a_standard_error(data, monkeypatch, gain, weighted):
    weight = np.random.default_rng(1).exponential(size=60) if weighted else np.ones(60)
    problem = problem_of(data.X, data.y, weight)
    weights = problem.nominal.distinct().weights
    rng = np.random.default_rng(2)
    differences = rng.normal(size=60)
    differences -= weights @ differences
    error = np.sqrt(np.sum((weights * differences) ** 2))
    costs = np.tile(rng.normal(10.0, 1.0, size=(60, 1)), 7)
    costs[:, 3] -= differences + gain * error
    costs[:, 5] -= 0.4 * error
    monkeypatch.setattr(radius_selection, "held_out_costs", lambda *_: costs)
    path = correct(problem)
    assert path.radius == path.radii[3 if gain > 1.0 else 0]
    np.testing.assert_allclose(path.mean_costs, weights @ costs)


def test_heavy_rows_decide_which_correction_is_best(data, monkeypatch):
    weight = np.repeat([9.0, 1.0], 30)
    problem = problem_of(data.X, data.y, weight)
    heavy = problem.nominal.distinct().weights > 1.0 / 60
    costs = np.full((60, 7), 10.0)
    costs[heavy, 2] = 8.0  # best for a heavy half of the rows
    costs[~heavy, 4] = 5.0  # best for the rows, had they been equal
    monkeypatch.setattr(radius_selection, "held_out_costs", lambda *_: costs)
    path = correct(problem)
    assert path.radius == path.radii[2]


def test_a_worse_or_equal_correction_is_never_chosen(data, monkeypatch):
    problem = problem_of(data.X, data.y)
    costs = np.ones((60, 7))
    monkeypatch.setattr(radius_selection, "held_out_costs", lambda *_: costs)
    assert correct(problem).radius == collapse_radius(problem) > 0
    costs[:, 1:] += 1.0
    assert correct(problem).radius == collapse_radius(problem)


@pytest.mark.parametrize("order", [1, 2])
def test_noise_is_left_alone_and_signal_corrected(order):
    stayed = 0
    for seed in range(4):
        X, noise, signal = noise_and_signal(seed, n=100)
        path = correct(problem_of(X, noise, order=order))
        stayed += path.radius == path.radii[0]
        path = correct(problem_of(X, signal, order=order))
        assert path.radius < 0.5 * path.radii[0]
    assert stayed >= 3


def test_many_rows_are_sampled(data, folds, monkeypatch):
    monkeypatch.setattr(radius_selection, "CORRECTION_ROWS", 40)
    problem = problem_of(data.X, data.y, np.random.default_rng(0).uniform(0.5, 2.0, 60))
    path, every = correct(problem), problem.nominal.distinct()
    assert path.radii[0] == collapse_radius(problem)  # of all rows
    assert all(len(rows.outcomes) == 40 for rows, _, _ in folds)
    assert sum(len(held_out) for _, _, held_out in folds) == 40
    rows = folds[0][0]
    assert rows.weights.sum() == pytest.approx(1.0)
    kept = np.isin(every.outcomes, rows.outcomes)[:, 0]
    np.testing.assert_array_equal(every.outcomes[kept], rows.outcomes)
    np.testing.assert_allclose(rows.weights, every.weights[kept] / every.weights[kept].sum())
    chosen = {correct(problem, seed).fold_costs.tobytes() for seed in (0, 0, 1)}
    assert len(chosen) == 2


def test_few_rows_are_not_asked_for_a_correction(data, folds):
    least = radius_selection.CORRECTION_LEAST
    assert 2 <= least <= 60
    few = problem_of(data.X[: least - 1], data.y[: least - 1])
    path = correct(few)
    assert path.radius == collapse_radius(few) > 0
    np.testing.assert_array_equal(path.radii, [path.radius])
    assert not folds
    assert len(correct(problem_of(data.X[:least], data.y[:least])).radii) == 7
    assert len(folds) == 5


def test_there_is_no_correction_where_nothing_can_move():
    X = np.column_stack([np.ones(6), np.full(6, 2.0)])
    path = correct(problem_of(X, np.arange(6.0)))
    assert path.radius == 0.0
    np.testing.assert_array_equal(path.radii, [0.0])


def test_a_path_in_other_units(data):
    path = correct(problem_of(data.X, data.y))
    twice = path.times(2.0)
    np.testing.assert_array_equal(twice.radii, 2.0 * path.radii)
    assert twice.radius == 2.0 * path.radius > 0.0
    np.testing.assert_array_equal(twice.mean_costs, path.mean_costs)


def test_the_radius_of_a_forecast_is_a_share_of_its_own_collapse_radius(data):
    model = RobustNewsvendor(nominal=Forecaster()).fit(data.X, data.y)
    errors = model.nominal_
    assert len(errors.weights) == 2 * 60  # smoothed
    outcomes = errors.outcomes - errors.offsets
    collapse = collapse_radius(problem_of(errors.contexts, outcomes, errors.masses))
    assert model.radius_path_.radii[0] == pytest.approx(collapse)
    assert model.radius_ == model.radius_path_.radius
    assert model.radius_ in model.radius_path_.radii


# ---------------------------------------------------------------- any policy

GENERAL = DASGD(max_steps=1_000, inner_steps=5, optimizer=Adam(0.05), gap_tol=10.0)
RADII = autodiff.RADII


def rows_of(n=25, noise=0.1):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + noise * rng.normal(size=n)


def general(noise=0.1, nominal=None, **ball):
    nominal = nominal or Empirical(*rows_of(noise=noise))
    return Problem(Quadratic(), Linear(), nominal, WassersteinBall(0.0, **ball))


@pytest.fixture(scope="module")
def clear():
    return choose(general(), solver=GENERAL)


def test_every_radius_is_tried_on_every_fold(clear):
    np.testing.assert_allclose(clear.radii, RADII)
    assert clear.fold_costs.shape == (5, len(RADII))
    assert np.isfinite(clear.fold_costs).all()
    assert clear.fold_weights.sum() == pytest.approx(1.0)
    assert clear.radius == clear.radii[np.argmin(clear.mean_costs)]


def test_clear_data_want_a_small_radius_and_noise_a_large_one(clear):
    assert clear.radius < 1.0
    assert clear.mean_costs[0] > 1.5 * clear.mean_costs.min()
    assert choose(general(noise=30.0), solver=GENERAL).radius == 1.0


def test_it_repeats_and_depends_on_the_seed(clear):
    again = choose(general(), solver=GENERAL)
    np.testing.assert_array_equal(again.fold_costs, clear.fold_costs)
    other = choose(general(), 1, solver=GENERAL)
    assert np.abs(other.fold_costs - clear.fold_costs).max() > 1e-6


def test_radii_are_in_the_units_of_the_columns():
    problem = general(scale=False)
    size = np.sqrt(np.mean(problem.nominal.contexts.var(axis=0)))
    np.testing.assert_allclose(choose(problem, solver=GENERAL).radii, size * np.array(RADII), rtol=1e-9)


def test_rows_without_weight_are_left_out(clear):
    rng = np.random.default_rng(1)
    X, y = rows_of()
    wild = Empirical(
        np.vstack([X, 1e6 + rng.normal(size=(5, 2))]), np.append(y, np.full(5, 1e9)),
        np.append(np.ones(25), np.zeros(5)),
    )  # fmt: skip
    path = choose(general(nominal=wild), solver=GENERAL)
    np.testing.assert_allclose(path.fold_costs, clear.fold_costs, rtol=1e-6)
    assert path.radius == clear.radius


def test_where_nothing_moves_the_radius_is_zero():
    path = choose(general(frozen=(0, 1)), solver=GENERAL)
    assert (path.radius, path.radii.tolist()) == (0.0, [0.0])


def test_a_nominal_without_rows_has_nothing_to_cross_validate_on():
    problem = general(nominal=Gaussian([0.0, 0.0], np.eye(2)))
    with pytest.raises(
        InvalidInputError, match="radius must be a number where the nominal has no rows"
    ):
        choose_radius(Question(problem, problem), GENERAL, 0)


def test_an_estimator_records_the_path():
    X, y = rows_of()
    model = RobustPolicy(Quadratic(), Linear(), solver=GENERAL).fit(X, y)
    assert model.radius_ == model.radius_path_.radius
    assert model.radius_path_.fold_costs.shape == (5, len(RADII))
    model.ball = WassersteinBall(0.1)
    assert not hasattr(model.fit(X, y), "radius_path_")


def test_the_compiled_engine_has_its_own_path():
    path = RobustPolicy(Newsvendor(1.0, 0.2), Linear()).fit(*rows_of()).radius_path_
    assert len(path.radii) != len(RADII)


class Given(PrimalDual):
    """A solver that returns policies known beforehand."""

    def roughly(self, rows):
        return self

    def solve_paths(self, problems, radii, seed=0):
        assert all(len(problem.nominal.weights) == 16 for problem in problems)
        theta = np.zeros((2, 3))
        return [
            [LinearParameters(theta, np.array([k + 1.0, fold, 0.0])) for k in range(len(radii))]
            for fold in range(len(problems))
        ]


def test_a_tail_is_judged_on_the_held_out_rows_of_all_folds():
    """The value at risk is chosen on the decisions of all folds together."""
    rng = np.random.default_rng(0)
    X, returns = rng.normal(size=(20, 2)), 0.05 * rng.normal(size=(20, 3))
    cost, rows = MeanCVaR(level=0.8), Empirical(X, returns)
    problem = Problem(cost, Linear(decisions=Simplex()), rows, WassersteinBall(0.0))
    parts = np.array_split(np.arange(20), 5)
    found = radius_selection.held_out_costs(problem, rows, Given(), np.array([0.3, 0.0]), parts, 0)
    for k in range(2):
        raw = np.repeat([[k + 1.0, fold, 0.0] for fold in range(5)], 4, axis=0)
        shares = Simplex().map_into(raw)
        best = cost.best_auxiliary(shares, returns, rows.weights)
        np.testing.assert_allclose(found[:, k], cost.evaluate_at(shares, best, returns))


def test_folds_in_order_of_time_are_learned_from_the_past(data, monkeypatch):
    seen, solve = [], radius_selection.held_out_costs

    def record(problem, rows, solver, radii, parts, seed, past):
        seen.append((rows.outcomes[:, 0], parts, past))
        return solve(problem, rows, solver, radii, parts, seed, past)

    monkeypatch.setattr(radius_selection, "held_out_costs", record)
    X, y = data.X[:40], data.y[:40]
    when = np.arange(40)[::-1]
    model = RobustNewsvendor(nominal=None).fit(X, y, time=when)
    ((outcomes, parts, past),) = seen
    np.testing.assert_array_equal(outcomes, y[::-1])
    assert past
    assert [part[[0, -1]].tolist() for part in parts] == [[8, 15], [16, 23], [24, 31], [32, 39]]
    assert np.isfinite(model.radius_path_.fold_costs).all()
    k = int(np.argmin(model.radius_path_.mean_costs))
    late = RobustNewsvendor(radius=float(model.radius_path_.radii[k])).fit(X[::-1][:32], y[::-1][:32])
    assert model.radius_path_.fold_costs[-1, k] == pytest.approx(
        late.cost(X[::-1][32:], y[::-1][32:]), rel=0.05
    )
