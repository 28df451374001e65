"""What is proved about policies of any kind; NumPy alone, so any moves can be handed in."""

import numpy as np
import pytest
from scipy.optimize import minimize

from surefoot import Box, Problem, WassersteinBall
from surefoot.ambiguity import Adversary
from surefoot.certificates import certify_general, dual_value, growth_power, move_distances
from surefoot.certificates.general import in_ball, inner_concavity, lower_bound
from surefoot.costs import MeanCVaR, Newsvendor, Pricing, Quadratic
from surefoot.nominals import Empirical, Gaussian
from surefoot.policies import MLP, Linear
from surefoot.problem import general_form
from surefoot.sets import Simplex
from tests.oracles.portfolio import best_portfolio

THETA, INTERCEPT, RADIUS = np.array([0.8, -0.3]), 2.0, 0.3


def make_form(cost=None, policy=None, radius=RADIUS, nominal=None, **ball):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) * [1.0, 5.0]
    y = 2.0 + X @ [1.0, -0.1] + rng.normal(size=40)
    nominal = nominal or Empirical(X, y, rng.uniform(0.5, 1.5, size=40))
    return general_form(
        Problem(cost or Quadratic(), policy or Linear(), nominal, WassersteinBall(radius, **ball))
    )


def affine(form):
    """An affine policy in the engine's units, whose scaled slope is THETA."""
    units = form.units
    theta = THETA / form.scale
    return {
        "theta": (theta * units.spread)[:, None],
        "intercept": INTERCEPT + units.mean @ theta - units.centre,
    }


def adversary(form, gamma, contexts, outcomes, rows=None):
    """Rows moved to these places; what it says of values is not asked for."""
    rows = np.arange(len(form.weights)) if rows is None else rows
    distances = move_distances(form, contexts - form.contexts, outcomes - form.outcomes)
    return Adversary(
        value=np.nan, expected_cost=np.nan, multiplier=np.array([gamma]), transport_cost=np.zeros(1),
        rows=rows, products=np.zeros(len(rows), dtype=np.int64), contexts=contexts[rows],
        outcomes=outcomes[rows], weights=form.weights[rows], distances=distances[rows],
    )  # fmt: skip


def moved(form, gamma, share=1.0, at=None):
    """Rows at a share of their best move under a quadratic cost, and the slope that is left.

    ``at`` is the multiplier that the adversary is given, if it is another than the moves'.
    """
    X, y = form.contexts, form.outcomes
    residuals = X @ (THETA / form.scale) + INTERCEPT - y[:, 0]
    moving = np.where(form.movable, THETA, 0.0)
    m = moving @ moving
    moves = share * np.outer(residuals / (gamma - m), moving)
    after = residuals + moves @ moving
    left = 2.0 * np.outer(after, moving) - 2.0 * gamma * moves
    rows = adversary(form, gamma if at is None else at, X + moves * form.scale, y)
    return rows, np.linalg.norm(left, axis=1), residuals, np.sqrt(m)


def best_gamma(form, size):
    """Of the closed form: m + m sqrt(E r^2) / rho."""
    _, _, _, m = moved(form, 10.0)
    return m**2 + m * size / RADIUS


@pytest.mark.parametrize("frozen", [(), (0,)], ids=["free", "frozen"])
@pytest.mark.parametrize("share", [1.0, 0.98, 0.0])
def test_a_bound_holds_however_badly_rows_were_moved(frozen, share):
    form = make_form(frozen=frozen)
    _, _, residuals, m = moved(form, 10.0)
    size = np.sqrt(form.weights @ residuals**2)
    true = (size + RADIUS * m) ** 2
    gamma = best_gamma(form, size)
    rows, left, _, _ = moved(form, gamma, share)
    certificate = certify_general(form, affine(form), np.zeros(0), rows, left)
    assert certificate.kind == "bound"
    assert certificate.upper >= true * (1 - 1e-12)
    if share == 1.0:
        assert certificate.upper == pytest.approx(true, rel=1e-9)
    if share == 0.98:
        assert certificate.upper <= 1.01 * true
        assert dual_value(form, affine(form), np.zeros(0), rows) < true
    assert (certificate.lower, certificate.gap) == (0.0, np.inf)
    assert f"at most {certificate.upper:.6g}" in certificate.message


