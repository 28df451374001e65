import re
import threading

import numpy as np
import pytest

from surefoot import Box, Exact, Problem, RobustNewsvendor, RobustPolicy, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.estimators import RadiusPath, selection
from surefoot.estimators.selection import choose_correction, choose_radius, radius_grid
from surefoot.exceptions import DataWarning
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_problems

COST = Newsvendor(1.0, 0.2)


def problems(X, y, weight=None, *, intercept=True, order=2, **options):
    ball = WassersteinBall(0.0, order=order, **options)
    return affine_problems(Problem(COST, Linear(intercept=intercept), Empirical(X, y, weight), ball))


def noise_and_signal(seed, n=60, s=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, s))
    return X, rng.normal(size=n), 2.0 * X.sum(axis=1) + rng.normal(size=n)


# ---------------------------------------------------------------- the grid


@pytest.mark.parametrize("order", [1, 2])
def test_grid_runs_from_the_collapse_radius_down_to_zero(data, order):
    noise = np.random.default_rng(0).normal(size=60)
    parts = problems(data.X, np.column_stack([noise, data.y]), order=order)
    radii = radius_grid(parts)
    assert radii[0] == parts[1].collapse_radius()
    assert radii[0] > 1.2 * parts[0].collapse_radius()
    assert radii[-1] == 0.0
    assert len(radii) == selection.N_RADII
    assert (np.diff(radii) < 0).all()
    np.testing.assert_allclose(radii[1:-1] / radii[:-2], radii[1] / radii[0])
    assert radii[-2] == pytest.approx(0.003 * radii[0])


def test_from_the_collapse_radius_on_the_policy_is_constant(data):
    largest = radius_grid(problems(data.X, data.y))[0]
    for factor, constant in ((1.01, True), (0.8, False)):
        model = RobustNewsvendor(radius=factor * largest, solver=Exact(gap_tol=1e-7))
        spread = np.ptp(model.fit(data.X, data.y).predict(data.X))
        assert (spread < 1e-6) == constant


def test_grid_is_zero_where_nothing_can_move():
    X = np.column_stack([np.ones(6), np.full(6, 2.0)])
    np.testing.assert_array_equal(radius_grid(problems(X, np.arange(6.0))), [0.0])


# ---------------------------------------------------------------- the choice


def test_choice_is_the_cheapest_radius_of_the_grid(data):
    for order in (1, 2):
        model = RobustNewsvendor(order=order, nominal=None).fit(data.X, data.y)
        path = model.radius_path_
        assert isinstance(path, RadiusPath)
        assert model.radius_ == path.radius
        assert path.radius in path.radii
        assert 0.0 <= path.radius <= problems(data.X, data.y, order=order)[0].collapse_radius()
        assert path.fold_costs.shape == (5, len(path.radii))
        assert path.fold_weights.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(
            path.mean_costs, np.average(path.fold_costs, axis=0, weights=path.fold_weights)
        )
        assert path.radius == path.radii[np.argmin(path.mean_costs)]
        assert (path.fold_costs > 0).all()


def test_of_equally_good_radii_the_largest_is_chosen():
    # Two rows: each fold learns from one row, so every radius gives the same constant order.
    path = choose_radius(problems([[0.0], [1.0]], [1.0, 3.0]), seed=0)
    assert np.ptp(path.mean_costs) == 0.0
    assert path.radius == path.radii[0] > 0


def test_path_prints_the_choice(data):
    text = repr(choose_radius(problems(data.X, data.y), seed=0))
    number = r"[\d.e-]+"
    assert re.fullmatch(rf"RadiusPath\(radius={number}, 12 radii from 0 to {number}, 5 folds\)", text)


