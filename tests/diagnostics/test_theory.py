"""The theory report: verdicts follow from assumptions, numbers from formulas."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.exceptions import NotFittedError

from surefoot import DASGD, Box, RobustNewsvendor, RobustPolicy, WassersteinBall, load
from surefoot.ambiguity.moves import best_moves
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.diagnostics import theory
from surefoot.diagnostics.theory_bounds import (
    convex_bound,
    judged,
    out_of_sample_bound,
    step_sizes,
    theorem_one_bound,
)
from surefoot.diagnostics.theory_constants import start, theorem_constants
from surefoot.exceptions import InvalidInputError, InvalidTypeError, UnsupportedProblemError
from surefoot.forecasts import Forecaster
from surefoot.nominals import Empirical
from surefoot.policies import MLP
from surefoot.problem import affine_forms


class Data:
    """Rows with a strong signal, and rows to judge on."""

    def __init__(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-2, 2, (2_120, 4)) + np.array([0.0, 3.0, 0.0, -1.0])
        y = X @ [1.0, 0.5, -0.5, 0.0] + rng.standard_normal(2_120)
        self.X, self.y, self.X_test, self.y_test = X[:120], y[:120], X[120:], y[120:]


@pytest.fixture(scope="module")
def data():
    return Data()


@pytest.fixture(scope="module")
def model(data):
    return RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)


@pytest.fixture(scope="module")
def smooth_model(data):
    """A model for which every assumption of Theorem 1 holds."""
    ball = WassersteinBall(0.02, support=Box(-50, 50))
    return RobustPolicy(Newsvendor(1.0, 0.2, smoothing=0.1), ball=ball, solver=DASGD(gap_tol=0.2)).fit(
        data.X, data.y
    )


def form_of(model, data):
    """What a model was fitted to, in the user's units of cost."""
    return affine_forms(model.problem_.around(Empirical(data.X, data.y)))[0].in_plain_units()


def verdicts(report):
    return {claim.name: claim.verdict for claim in report.claims}


class TestVerdicts:
    def test_defaults(self, data, model):
        report = theory(model, data.X, data.y)
        found = verdicts(report)
        assert [a.holds for a in report.assumptions] == [False, False, True, True]
        for name in (
            "Theorem 1",
            "Corollary 2",
            "Theorem 2",
            "Theorem 3",
            "Out-of-sample corollary",
            "Regret corollary",
        ):
            assert found[name] == "void"
        assert found["Regret bound"] == "holds"
        assert "compact support" in report.claim("Theorem 1").why
        assert "only contexts move" in report.claim("Theorem 2").why

    def test_all_assumptions_can_hold(self, data, smooth_model):
        few, many = (theory(smooth_model, data.X, data.y, steps=T) for T in (2_000, 10**9))
        assert all(a.holds for a in few.assumptions)
        assert few.constants.smoothing == 0.1
        assert verdicts(many)["Theorem 1"] == "holds"
        assert many.claim("Theorem 1").value < many.claim("Theorem 1").yardstick
        needed = many.step_sizes.steps_to_say_something
        assert (
            verdicts(theory(smooth_model, data.X, data.y, steps=int(1.01 * needed) + 1))["Theorem 1"]
            == "holds"
        )
        assert (
            verdicts(theory(smooth_model, data.X, data.y, steps=int(0.99 * needed)))["Theorem 1"]
            != "holds"
        )

    def test_order_one_has_no_curvature(self, data):
        model = RobustNewsvendor(1.0, 0.2, radius=0.1, order=1).fit(data.X, data.y)
        report = theory(model, data.X, data.y)
        assert not report.assumptions[2].holds
        assert report.constants.mu == 0.0
        assert report.claim("Theorem 1").value == math.inf

    def test_large_multipliers_are_needed_for_concavity(self, data):
        model = RobustNewsvendor(1.0, 0.2, radius=0.3).fit(data.X, data.y)
        report = theory(model, data.X, data.y, smoothing=0.05)
        assert report.constants.mu < 0
        assert not report.assumptions[2].holds

    def test_convex_bound_holds_for_many_steps_only(self, data, model):
        assert verdicts(theory(model, data.X, data.y, steps=10))["Convex bound"] == "vacuous"
        assert verdicts(theory(model, data.X, data.y, steps=10**8))["Convex bound"] == "holds"

    def test_moving_outcomes_are_far_away_too(self, data):
        ball = WassersteinBall(0.05, outcome_cost=2.0)
        moving = RobustPolicy(Newsvendor(1.0, 0.2), ball=ball).fit(data.X, data.y)
        assert "away or farther" in theory(moving, data.X, data.y).claim("Theorem 2").why

    def test_judged(self):
        assert judged(1.0, 2.0, None, "good") == ("holds", "good")
        assert judged(2.0, 2.0, None, "good")[0] == "vacuous"
        assert judged(math.nan, 2.0, None, "good")[0] == "vacuous"
        assert judged(1.0, 2.0, "bad", "good") == ("void", "bad")