def test_any_multiplier_above_the_curvature_gives_a_bound():
    form = make_form()
    _, _, residuals, m = moved(form, 10.0)
    true = (np.sqrt(form.weights @ residuals**2) + RADIUS * m) ** 2
    for gamma in (1.1 * m**2, 5.0, 100.0):
        rows, left, _, _ = moved(form, gamma)
        certificate = certify_general(form, affine(form), np.zeros(0), rows, left)
        assert certificate.kind == "bound"
        assert certificate.upper >= true


@pytest.mark.parametrize(
    ("options", "gamma"),
    [
        ({}, 0.5),  # below the curvature, 2 * 0.73 > 2 gamma
        ({"cost": Newsvendor(1.0, 0.2)}, 3.0),
        ({"order": 1, "support": Box(-99, 99)}, 3.0),
        ({"outcome_cost": 2.0}, 1.0),  # above the curvature of contexts, below that with outcomes
        ({"policy": Linear(decisions=Box(0, 9))}, 3.0),
    ],
    ids=["curved", "kinked", "order one", "outcomes", "limits"],
)
def test_what_is_not_known_to_be_concave_is_an_estimate(options, gamma):
    form = make_form(**options)
    rows, left, _, _ = moved(form, 3.0, at=gamma)
    trained = affine(form)
    assert inner_concavity(form, trained, gamma) is None
    certificate = certify_general(form, trained, np.zeros(0), rows, left)
    assert certificate.kind == "estimate"
    assert "no bound is proved" in certificate.message
    assert certificate.upper == pytest.approx(dual_value(form, trained, np.zeros(0), rows), rel=1e-14)


def test_the_concavity_is_what_the_multiplier_leaves():
    form = make_form()
    mu = inner_concavity(form, affine(form), 3.0)
    assert mu == pytest.approx(6.0 - 2.0 * THETA @ THETA, rel=1e-12)
    frozen = make_form(frozen=(0,))
    assert inner_concavity(frozen, affine(frozen), 3.0) == pytest.approx(6.0 - 2.0 * 0.09, rel=1e-12)
    mlp = make_form(policy=MLP((8,)))
    assert inner_concavity(mlp, mlp.policy.initial(np.random.default_rng(0), 2, 1), 1e9) is None


@pytest.mark.parametrize("gamma", [1.3, 2.0, 5.0])
def test_a_bound_holds_where_outcomes_move_too(gamma):
    kappa = 2.0
    form = make_form(outcome_cost=kappa)
    residuals = form.contexts @ (THETA / form.scale) + INTERCEPT - form.outcomes[:, 0]
    steep = np.append(THETA, -1.0 / np.sqrt(kappa))
    m = steep @ steep
    assert inner_concavity(form, affine(form), gamma) == pytest.approx(2.0 * gamma - 2.0 * m)
    moves = 0.9 * np.outer(residuals / (gamma - m), steep)  # not quite where they cost most
    left = 2.0 * np.outer(residuals + moves @ steep, steep) - 2.0 * gamma * moves
    outcomes = form.outcomes + moves[:, 2:] / np.sqrt(kappa)
    rows = adversary(form, gamma, form.contexts + moves[:, :2] * form.scale, outcomes)
    certificate = certify_general(form, affine(form), np.zeros(0), rows, np.linalg.norm(left, axis=1))
    assert certificate.kind == "bound"
    true = (np.sqrt(form.weights @ residuals**2) + RADIUS * np.sqrt(m)) ** 2
    assert certificate.upper >= true * (1 - 1e-12)


def test_an_estimate_beside_a_lower_bound_says_why_there_is_no_gap():
    form = make_form(outcome_cost=2.0)
    rows, left, _, _ = moved(form, 3.0, at=1.0)
    stay = adversary(form, 1.0, form.contexts, form.outcomes)
    found = certify_general(form, affine(form), np.zeros(0), rows, left, stay)
    assert (found.kind, found.gap) == ("estimate", np.inf)
    assert 0.0 < found.lower < found.upper
    assert f"No policy of this family has one below {found.lower:.6g}, but that no" in found.message


