"""DA-SGD on nominals without rows: against closed forms, and against the solution on all rows."""

import itertools
import math
import re

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from surefoot import DASGD, Box, Exact, Problem, WassersteinBall
from surefoot.costs import Newsvendor, Quadratic
from surefoot.datasets import synthetic
from surefoot.engines import affine_parts
from surefoot.engines.affine import Affine
from surefoot.engines.affine_lane import Lane, Seen
from surefoot.engines.engine import Options
from surefoot.exceptions import ConvergenceWarning, InvalidInputError, UnsupportedProblemError
from surefoot.nominals import (
    Empirical,
    Gaussian,
    Joint,
    Mixture,
    Nominal,
    Sampler,
    SmoothedBootstrap,
)
from surefoot.policies import Linear
from surefoot.problem import affine_forms, why_not_affine

B, H = 1.0, 0.2


def correlated(s, seed=0, noise=1.0):
    """A Gaussian with correlated contexts, far from zero, and an outcome that depends on all."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(s, s)) / np.sqrt(s)
    contexts = (root @ root.T + 0.5 * np.eye(s)) * np.outer(*[rng.uniform(0.2, 5, size=s)] * 2)
    theta = rng.normal(size=s) / np.sqrt(s) / np.sqrt(np.diag(contexts))
    cross = contexts @ theta
    covariance = np.block([[contexts, cross[:, None]], [cross, theta @ cross + noise**2]])
    return Gaussian(np.append(rng.normal(size=s), 10.0), covariance)


def question(nominal, *, intercept=True, smoothing=0.0, cost=None, **ball):
    cost = cost or Newsvendor(B, H, smoothing)
    return Problem(
        cost, Linear(intercept=intercept), nominal, WassersteinBall(**{"radius": 0.1, **ball})
    )


def solve(problem, seed=0, **options):
    return DASGD(**options).solve(problem, seed)


@pytest.fixture
def judged_by(monkeypatch):
    """Return what sets the number of rows that judge problems of so many columns."""

    def limit(rows, columns):
        monkeypatch.setattr(affine_parts, "JUDGING_NUMBERS", rows * columns)

    return limit


class ClosedForm:
    """The worst case of affine policies under a Gaussian nominal, from the moments alone.

    r = theta'x + t - y is Gaussian with mean m and deviation v, for which
    E max(h r, -b r) = h m + (b + h) (v phi(m/v) - m Phi(-m/v)). Order 1 adds rho max(b, h) ||theta||;
    order 2 is, for a multiplier gamma and q = ||theta||^2 / gamma,
    gamma rho^2 + E max(h r + h^2 q/4, -b r + b^2 q/4) = gamma rho^2 + E psi(r - (b-h) q/4) + b h q/4.
    """

    def __init__(self, nominal, radius, order=2, intercept=True):
        self.nominal, self.radius, self.order, self.intercept = nominal, radius, order, intercept
        self.scale = np.sqrt(np.diag(nominal.context_covariance))

    def expected_cost(self, theta, t):
        direction = np.append(theta, -1.0)
        m, v = (
            direction @ self.nominal.mean + t,
            math.sqrt(direction @ self.nominal.covariance @ direction),
        )
        return H * m + (B + H) * (v * stats.norm.pdf(m / v) - m * stats.norm.cdf(-m / v))

    def value(self, theta, t):
        norm = float(np.linalg.norm(theta * self.scale))
        if self.order == 1:
            return self.expected_cost(theta, t) + self.radius * max(B, H) * norm

        def at(log_gamma):
            gamma = math.exp(log_gamma[0])
            q = norm**2 / gamma / 4
            return gamma * self.radius**2 + self.expected_cost(theta, t - (B - H) * q) + B * H * q

        guess = math.log(math.sqrt(B * H) * max(norm, 1e-9) / (2 * max(self.radius, 1e-9)))
        return float(minimize(at, [guess], method="Nelder-Mead", options={"xatol": 1e-6}).fun)

    def optimum(self):
        """Minimise over policies; with a free intercept order 2 adds rho sqrt(bh) ||theta||."""
        price = max(B, H) if self.order == 1 else math.sqrt(B * H)

        def at(parameters):
            theta, t = parameters[:-1] / self.scale, parameters[-1] if self.intercept else 0.0
            if not self.intercept and self.order == 2:
                return self.value(theta, 0.0)
            norm = math.sqrt(parameters[:-1] @ parameters[:-1] + 1e-18)
            return self.expected_cost(theta, t) + self.radius * price * norm

        start = np.append(np.full(len(self.scale), 0.1), self.nominal.outcome_mean[0])
        return float(minimize(at, start, method="BFGS", options={"gtol": 1e-7}).fun)

    def of(self, solution):
        return self.value(solution.parameters.theta[:, 0], solution.parameters.intercept[0])


# Against the closed form


@pytest.mark.parametrize(
    ("s", "radius", "order", "intercept"),
    [
        (2, 0.1, 2, True),
        (8, 0.1, 1, True),
        (8, 0.0, 2, True),
        (4, 0.1, 1, False),
        (2, 0.1, 2, False),
        pytest.param(8, 0.02, 2, True, marks=pytest.mark.nightly),
        pytest.param(8, 0.3, 2, True, marks=pytest.mark.nightly),
        pytest.param(40, 0.1, 2, True, marks=pytest.mark.nightly),
    ],
)
def test_a_gaussian_nominal_is_solved_to_the_tolerance(s, radius, order, intercept):
    nominal = correlated(s, seed=s)
    truth = ClosedForm(nominal, radius, order, intercept)
    solution = solve(question(nominal, radius=radius, order=order, intercept=intercept))
    best, certificate = truth.optimum(), solution.certificate
    assert solution.converged
    assert solution.status.startswith("DASGD converged after ")
    assert "(estimated gap " in solution.status
    assert certificate.gap <= 0.01
    assert -1e-6 <= truth.of(solution) / best - 1 <= 0.01
    error = float(re.search(r"standard error ([\d.e-]+)", certificate.message)[1])
    assert 0 < error < 0.03 * best
    assert abs(certificate.upper - truth.of(solution)) < 4 * error
    assert certificate.lower < best + 4 * error


def test_more_steps_come_closer_to_the_true_optimum():
    nominal = correlated(10, seed=3)
    truth = ClosedForm(nominal, 0.1)
    best = truth.optimum()
    rough, fine = (
        truth.of(solve(question(nominal), gap_tol=gap_tol)) / best - 1 for gap_tol in (0.05, 1e-3)
    )
    assert fine < rough / 2
    assert fine < 1e-3


def test_the_gap_overestimates_the_true_one_on_average(judged_by):
    nominal = correlated(5, seed=1)
    truth = ClosedForm(nominal, 0.1)
    best = truth.optimum()
    problem = question(nominal)
    judged_by(500, columns=5)
    solutions = [solve(problem, seed=seed, gap_tol=0.1) for seed in range(20)]
    assert all("500 draws of the nominal" in one.certificate.message for one in solutions)
    certified = np.mean([solution.certificate.gap for solution in solutions])
    assert certified > np.mean([truth.of(solution) / best - 1 for solution in solutions])
    lowers = [solution.certificate.lower for solution in solutions]
    assert np.mean(lowers) < best + 3 * np.std(lowers) / math.sqrt(20)


@pytest.mark.parametrize("limits", [None, Box(-np.inf, 10.0)], ids=["free", "limits"])
def test_the_standard_error_is_that_of_the_upper_value(judged_by, limits):
    nominal, policy = correlated(3, seed=1), Linear(decisions=limits)
    problem = Problem(Newsvendor(B, H), policy, nominal, WassersteinBall(0.1))
    judged_by(400, columns=3)
    solutions = [solve(problem, seed=seed, gap_tol=0.1) for seed in range(60)]
    uppers = [solution.certificate.upper for solution in solutions]
    errors = [float(re.search(r"error ([\d.e-]+)", s.certificate.message)[1]) for s in solutions]
    assert np.std(uppers) == pytest.approx(np.mean(errors), rel=0.3)


# Against the solution on all rows


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"order": 1},
        {"outcome_cost": 2.0},
        {"frozen": (0,)},
        {"scale": False},
        {"support": Box(-0.5, 1.5), "radius": 0.05},
    ],
    ids=str,
)
def test_draws_of_rows_lead_to_the_answer_on_all_rows(options):
    data = synthetic(60, 4, seed=0, test=1)
    rows = Empirical(data.X, data.y)
    drawn = Sampler(rows.sample, n_columns=4)
    exact = Exact().solve(question(rows, **options))
    solution = solve(question(drawn, **options), gap_tol=0.02)
    (form,), found = affine_forms(question(rows, **options)), solution.parameters
    policy = form.from_user_units(found.theta[:, 0], found.intercept[0])
    value = form.worst_value(*policy)[0] * form.value_unit
    assert exact.certificate.lower <= value <= 1.03 * exact.certificate.upper


def test_two_products_are_two_problems():
    both = correlated(3, seed=2)
    mean = np.append(both.mean, 2 * both.mean[-1])
    covariance = np.block(
        [[both.covariance, both.covariance[:, -1:] * 0], [both.covariance[-1:] * 0, np.eye(1)]]
    )
    nominal = Gaussian(mean, covariance, n_products=2)
    cost = Newsvendor([B, B], [H, H])
    solution = solve(question(nominal, cost=cost), gap_tol=5e-3)
    assert solution.parameters.theta.shape == (3, 2)
    alone = [
        ClosedForm(Gaussian(mean[keep], covariance[np.ix_(keep, keep)]), 0.1)
        for keep in ([0, 1, 2, 3], [0, 1, 2, 4])
    ]
    total = sum(
        one.value(solution.parameters.theta[:, j], solution.parameters.intercept[j])
        for j, one in enumerate(alone)
    )
    best = sum(one.optimum() for one in alone)
    assert -1e-6 <= total / best - 1 <= 5e-3
    assert solution.n_steps == 2 * solution.history[-1].steps


def test_smoothed_costs_and_minibatches():
    nominal = correlated(4, seed=4)
    best = ClosedForm(nominal, 0.1).optimum()
    smooth = solve(question(nominal, smoothing=0.05), gap_tol=0.03)
    assert smooth.certificate.upper == pytest.approx(best, rel=0.05)
    batch = solve(question(nominal), minibatch=8)
    assert ClosedForm(nominal, 0.1).of(batch) / best - 1 < 0.005
    assert batch.n_steps == batch.history[-1].steps


@pytest.mark.parametrize(
    "nominal",
    [
        Mixture([correlated(3, seed=1), correlated(3, seed=2)], [0.3, 0.7]),
        SmoothedBootstrap(*correlated(3, seed=1).sample(np.random.default_rng(0), 40)),
        Joint(stats.multivariate_t(np.zeros(4), np.eye(4) + 0.5, df=5)),
        Gaussian.fit(*correlated(3, seed=1).sample(np.random.default_rng(0), 40)),
    ],
    ids=lambda nominal: type(nominal).__name__,
)
def test_every_nominal_is_solved(nominal):
    solution = solve(question(nominal))
    assert solution.converged
    assert solution.certificate.kind == "estimate"
    assert "20,000 draws of the nominal" in solution.certificate.message


def test_a_feature_map_sees_draws():
    def curve(rng, size):
        x = rng.uniform(-1, 1, size=(size, 1))
        return x, 5 * x[:, 0] ** 2 + rng.normal(size=size)

    nominal = Sampler(curve, n_columns=1)
    ball = WassersteinBall(0.02)
    policies = (Linear(), Linear(features=lambda X: np.hstack([X, X**2])))
    straight, curved = (
        solve(Problem(Newsvendor(B, H), policy, nominal, ball)).certificate.upper for policy in policies
    )
    assert curved < 0.8 * straight


# Fresh rows


class Counting(Nominal):
    """Standard normal pairs that remember how they were asked for."""

    n_columns, n_products = 3, 1

    def __init__(self):
        self.sizes = []

    def sample(self, rng, size):
        self.sizes.append(size)
        X = rng.normal(size=(size, 3))
        return X, (X.sum(axis=1) + rng.normal(size=size))[:, None]


def test_rows_are_drawn_once_and_in_chunks_of_one_size(monkeypatch, judged_by):
    monkeypatch.setattr(affine_parts, "CHUNK_NUMBERS", 3 * 1_000)
    judged_by(3_000, columns=3)
    nominal = Counting()
    with pytest.warns(ConvergenceWarning, match="^DASGD ran out of steps .* raise max_steps"):
        solution = solve(question(nominal), gap_tol=1e-7, max_steps=20_000, minibatch=2)
    trial, evaluation, *fresh = nominal.sizes
    assert (trial, evaluation) == (1, 3_000)
    assert max(fresh) == 1_000
    assert sum(fresh) == 2 * 20_000
    assert solution.n_steps == 20_000
    steps = [check.steps for check in solution.history]
    assert steps == [0, 2_048, 6_144, 14_336, 20_000]


def test_the_policy_is_the_average_over_the_newest_block(monkeypatch, judged_by):
    judged_by(1_000, columns=3)
    problem = question(correlated(3))
    with pytest.warns(ConvergenceWarning):
        whole = solve(problem, gap_tol=1e-9, max_steps=4_096)
    monkeypatch.setattr(affine_parts, "CHUNK_NUMBERS", 3 * 512)
    with pytest.warns(ConvergenceWarning):
        parts = solve(problem, gap_tol=1e-9, max_steps=4_096)
    np.testing.assert_allclose(parts.parameters.theta, whole.parameters.theta, rtol=1e-9)
    np.testing.assert_allclose(parts.parameters.intercept, whole.parameters.intercept, rtol=1e-9)


def test_the_judging_rows_do_not_teach(monkeypatch, judged_by):
    judging, taught, step = [], [], Lane.step

    def watched(lane, theta, numbers, form, rows, draws):
        judging.append(lane.form.contexts)
        taught.append(form.contexts)
        return step(lane, theta, numbers, form, rows, draws)

    monkeypatch.setattr(Lane, "step", watched)
    judged_by(1_000, columns=3)
    solve(question(correlated(3)), gap_tol=0.05)
    judges = np.concatenate(judging)[:, 0].tolist()
    assert len(set(judges)) == 1_000
    assert set(judges).isdisjoint(np.concatenate(taught)[:, 0].tolist())


def test_the_answer_depends_on_the_seed_alone(judged_by):
    judged_by(1_000, columns=3)
    problem = question(correlated(3))
    one, same, other = (solve(problem, seed=seed, gap_tol=0.05) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.parameters.theta, same.parameters.theta)
    assert one.certificate == same.certificate
    assert (one.parameters.theta != other.parameters.theta).all()


def test_a_lane_keeps_the_best_policy(make_affine):
    form = make_affine(1, rows=200, radius=0.1)
    lane = Lane(form, Options(), rotate=False)
    (decision, slopes), zero = form.constant_order(), np.zeros(3)
    start = lane.upper
    lane.take(Seen((zero, decision + 50.0), slopes))
    assert (lane.upper, lane.policy[1]) == (start, decision)
    lane.take(Seen((np.full(3, np.nan), np.nan), np.full(200, np.nan)))
    assert lane.upper == start
    assert lane.lower == form.lower_bound(slopes)
    best = Exact().solve_form(form)
    lane.take(Seen(best.policy, best.slopes))
    assert lane.upper < start
    assert lane.policy[0] is best.theta


# How runs end


def test_an_interrupt_returns_the_best_so_far():
    def stop(progress):
        if progress.steps > 0:
            raise KeyboardInterrupt

    problem = question(correlated(10))
    with pytest.warns(ConvergenceWarning, match="^DASGD was interrupted after 2,048 steps"):
        solution = solve(problem, gap_tol=1e-5, callback=stop)
    assert solution.status.endswith("the best policy so far is returned.")
    assert solution.parameters.theta.any()
    assert solution.certificate.upper == solution.history[-1].upper < solution.history[0].upper


def test_an_interrupt_while_rows_are_drawn_returns_the_best_so_far():
    calls = []

    def impatient(rng, size):
        calls.append(size)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return correlated(3).sample(rng, size)

    with pytest.warns(ConvergenceWarning, match="^DASGD was interrupted after 2,048 steps"):
        solution = solve(question(Sampler(impatient, 3)), gap_tol=1e-5)
    assert solution.parameters.theta.any()


def test_a_gap_that_the_rows_cannot_tell_ends_the_run(judged_by):
    judged_by(500, columns=20)
    message = "^DASGD stopped after .*500 rows cannot tell so small a gap; loosen gap_tol"
    with pytest.warns(ConvergenceWarning, match=message):
        solution = solve(question(correlated(20)), gap_tol=1e-3)
    assert not solution.converged
    assert solution.n_steps < 1_000_000


def test_stalling_needs_more_than_one_poor_check():
    engine = Affine([question(correlated(2))], [0], Options(gap_tol=0.01))

    def has_stalled(*gaps, steps=80_000):
        return engine.why_stop(gaps, steps) is not None

    assert has_stalled(0.3, 0.021, 0.0208, 0.0207)
    assert not has_stalled(0.3, 0.03, 0.021, 0.0208)
    assert not has_stalled(0.3, 0.2, 0.1)
    assert not has_stalled(0.02, 0.02)
    assert not has_stalled(0.3, 0.021, 0.0208, 0.0207, steps=79_999)  # four for each judging row


def test_progress_is_reported():
    seen = []
    solution = solve(question(correlated(10)), callback=seen.append)
    assert tuple(seen) == solution.history
    assert seen[0].steps == 0
    assert all(before.upper >= after.upper for before, after in itertools.pairwise(seen))
    assert all(before.lower <= after.lower for before, after in itertools.pairwise(seen))


def test_a_constant_policy_is_found_at_once_beyond_the_collapse_radius():
    solution = solve(question(correlated(3), radius=20.0))
    assert solution.converged
    assert solution.n_steps == 0
    assert not solution.parameters.theta.any()


def test_limits_on_decisions_add_what_they_make_unavoidable():
    nominal = correlated(3)
    most = float(nominal.outcome_mean[0])
    policy = Linear(decisions=Box(-np.inf, most))
    problem = Problem(Newsvendor(B, H), policy, nominal, WassersteinBall(0.1))
    solution = solve(problem)
    spread = math.sqrt(float(nominal.outcome_covariance[0, 0]))
    unavoidable = B * spread * stats.norm.pdf(0.0)  # E max(y - most, 0) for a Gaussian y
    message = solution.certificate.message
    assert float(re.search(r"best\. ([\d.]+) of it", message)[1]) == pytest.approx(
        unavoidable, rel=0.03
    )
    assert solution.certificate.lower > unavoidable * 0.97
    X, y = nominal.sample(np.random.default_rng(5), 200_000)
    z = policy.decide(solution.parameters, X)
    realised = np.maximum(H * (z - y), B * (y - z)).mean()
    assert z.max() <= most
    error = float(re.search(r"error ([\d.e-]+)", message)[1])
    assert unavoidable < realised < solution.certificate.upper + 3 * error


# Columns


def test_names_of_a_nominal_freeze_columns(judged_by):
    judged_by(1_000, columns=3)
    nominal = correlated(3)
    named = Gaussian(nominal.mean, nominal.covariance, names=["price", "rain", "sun"])
    by_name, by_place = (
        solve(question(q, frozen=frozen), gap_tol=0.05).certificate
        for q, frozen in ((named, ("rain",)), (nominal, (1,)))
    )
    assert by_name == by_place
    assert by_name.upper < solve(question(named), gap_tol=0.05).certificate.upper
    with pytest.raises(InvalidInputError, match="X has no column names"):
        solve(question(nominal, frozen=("rain",)))


def test_a_constant_column_stays():
    nominal = correlated(2)
    mean, covariance = np.insert(nominal.mean, 0, 7.0), np.zeros((4, 4))
    covariance[1:, 1:] = nominal.covariance
    problem = question(Gaussian(mean, covariance))
    solution = solve(problem, gap_tol=0.03)
    (lane,) = Affine([problem], [0], Options()).lanes
    assert lane.form.movable.tolist() == [False, True, True]
    assert ClosedForm(nominal, 0.1).optimum() == pytest.approx(solution.certificate.upper, rel=0.05)


# Bad input


def test_a_sampler_that_fails_in_mid_run_says_so():
    calls = []

    def rotten(rng, size):
        calls.append(size)
        X, y = correlated(3).sample(rng, size)
        if len(calls) > 3:
            X[7, 1] = np.nan
        return X, y

    message = "fn's contexts must be finite (no NaN, no infinity), got NaN in row 7, column 1."
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        solve(question(Sampler(rotten, 3)), gap_tol=1e-6)


def test_a_nominal_of_the_user_s_own_is_checked_too():
    class Short(Counting):
        def sample(self, rng, size):
            X, y = super().sample(rng, size)
            return X[1:], y

    message = (
        "Short.sample must return contexts of shape (1, 3) and outcomes of shape (1, 1), "
        "got shapes (0, 3) and (1, 1)."
    )
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        solve(question(Short()))


def test_draws_outside_the_support_are_refused():
    with pytest.raises(InvalidInputError, match="support must contain every context"):
        solve(question(correlated(3), support=Box(-1, 1)))


def test_seeds_are_checked_by_name():
    with pytest.raises(InvalidInputError, match="^seed must be >= 0, got -1"):
        solve(question(correlated(2)), seed=-1)


def test_inner_steps_need_rows():
    solver, reason = DASGD(inner_steps=2), "inner_steps > 0 needs an Empirical nominal"
    assert solver.why_not(question(correlated(2))).startswith(reason)
    with pytest.raises(UnsupportedProblemError, match=f"^DASGD cannot solve this: {reason}"):
        solver.solve(question(correlated(2)))


def test_whether_a_problem_is_affine_does_not_depend_on_its_nominal():
    assert why_not_affine(question(correlated(2))) is None
    reason = "it needs a piecewise linear cost such as Newsvendor, got Quadratic"
    assert why_not_affine(question(correlated(2), cost=Quadratic())) == reason
    with pytest.raises(UnsupportedProblemError, match="needs an Empirical nominal, got Gaussian"):
        affine_forms(question(correlated(2)))