def test_choice_is_reproducible_and_depends_on_the_seed(data):
    parts = problems(data.X, data.y)
    first, second, other = (choose_radius(parts, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.fold_costs, second.fold_costs)
    assert first.radius == second.radius
    assert (first.fold_costs != other.fold_costs).any()


def test_choice_does_not_depend_on_the_number_of_threads(data, monkeypatch):
    parts = problems(data.X, np.column_stack([data.y, data.y**2]))
    threaded = choose_radius(parts, seed=0)
    monkeypatch.setattr(selection.os, "cpu_count", lambda: None)
    before = threading.active_count()
    alone = choose_radius(parts, seed=0)
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
    """The (problem, kept rows, held-out rows) of every fold that was solved."""
    seen, solve = [], selection._path_costs

    def record(problem, kept, held_out, radii, rng):
        seen.append((problem, kept, held_out))
        return solve(problem, kept, held_out, radii, rng)

    monkeypatch.setattr(selection, "_path_costs", record)
    return seen


@pytest.mark.parametrize(("n", "count"), [(60, 5), (7, 5), (5, 5), (4, 4), (3, 3), (2, 2)])
def test_folds_part_the_rows(data, folds, n, count):
    choose_radius(problems(data.X[:n], data.y[:n]), seed=0)
    assert len(folds) == count
    held_out = np.concatenate([fold[2] for fold in folds])
    np.testing.assert_array_equal(np.sort(held_out), np.arange(n))
    for _, kept, held in folds:
        np.testing.assert_array_equal(np.sort(np.concatenate([kept, held])), np.arange(n))
    sizes = [len(fold[2]) for fold in folds]
    assert max(sizes) - min(sizes) <= 1


def test_duplicates_never_straddle_folds(data, folds):
    X, y = np.repeat(data.X[:20], 3, axis=0), np.repeat(data.y[:20], 3)
    shuffled = np.random.default_rng(0).permutation(60)
    RobustNewsvendor().fit(X[shuffled], y[shuffled])
    for problem, kept, held_out in folds:
        inside = {row.tobytes() for row in problem.contexts[kept]}
        outside = {row.tobytes() for row in problem.contexts[held_out]}
        assert len(inside) + len(outside) == 20
        assert not inside & outside


def test_repeated_rows_do_not_make_noise_look_like_signal():
    X, noise, _ = noise_and_signal(0, n=30, s=20)
    once = RobustNewsvendor().fit(X, noise)
    twice = RobustNewsvendor().fit(np.repeat(X, 2, axis=0), np.repeat(noise, 2))
    np.testing.assert_allclose(twice.radius_path_.fold_costs, once.radius_path_.fold_costs, rtol=1e-9)
    assert twice.radius_ == pytest.approx(once.radius_)
    # Had a twin of each row been learned, radius zero would have cost next to nothing.
    assert twice.radius_path_.mean_costs[-1] > 2 * twice.radius_path_.mean_costs[0]


def test_heavy_folds_count_more(data):
    differs = 0
    for seed in range(6):
        weight = np.random.default_rng(seed).exponential(size=60) ** 3
        path = choose_radius(problems(data.X, data.y, weight), seed=0)
        assert path.fold_weights.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(path.mean_costs, path.fold_weights @ path.fold_costs)
        assert path.radius == path.radii[np.argmin(path.mean_costs)]
        differs += path.radius != path.radii[np.argmin(path.fold_costs.mean(axis=0))]
    assert differs > 0  # else the weights of the folds would not have been put to the test


@pytest.mark.parametrize("order", [1, 2])
def test_fold_costs_are_those_of_an_exact_solve(data, folds, monkeypatch, order):
    monkeypatch.setattr(selection, "FOLD_GAP", 1e-4)
    monkeypatch.setattr(selection, "FOLD_STEPS", 200_000)
    path = choose_radius(problems(data.X, data.y, order=order), seed=0)
    column = 4
    by_held_out = {tuple(fold[2]): fold for fold in folds}
    exact = []
    for problem, kept, held_out in by_held_out.values():
        training = problem.subset(kept).at_radius(float(path.radii[column]))
        found = Exact(gap_tol=1e-6).solve_affine(training)
        r = problem.contexts[held_out] @ found.theta + found.intercept - problem.outcomes[held_out]
        exact.append(np.average(np.maximum(0.2 * r, -r), weights=problem.weights[held_out]))
    np.testing.assert_allclose(np.sort(path.fold_costs[:, column]), np.sort(exact), rtol=0.01)


def test_costs_of_products_are_added(data):
    outcomes = np.column_stack([data.y, data.y])
    both, one = (choose_radius(problems(data.X, y), seed=0) for y in (outcomes, data.y))
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
    np.testing.assert_array_equal(model.radius_path_.radii, [0.0])
    np.testing.assert_array_equal(model.radius_path_.mean_costs, [0.0])


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
    parts = problems(data.X, data.y)
    path = choose_correction(parts, seed=0)
    shares = path.radii / parts[0].collapse_radius()
    np.testing.assert_allclose(shares, [1.0, 0.6, 0.35, 0.2, 0.1, 0.03, 0.0])
    assert path.fold_costs.shape == (5, 7)
    assert path.fold_weights.sum() == pytest.approx(1.0)
    again = choose_correction(parts, seed=0)
    np.testing.assert_array_equal(again.fold_costs, path.fold_costs)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gain", [0.5, 0.9, 1.1, 3.0])
def test_a_correction_must_be_better_by_a_standard_error(data, monkeypatch, gain, weighted):
    weight = np.random.default_rng(1).exponential(size=60) if weighted else np.ones(60)
    parts = problems(data.X, data.y, weight)
    weights = parts[0].weights
    rng = np.random.default_rng(2)
    differences = rng.normal(size=60)
    differences -= weights @ differences
    error = np.sqrt(np.sum((weights * differences) ** 2))
    costs = np.tile(rng.normal(10.0, 1.0, size=(60, 1)), 7)
    costs[:, 3] -= differences + gain * error
    costs[:, 5] -= 0.4 * error
    monkeypatch.setattr(selection, "_held_out_costs", lambda *_: costs)
    path = choose_correction(parts, seed=0)
    assert path.radius == path.radii[3 if gain > 1.0 else 0]
    np.testing.assert_allclose(path.mean_costs, weights @ costs)


def test_heavy_rows_decide_which_correction_is_best(data, monkeypatch):
    weight = np.repeat([9.0, 1.0], 30)
    parts = problems(data.X, data.y, weight)
    heavy = parts[0].weights > 1.0 / 60
    costs = np.full((60, 7), 10.0)
    costs[heavy, 2] = 8.0  # best for a heavy half of the rows
    costs[~heavy, 4] = 5.0  # best for the rows, had they been equal
    monkeypatch.setattr(selection, "_held_out_costs", lambda *_: costs)
    path = choose_correction(parts, seed=0)
    assert path.radius == path.radii[2]


def test_a_worse_or_equal_correction_is_never_chosen(data, monkeypatch):
    parts = problems(data.X, data.y)
    costs = np.ones((60, 7))
    monkeypatch.setattr(selection, "_held_out_costs", lambda *_: costs)
    assert choose_correction(parts, seed=0).radius == radius_grid(parts)[0] > 0
    costs[:, 1:] += 1.0
    assert choose_correction(parts, seed=0).radius == radius_grid(parts)[0]


@pytest.mark.parametrize("order", [1, 2])
def test_noise_is_left_alone_and_signal_corrected(order):
    stayed = 0
    for seed in range(4):
        X, noise, signal = noise_and_signal(seed, n=100)
        path = choose_correction(problems(X, noise, order=order), seed=0)
        stayed += path.radius == path.radii[0]
        path = choose_correction(problems(X, signal, order=order), seed=0)
        assert path.radius < 0.5 * path.radii[0]
    assert stayed >= 3


def test_many_rows_are_sampled(data, folds, monkeypatch):
    monkeypatch.setattr(selection, "CORRECTION_ROWS", 40)
    parts = problems(data.X, data.y, np.random.default_rng(0).uniform(0.5, 2.0, 60))
    path = choose_correction(parts, seed=0)
    assert path.radii[0] == parts[0].collapse_radius()  # of all rows
    assert all(len(problem.outcomes) == 40 for problem, _, _ in folds)
    assert sum(len(held_out) for _, _, held_out in folds) == 40
    problem = folds[0][0]
    assert problem.weights.sum() == pytest.approx(1.0)
    kept = np.isin(parts[0].outcomes, problem.outcomes)
    np.testing.assert_array_equal(parts[0].outcomes[kept], problem.outcomes)
    np.testing.assert_allclose(problem.weights, parts[0].weights[kept] / parts[0].weights[kept].sum())
    chosen = {choose_correction(parts, seed).fold_costs.tobytes() for seed in (0, 0, 1)}
    assert len(chosen) == 2


def test_few_rows_are_not_asked_for_a_correction(data, folds):
    least = selection.CORRECTION_LEAST
    assert 2 <= least <= 60
    few = problems(data.X[: least - 1], data.y[: least - 1])
    path = choose_correction(few, seed=0)
    assert path.radius == radius_grid(few)[0] > 0
    np.testing.assert_array_equal(path.radii, [path.radius])
    assert not folds
    assert len(choose_correction(problems(data.X[:least], data.y[:least]), seed=0).radii) == 7
    assert len(folds) == 5


def test_there_is_no_correction_where_nothing_can_move():
    X = np.column_stack([np.ones(6), np.full(6, 2.0)])
    path = choose_correction(problems(X, np.arange(6.0)), seed=0)
    assert path.radius == 0.0
    np.testing.assert_array_equal(path.radii, [0.0])


def test_a_path_in_other_units(data):
    path = choose_correction(problems(data.X, data.y), seed=0)
    twice = path.times(2.0)
    np.testing.assert_array_equal(twice.radii, 2.0 * path.radii)
    assert twice.radius == 2.0 * path.radius > 0.0
    np.testing.assert_array_equal(twice.mean_costs, path.mean_costs)


def test_the_radius_of_a_forecast_is_a_share_of_its_own_collapse_radius(data):
    model = RobustNewsvendor().fit(data.X, data.y)
    errors = model.nominal_
    assert len(errors.weights) == 2 * 60  # smoothed
    collapse = problems(errors.contexts, errors.outcomes, errors.masses)[0].collapse_radius()
    assert model.radius_path_.radii[0] == pytest.approx(collapse)
    assert model.radius_ == model.radius_path_.radius
    assert model.radius_ in model.radius_path_.radii