@pytest.mark.parametrize(
    ("rows", "reason"),
    [(2, "a linear policy of 3 parameters can meet each of 2 moved rows"), (40, "")],
)
def test_without_a_lower_bound_the_certificate_says_why(rows, reason):
    rng = np.random.default_rng(0)
    few = Empirical(rng.normal(size=(rows, 2)) * [1.0, 5.0], rng.normal(size=rows))
    form = make_form(nominal=few)
    moves, left, _, _ = moved(form, 3.0)
    stay = adversary(form, 3.0, form.contexts, form.outcomes)
    found = certify_general(form, affine(form), np.zeros(0), moves, left, stay)
    assert found.kind == "bound"
    if reason:
        assert found.message.endswith(f"is not proved (no lower bound: {reason}).")
        assert (found.lower, found.gap) == (0.0, np.inf)
    else:
        assert "no lower bound" not in found.message
        assert found.gap < np.inf


def test_a_lower_bound_of_next_to_nothing_is_none():
    """Least squares leave rounding of rows that a policy meets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 2))
    form = make_form(nominal=Empirical(X, X @ [1.0, 2.0] + 1e-6 * rng.normal(size=5)))
    moves, left, _, _ = moved(form, 3.0)
    stay = adversary(form, 3.0, form.contexts, form.outcomes)
    assert 0.0 < lower_bound(form, stay) < 1e-9
    assert certify_general(form, affine(form), np.zeros(0), moves, left, stay).lower == 0.0


def test_some_rows_prove_nothing_about_the_others():
    form = make_form()
    rows, left, _, _ = moved(form, 3.0)
    some = adversary(form, 3.0, form.contexts, form.outcomes, rows=np.arange(20))
    assert certify_general(form, affine(form), np.zeros(0), rows, left).kind == "bound"
    assert certify_general(form, affine(form), np.zeros(0), some, left[:20]).kind == "estimate"
    sampled = make_form(nominal=Gaussian([0.0, 0.0, 1.0], np.eye(3)))
    rows, left, _, _ = moved(sampled, 3.0)
    assert certify_general(sampled, affine(sampled), np.zeros(0), rows, left).kind == "estimate"


def test_rows_without_weight_need_not_be_moved():
    whole = make_form()
    rows = Empirical(whole.contexts, whole.outcomes, np.where(np.arange(40) < 25, 1.0, 0.0))
    form = make_form(nominal=rows)
    moves, left, residuals, m = moved(form, 3.0)
    some = adversary(form, 3.0, moves.contexts, moves.outcomes, rows=np.arange(25))
    certificate = certify_general(form, affine(form), np.zeros(0), some, left[:25])
    assert certificate.kind == "bound"
    assert certificate.upper >= (np.sqrt(form.weights @ residuals**2) + RADIUS * m) ** 2


# Lower bounds: any distribution in the ball gives one


def best_worst_case(form):
    """The least over affine policies of (sqrt(E r^2) + radius ||theta||)^2, by another's solver."""
    scaled = form.contexts / form.scale

    def objective(v):
        residuals = scaled @ v[:-1] + v[-1] - form.outcomes[:, 0]
        return np.sqrt(form.weights @ residuals**2) + form.radius * np.linalg.norm(v[:-1])

    found = minimize(
        objective, np.array([0.5, -0.3, 2.0]), method="Nelder-Mead", options={"xatol": 1e-9}
    )
    return found.fun**2


@pytest.mark.parametrize("radius", [0.0, 0.1, 0.3, 0.6])
def test_no_distribution_in_the_ball_proves_more_than_is_true(radius):
    form, rng = make_form(radius=radius), np.random.default_rng(1)
    best = best_worst_case(form)
    for _ in range(20):
        moves = rng.normal(size=form.contexts.shape) * form.scale
        size = np.sqrt(form.weights @ move_distances(form, moves, np.zeros((40, 1))))
        contexts = form.contexts + rng.uniform() * radius / size * moves
        atoms = adversary(form, 1.0, contexts, form.outcomes)
        assert in_ball(form, atoms)
        assert 0.0 < lower_bound(form, atoms) <= best * (1 + 1e-7)