class TestNumbers:
    def test_theorem_one_as_printed(self, make_affine):
        product = make_affine(0, radius=0.05)
        c = theorem_constants(product, np.array([0.2, 0.1, 0.0]), 3.0, lowest=0.0, smoothing=1.0)
        s = c.variance_theta + c.variance_gamma
        by_hand = (4 * math.sqrt(c.smoothness * s * c.gap_at_start) + 2) / 20 + 2 * math.sqrt(
            c.smoothness * c.gap_at_start / s
        ) / 400
        assert theorem_one_bound(c, 400) == pytest.approx(by_hand)
        sizes = step_sizes(c, 400, 0.5)
        assert sizes.theorem == pytest.approx(math.sqrt(c.gap_at_start / (c.smoothness * s * 400)))
        assert (sizes.largest, sizes.convex) == (1 / c.smoothness, 0.5)
        assert sizes.inner == pytest.approx(c.mu / ((c.l_tx**2 + 1) * 20))
        T = sizes.steps_to_say_something
        assert theorem_one_bound(c, T) <= c.gradient_squared * (1 + 1e-9)
        assert theorem_one_bound(c, T) == pytest.approx(c.gradient_squared) or step_sizes(
            c, T, 0.5
        ).theorem == pytest.approx(sizes.largest)

    @pytest.mark.parametrize("order", [1, 2])
    def test_convex_bound_is_never_exceeded_by_subgradient_steps(self, data, order):
        """Run plain stochastic subgradient steps on the robust cost and compare with R G / sqrt(T)."""
        model = RobustNewsvendor(1.0, 0.2, radius=0.2, order=order).fit(data.X, data.y)
        form = form_of(model, data)
        product = replace(form, contexts=form.contexts - form.weights @ form.contexts)
        parameters = model.parameters_
        goal = parameters.theta[:, 0] * product.scale
        centre = float(parameters.intercept[0] + data.X.mean(axis=0) @ parameters.theta[:, 0])
        bound, T = convex_bound(product, goal, centre), 400
        best, gaps = product.worst_value(goal, centre)[0], []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            theta, t = start(product)
            total, total_t = np.zeros_like(theta), 0.0
            for row in rng.integers(len(product.outcomes), size=T):
                total, total_t = total + theta / T, total_t + t / T
                u, x = subgradient(product, theta, t, row)
                theta, t = theta - bound.step(T) * u * x, t - bound.step(T) * u
            gaps.append(product.worst_value(total, total_t)[0] - best)
        assert np.mean(gaps) <= bound.gap(T)
        assert np.mean(gaps) >= bound.gap(T) / 100
        assert bound.regret(T) == pytest.approx(bound.gap(T) * T)

    def test_out_of_sample_bound_is_valid_and_shrinks(self, data, model):
        product = form_of(model, data)
        theta = model.parameters_.theta[:, 0] * product.scale
        bound = convex_bound(product, theta, float(model.parameters_.intercept[0]))
        nominal = model.cost(data.X, data.y)
        values = [out_of_sample_bound(product, bound, nominal, rows, 0.95) for rows in (120, 480)]
        assert values[0] - nominal == pytest.approx(2 * (values[1] - nominal))
        assert model.cost(data.X_test, data.y_test) <= values[0]

    def test_theorem_three_by_hand(self, data, model):
        report = theory(model, data.X, data.y, confidence=0.9)
        scale = data.X.std(axis=0)
        diameter = pdist(data.X / scale).max()
        slope = np.linalg.norm(model.parameters_.theta[:, 0] * scale)  # G = 1
        by_hand = slope * (math.sqrt(2 * (1 + diameter**2) * math.log(10) / 120) + 0.1)
        assert report.claim("Theorem 3").value == pytest.approx(by_hand)
        assert report.claim("Theorem 2").value == pytest.approx(
            1 - math.exp(-120 * 0.01 / (2 * (1 + diameter**2)))
        )


def subgradient(product, theta, t, row):
    """One row's step on the robust cost: the exact adversary at the optimal multiplier."""
    _, gamma = product.worst_value(theta, t)
    x = product.contexts[row]
    if product.order == 1:
        norm = np.linalg.norm(theta)
        u = product.pieces.up if x @ theta + t - product.outcomes[row] >= 0 else -product.pieces.down
        pull = product.radius * product.pieces.steepest * theta / norm if norm > 0 else 0.0
        return u, x + pull / u
    if gamma == 0.0:
        return (product.pieces.up if t >= product.outcomes[row] else -product.pieces.down), x
    answer = best_moves(product, theta, t, gamma)
    return answer.slope[row], x + answer.contexts[row]


