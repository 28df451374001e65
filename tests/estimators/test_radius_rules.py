"""Radius rules: what they state is measured, and the closed form is that of a convex program."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import norm

from surefoot import Box, Problem, WassersteinBall
from surefoot.costs import Newsvendor, Quadratic
from surefoot.estimators.paper_radius import paper_radius
from surefoot.estimators.radius_rules import (
    NORMAL_FROM,
    net_columns,
    profile_distances,
    ruled_radius,
    score_distance,
)
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import MLP, Linear
from surefoot.problem import affine_forms
from surefoot.random import rng_for

B, H = 1.0, 0.2


def sample(n, d, seed=0, theta_norm=2.0):
    rng = rng_for(seed, "rules", n, d)
    X = rng.uniform(-math.sqrt(3), math.sqrt(3), (n, d))
    theta = np.full(d, theta_norm / math.sqrt(d))
    return X, X @ theta + rng.standard_normal(n), theta


def problem_of(X, y, **options):
    intercept = options.pop("intercept", True)
    cost = options.pop("cost", Newsvendor(B, H))
    rows = Empirical(X, y, options.pop("weights", None))
    return Problem(cost, Linear(intercept=intercept), rows, WassersteinBall(0.0, **options))


def form_of(problem):
    """The first product, rows as they came, in the units of the ball."""
    return affine_forms(problem, merge=False)[0].in_plain_units()


def true_slopes(product, theta):
    residuals = product.residuals(theta * product.scale, norm.ppf(B / (B + H)))
    return np.where(residuals >= 0, H, -B)


class TestProfile:
    @pytest.mark.parametrize("order", [1, 2])
    @pytest.mark.parametrize(("n", "d"), [(30, 1), (30, 20), (100, 5)])
    def test_covers_the_score_of_the_best_policy_as_often_as_it_states(self, n, d, order):
        held = []
        for seed in range(400):
            X, y, theta = sample(n, d, seed)
            problem = problem_of(X, y, order=order)
            product = form_of(problem)
            radius = ruled_radius("profile", problem, confidence=0.8, draws=199, seed=seed).radius
            held.append(score_distance(product, true_slopes(product, theta)) <= radius)
        # Exactly 80 %: four standard errors of a share of 400 are 8 points.
        assert abs(np.mean(held) - 0.8) <= 0.08

    @pytest.mark.parametrize("order", [1, 2])
    def test_covers_without_an_intercept_and_far_from_zero(self, order):
        held = []
        for seed in range(400):
            rng = rng_for(seed, "no intercept")
            X = rng.uniform(1.0, 3.0, (40, 2))
            y = X @ [1.0, 1.0] + rng.standard_normal(40) - norm.ppf(B / (B + H))
            problem = problem_of(X, y, order=order, intercept=False)
            product = form_of(problem)
            slopes = np.where(X @ [1.0, 1.0] - y >= 0, H, -B)
            radius = ruled_radius("profile", problem, confidence=0.8, draws=199, seed=seed).radius
            held.append(score_distance(product, slopes) <= radius)
        assert abs(np.mean(held) - 0.8) <= 0.08

    def test_heavy_and_uneven_noise_changes_nothing(self):
        held = []
        for seed in range(400):
            rng = rng_for(seed, "heavy")
            X = rng.standard_normal((50, 3))
            noise = rng.standard_cauchy(50) * np.exp(X[:, 0])
            cut = np.tan(np.pi * (B / (B + H) - 0.5))
            y = X[:, 0] + noise - cut * np.exp(X[:, 0])  # so that the quantile is x_0, affine
            product = form_of(problem_of(X, y))
            slopes = np.where(X[:, 0] - y >= 0, H, -B)
            radius = ruled_radius(
                "profile", problem_of(X, y), confidence=0.8, draws=199, seed=seed
            ).radius
            held.append(score_distance(product, slopes) <= radius)
        assert abs(np.mean(held) - 0.8) <= 0.08

    @pytest.mark.parametrize("order", [1, 2])
    def test_shrinks_like_one_over_the_square_root_of_rows(self, order):
        small, large = (
            ruled_radius("profile", problem_of(*sample(n, 4)[:2], order=order)).radius
            for n in (100, 1600)
        )
        assert small / large == pytest.approx(4.0, rel=0.1)

    def test_grows_like_the_square_root_of_columns(self):
        few, many = (
            ruled_radius("profile", problem_of(*sample(2000, d)[:2]), confidence=0.5).radius
            for d in (25, 100)
        )
        assert many / few == pytest.approx(2.0, rel=0.05)

    def test_order_one_and_two_differ_by_their_slope_constants(self):
        X, y, _ = sample(80, 6)
        one, two = (ruled_radius("profile", problem_of(X, y, order=order)).radius for order in (1, 2))
        assert two / one == pytest.approx(max(B, H) / math.sqrt(B * H))

    def test_many_rows_use_the_normal_limit_of_the_same_law(self):
        X, y, _ = sample(NORMAL_FROM + 1, 3)
        product = form_of(problem_of(X, y))
        limit = profile_distances(product, 4000, rng_for(0, "limit"))
        u = np.where(rng_for(1, "u").random((2000, len(y))) < B / (B + H), H, -B)
        assert np.quantile(limit, [0.5, 0.95]) == pytest.approx(
            np.quantile(score_distance(product, u), [0.5, 0.95]), rel=0.06
        )

    def test_units_of_outcomes_do_not_matter_and_units_of_contexts_scale_the_radius(self):
        X, y, _ = sample(60, 4)
        radius = ruled_radius("profile", problem_of(X, y)).radius
        assert ruled_radius("profile", problem_of(X, 100 * y)).radius == pytest.approx(radius)
        assert ruled_radius("profile", problem_of(7 * X, y)).radius == pytest.approx(radius)
        own, seven = (ruled_radius("profile", problem_of(k * X, y, scale=False)).radius for k in (1, 7))
        assert seven == pytest.approx(7 * own)

    def test_intercept_and_frozen_columns_are_balanced_for_nothing(self):
        X, y, _ = sample(60, 4)
        shifted = ruled_radius("profile", problem_of(X + 50.0, y)).radius
        assert shifted == pytest.approx(ruled_radius("profile", problem_of(X, y)).radius)
        product = form_of(problem_of(X, y, frozen=(0, 2)))
        net = net_columns(product)
        free = np.column_stack([np.ones(60), product.contexts[:, [0, 2]]])
        assert abs(free.T @ net).max() < 1e-10
        assert net.shape == (60, 2)

    def test_more_columns_than_rows(self):
        X, y, theta = sample(15, 40)
        product = form_of(problem_of(X, y, intercept=False))
        u = true_slopes(product, theta)
        direct = np.linalg.norm(product.contexts.T @ u) / 15 / math.sqrt(B * H + (H - B) * u.mean())
        assert score_distance(product, u) == pytest.approx(direct)

    def test_several_products_hold_together(self):
        X, y, _ = sample(80, 3)
        both = Problem(
            Newsvendor([B, 2.0], [H, 0.5]),
            Linear(),
            Empirical(X, np.column_stack([y, -y])),
            WassersteinBall(0.0),
        )
        one = ruled_radius("profile", problem_of(X, y), confidence=0.975, seed=0).radius
        assert ruled_radius("profile", both, seed=0).radius >= one
        assert "every product" in ruled_radius("profile", both).statement

    def test_nothing_to_move(self):
        X, y, _ = sample(20, 2)
        rule = ruled_radius("profile", problem_of(X, y, frozen=(0, 1)))
        assert rule.radius == 0.0
        assert "no column moves" in rule.warnings[0]

    def test_box_is_warned_of(self):
        X, y, _ = sample(20, 2)
        assert "not proved" in ruled_radius("profile", problem_of(X, y, support=Box(-9, 9))).warnings[0]

    def test_repeats_from_its_seed(self):
        problem = problem_of(*sample(40, 3)[:2])
        assert ruled_radius("profile", problem, seed=3) == ruled_radius("profile", problem, seed=3)
        assert ruled_radius("profile", problem, seed=3) != ruled_radius("profile", problem, seed=4)

    @pytest.mark.parametrize("order", [1, 2])
    @pytest.mark.parametrize("intercept", [True, False])
    def test_a_weight_of_two_is_the_row_twice(self, order, intercept):
        X, y, _ = sample(20, 2)
        counts = np.arange(20) % 3 + 1
        options = {"order": order, "intercept": intercept}
        once = problem_of(X, y, weights=counts, **options)
        repeated = problem_of(np.repeat(X, counts, axis=0), np.repeat(y, counts), **options)
        rules = [ruled_radius("profile", problem) for problem in (once, repeated)]
        assert rules[0] == rules[1]
        fewer = ruled_radius("profile", problem_of(X, y, **options)).radius
        assert rules[0].radius == pytest.approx(fewer / math.sqrt(2), rel=0.15)

    def test_other_weights_are_no_counts(self):
        X, y, _ = sample(20, 2)
        plain = ruled_radius("profile", problem_of(X, y)).radius
        assert ruled_radius("profile", problem_of(X, y, weights=np.full(20, 0.5))).radius == plain

    def test_repeated_rows_have_the_normal_limit_of_the_same_law(self):
        X, y, _ = sample(NORMAL_FROM + 1, 2)
        counts = np.arange(len(y)) % 3 + 1.0
        product = form_of(problem_of(X, y, weights=counts))
        limit = profile_distances(product, 4000, rng_for(0, "limit"), counts)
        covered = rng_for(1, "u").binomial(counts.astype(int), B / (B + H), (1000, len(y))) / counts
        assert np.quantile(limit, [0.5, 0.95]) == pytest.approx(
            np.quantile(score_distance(product, covered * (B + H) - B), [0.5, 0.95]), rel=0.08
        )

    def test_it_says_that_compatibility_is_for_many_rows(self):
        statement = ruled_radius("profile", problem_of(*sample(20, 1)[:2])).statement
        assert "for many rows" in statement
        assert "20 rows" in statement

    def test_few_draws_still_reach_the_confidence(self):
        rule = ruled_radius("profile", problem_of(*sample(40, 3)[:2]), confidence=0.99, draws=1)
        draws = profile_distances(
            form_of(problem_of(*sample(40, 3)[:2])),
            100,
            rng_for(0, "profile", 0),
        )
        assert rule.radius == pytest.approx(draws.max())


class TestPaper:
    def test_a_weight_of_two_is_the_row_twice(self):
        X, y, _ = sample(40, 4)
        counts = np.arange(40) % 3 + 1
        once = ruled_radius("paper", problem_of(X, y, weights=counts))
        twice = ruled_radius("paper", problem_of(np.repeat(X, counts, axis=0), np.repeat(y, counts)))
        assert once.radius == pytest.approx(twice.radius)
        assert once.warnings == twice.warnings

    def test_is_the_corollary_as_printed(self):
        X, y, _ = sample(50, 3)
        problem = problem_of(X, y)
        diameter = pdist(X / X.std(axis=0)).max()
        assert ruled_radius("paper", problem).radius == pytest.approx(
            math.sqrt(-math.log(0.05) / 50 * 2 * (1 + diameter**2))
        )
        assert paper_radius(0.5, 100, 0.9) == pytest.approx(2 * 0.5 * math.sqrt(-math.log(0.1) / 100))

    def test_warns_of_what_it_cannot_do(self):
        text = " ".join(ruled_radius("paper", problem_of(*sample(100, 20)[:2])).warnings)
        assert "coverage 0 %" in text
        assert "nearest other one" in text
        assert "rho_max" in text
        assert "does not hold" in text

    def test_serves_any_policy(self):
        X, y, _ = sample(30, 3)
        network = Problem(Quadratic(), MLP(hidden=(4,)), Empirical(X, y), WassersteinBall(0.0))
        assert ruled_radius("paper", network).radius == ruled_radius("paper", problem_of(X, y)).radius

    def test_many_rows_bound_the_diameter(self):
        X, y, _ = sample(3500, 2)
        bound = ruled_radius("paper", problem_of(X, y, scale=False)).radius
        exact = paper_radius(pdist(X).max(), 3500)
        assert exact <= bound <= 2 * exact


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"rule": "auto"}, InvalidInputError, "rule must be 'profile' or 'paper', got 'auto'."),
            ({"confidence": 1.0}, InvalidInputError, "confidence must be < 1, got 1.0."),
            ({"confidence": 0.0}, InvalidInputError, "confidence must be > 0, got 0.0."),
            ({"confidence": math.nan}, InvalidInputError, "confidence must be > 0, got nan."),
            ({"draws": 0}, InvalidInputError, "draws must be >= 1, got 0."),
        ],
    )
    def test_bad_options_are_named(self, change, error, message):
        options = {"rule": "profile", "problem": problem_of(*sample(20, 2)[:2])} | change
        with pytest.raises(error) as caught:
            ruled_radius(**options)
        assert str(caught.value) == message

    def test_profile_needs_an_affine_policy(self):
        X, y, _ = sample(20, 2)
        network = Problem(Newsvendor(B, H), MLP(hidden=(4,)), Empirical(X, y), WassersteinBall(0.0))
        message = "no rule for this problem, use 'auto' or a number: .* needs a Linear policy, got MLP"
        with pytest.raises(UnsupportedProblemError, match=message):
            ruled_radius("profile", network)

    def test_rules_need_rows(self):
        nominal = Gaussian(np.zeros(3), np.eye(3))
        with pytest.raises(UnsupportedProblemError, match="rows of an Empirical nominal"):
            ruled_radius("paper", Problem(Newsvendor(B, H), Linear(), nominal, WassersteinBall(0.0)))


def test_weights_count_as_shares_of_the_score():
    X, y, _ = sample(30, 2)
    product = form_of(problem_of(X, y, scale=False, intercept=False, order=1))
    heavy = dataclasses.replace(product, weights=np.r_[0.5, np.full(29, 0.5 / 29)])
    u = np.where(np.arange(30) % 2, H, -B)
    assert score_distance(heavy, u) == pytest.approx(np.linalg.norm(heavy.weights * u @ X))