def test_the_worst_distribution_of_the_best_policy_proves_the_optimum():
    form = make_form(cost=Quadratic(2.0))
    scaled = form.contexts / form.scale

    def objective(v):
        residuals = scaled @ v[:-1] + v[-1] - form.outcomes[:, 0]
        return np.sqrt(form.weights @ residuals**2) + RADIUS * np.linalg.norm(v[:-1])

    best = minimize(objective, np.array([0.5, -0.3, 2.0]), options={"gtol": 1e-10})
    theta, residuals = best.x[:-1], scaled @ best.x[:-1] + best.x[-1] - form.outcomes[:, 0]
    pull = RADIUS / np.linalg.norm(theta) / np.sqrt(form.weights @ residuals**2)
    contexts = form.contexts + pull * np.outer(residuals, theta) * form.scale
    atoms = adversary(form, 1.0, contexts, form.outcomes)
    assert lower_bound(form, atoms) == pytest.approx(2.0 * best.fun**2, rel=1e-6)


def test_what_is_not_in_the_ball_proves_nothing():
    form = make_form(frozen=(1,))
    shift = np.zeros_like(form.contexts)
    still = adversary(form, 1.0, form.contexts, form.outcomes)
    assert in_ball(form, still)
    assert lower_bound(form, still) > 0.0
    shift[:, 0] = 1.01 * RADIUS * form.scale[0]
    too_far = adversary(form, 1.0, form.contexts + shift, form.outcomes)
    frozen = adversary(form, 1.0, form.contexts + np.array([0.0, 1e-3]), form.outcomes)
    outcome = adversary(form, 1.0, form.contexts, form.outcomes + 1e-3)
    fewer = adversary(form, 1.0, form.contexts, form.outcomes, rows=np.arange(20))
    heavier = still._replace(weights=still.weights * np.where(np.arange(40) < 20, 1.5, 0.5))
    for atoms in (too_far, frozen, outcome, fewer, heavier):
        assert not in_ball(form, atoms)
        assert lower_bound(form, atoms) == 0.0


@pytest.mark.parametrize(
    "options",
    [{"cost": Newsvendor(1.0, 0.2)}, {"policy": Linear(decisions=Box(0, 9))}, {"policy": MLP((4,))}],
    ids=["kinked", "limits", "network"],
)
def test_where_no_proof_is_known_the_lower_bound_is_the_cost_s_floor(options):
    form = make_form(**options)
    assert lower_bound(form, adversary(form, 1.0, form.contexts, form.outcomes)) == 0.0


def test_nearly_equal_columns_do_not_prove_too_much():
    # The best policy uses the difference of the columns; a rank cut would not see it.
    rng = np.random.default_rng(2)
    x, z = rng.normal(size=(2, 50))
    X = np.column_stack([x, x + 1e-9 * z])
    nominal = Empirical(X, z)
    form = general_form(Problem(Quadratic(), Linear(), nominal, WassersteinBall(0.0)))
    atoms = adversary(form, 0.0, form.contexts, form.outcomes)
    assert lower_bound(form, atoms) <= 1e-3


@pytest.mark.parametrize("share", [1.0, 0.98])
def test_in_a_box_the_bound_holds_too(share):
    form = make_form(support=Box(-99, 99))
    rows, left, residuals, m = moved(form, 3.0, share)
    certificate = certify_general(form, affine(form), np.zeros(0), rows, left)
    assert certificate.kind == "bound"
    assert certificate.upper >= (np.sqrt(form.weights @ residuals**2) + RADIUS * m) ** 2 * (1 - 1e-12)