class TestReport:
    def test_prints_every_number(self, data, model):
        report = theory(model, data.X, data.y)
        text = str(report)
        for name in (
            "l_tt",
            "l_xx",
            "mu",
            "smoothness",
            "variance_theta",
            "gap_at_start",
            "steps_to_say_something",
        ):
            assert name in text
        for claim in report.claims:
            assert claim.name in text
            assert claim.verdict in ("holds", "vacuous", "void")
        assert f"{report.steps:,} steps" in text
        gap = model.certificate_.upper - model.certificate_.lower
        assert 0.0 <= report.certified_gap <= gap + 1e-12

    def test_claims_are_found_by_name(self, data, model):
        with pytest.raises(
            InvalidInputError, match="name must be one of 'Theorem 1', .*, got 'Theorem 9'"
        ):
            theory(model, data.X, data.y).claim("Theorem 9")

    def test_rows_that_the_model_remembers(self, data, model):
        remembering = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)
        remembering.nominal_ = Empirical(data.X, data.y)
        assert str(theory(remembering)) == str(theory(model, data.X, data.y))

    def test_a_corrected_forecast_is_judged_by_its_errors(self, data):
        X, y = data.X[:40], data.y[:40]
        model = RobustNewsvendor(1.0, 0.2, nominal=Forecaster()).fit(X, y)
        assert model.problem_.policy.offset is not None
        assert len(model.nominal_.weights) == 120  # three atoms for each row
        report = theory(model)
        correction = model.parameters_.theta[:, 0] * model.scale_
        assert report.constants.parameter_norm == pytest.approx(np.linalg.norm(correction))
        gap = model.certificate_.upper - model.certificate_.lower
        assert 0.0 <= report.certified_gap <= gap + 1e-12
        # Rows split into atoms are still 40 rows.
        points = pdist(X / model.scale_).max()
        stated = 1 - math.exp(-40 * model.radius_**2 / (2 * (1 + points**2)))
        assert report.claim("Theorem 2").value == pytest.approx(stated)
        assert theory(model, X, y).constants.parameter_norm == report.constants.parameter_norm

    def test_a_loaded_model_needs_its_rows(self, data, model, tmp_path):
        model.save(tmp_path / "m.surefoot")
        loaded = load(tmp_path / "m.surefoot")
        with pytest.raises(InvalidInputError, match="X and y must be given where"):
            theory(loaded)
        assert theory(loaded, data.X, data.y).constants == theory(model, data.X, data.y).constants

    def test_products_are_reported_one_by_one(self, data):
        Y = np.column_stack([data.y, 2 * data.y])
        model = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, Y)
        one, two = (theory(model, data.X, Y, product=j, steps=100).constants for j in (0, 1))
        assert two.parameter_norm == pytest.approx(2 * one.parameter_norm, rel=0.1)
        with pytest.raises(InvalidInputError, match=r"product must be < 2, got 2\."):
            theory(model, data.X, Y, product=2)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"confidence": 1.0}, "confidence must be < 1, got 1.0."),
            ({"steps": 0}, "steps must be >= 1, got 0."),
            ({"smoothing": -1.0}, "smoothing must be >= 0, got -1.0."),
            ({"y": None}, "X and y must be given together, got one of them."),
        ],
    )
    def test_bad_options_are_named(self, data, model, options, message):
        with pytest.raises(InvalidInputError) as caught:
            theory(model, **({"X": data.X, "y": data.y} | options))
        assert str(caught.value) == message

    def test_refuses_what_it_has_no_constants_for(self, data):
        with pytest.raises(InvalidTypeError, match="model must be a fitted"):
            theory("model", data.X, data.y)
        with pytest.raises(NotFittedError):
            theory(RobustNewsvendor(), data.X, data.y)
        network = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)
        network.problem_ = replace(network.problem_, policy=MLP(hidden=(2,)))
        with pytest.raises(
            UnsupportedProblemError, match="no constants for this model: it needs a Linear"
        ):
            theory(network, data.X, data.y)


def test_a_forecast_is_subtracted_once():
    data = synthetic(n=120, s=5, seed=0)
    model = RobustNewsvendor(1.0, 0.2).fit(data.X, data.y)
    assert model.problem_.policy.offset is not None
    assert theory(model, data.X, data.y).certified_gap < 0.2  # seen: 0.08; subtracted twice: 0.56


def test_rows_with_equal_contexts_count_as_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (300, 1)).astype(float)
    model = RobustNewsvendor(nominal=Forecaster()).fit(X, X[:, 0] + rng.normal(size=300))
    diameter = 3.0 / model.scale_[0]
    stated = 1 - math.exp(-300 * model.radius_**2 / (2 * (1 + diameter**2)))
    assert theory(model).claim("Theorem 2").value == pytest.approx(stated)


def test_a_model_that_has_learned_on_is_asked_for_its_rows():
    # Bounds for all rows were once computed from the newest 20 of them.
    data = synthetic(n=100, s=3, seed=0)
    model = RobustNewsvendor(1.0, 0.2, radius=0.1, nominal=None).fit(data.X, data.y)
    assert not model.learned_on
    theory(model)
    model.partial_fit(data.X[:20], data.y[:20])
    with pytest.raises(InvalidInputError, match="after partial_fit it remembers the newest"):
        theory(model)
    theory(model, data.X, data.y)