def test_radius_zero_is_the_expected_cost():
    form = make_form(radius=0.0)
    rows, left, residuals, _ = moved(form, 3.0, share=0.0, at=0.0)
    certificate = certify_general(form, affine(form), np.zeros(0), rows, left)
    assert certificate.kind == "bound"
    assert certificate.upper == pytest.approx(form.weights @ residuals**2, rel=1e-12)
    assert "expected cost" in certificate.message


@pytest.mark.parametrize(("order", "kappa"), [(1, np.inf), (2, np.inf), (1, 4.0), (2, 4.0)])
def test_distances_are_those_of_the_ball(order, kappa):
    form = make_form(order=order, outcome_cost=kappa)
    shift = np.tile(np.array([3.0, 4.0]) * form.scale, (40, 1))
    aside = np.full((40, 1), 0.0 if np.isinf(kappa) else -2.0)
    expected = {(1, np.inf): 5, (2, np.inf): 25, (1, 4.0): 13, (2, 4.0): 41}[order, kappa]
    np.testing.assert_allclose(move_distances(form, shift, aside), expected, rtol=1e-10)


def test_costs_use_the_variables_that_were_learned():
    X, returns = np.zeros((4, 1)), np.array([[0.1, 0.0], [-0.2, 0.1], [0.3, 0.0], [0.0, -0.4]])
    cost = MeanCVaR(1.0, 0.5)
    form = general_form(
        Problem(cost, Linear(decisions=Simplex()), Empirical(X, returns), WassersteinBall(0.0))
    )
    trained = form.policy.initial(np.random.default_rng(0), 1, 2)
    loss = -returns.mean(axis=1)
    for a in (0.0, 0.05):
        expected = loss + a + np.maximum(loss - a, 0.0) / 0.5
        found = form.costs(trained, np.array([a]), X, returns)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("slope", [1.0, 1e-2, 4e-5, 1e-7, 1e-12, 0.0])
def test_growth_is_that_of_the_cost_however_little_the_policy_reacts(slope):
    # A price of 12 that reacts by 4e-5 is near zero after a move of 3e5: costs there say nothing yet.
    rng = np.random.default_rng(0)
    nominal = Empirical(rng.normal(size=(40, 2)), 24.0 + rng.normal(size=40))
    found = general_form(Problem(Pricing(), Linear(), nominal, WassersteinBall(0.3)))
    trained = {"theta": np.full((2, 1), slope), "intercept": np.zeros(1)}
    power = growth_power(found, trained, np.zeros(0), found.contexts, found.outcomes)
    assert power == (pytest.approx(2.0, abs=0.1) if slope > 1e-9 else 0.0)


def portfolio_form(contexts, radius=0.0, **ball):
    rng = np.random.default_rng(0)
    returns = rng.normal(0.01, 0.05, size=(len(contexts), 3))
    policy, nominal = Linear(decisions=Simplex()), Empirical(contexts, returns)
    return general_form(Problem(MeanCVaR(1.0, 0.8), policy, nominal, WassersteinBall(radius, **ball)))


@pytest.mark.parametrize("radius", [0.0, 0.5])
@pytest.mark.parametrize("kinds", [1, 3])
def test_contexts_of_few_kinds_bound_a_portfolio_from_below(radius, kinds):
    groups = np.arange(60) % kinds
    form = portfolio_form(np.eye(3)[groups][:, :2], radius)
    best = best_portfolio(form.outcomes, form.weights, groups, 1.0, 0.8)
    still = adversary(form, 1.0, form.contexts, form.outcomes)
    assert lower_bound(form, still) == pytest.approx(best, abs=1e-7)


def test_a_portfolio_has_no_lower_bound_where_contexts_depend_on_each_other():
    form = portfolio_form((np.arange(60) % 3)[:, None].astype(float))  # three points on a line
    still = adversary(form, 1.0, form.contexts, form.outcomes)
    assert lower_bound(form, still) == -np.inf


def test_a_lower_bound_of_a_portfolio_needs_a_distribution_in_the_ball():
    form = portfolio_form(np.zeros((60, 1)), 0.1, outcome_cost=1.0)
    outside = adversary(form, 1.0, form.contexts, form.outcomes - 1.0)
    assert lower_bound(form, outside) == -np.inf
