"""The inner maximiser against brute force: grids that zoom in, and random moves that try to beat it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import Box, Problem, WassersteinBall
from surefoot.ambiguity.moves import best_moves, order_two_slope
from surefoot.costs import Newsvendor, Pieces
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import affine_forms

law = settings(derandomize=True, deadline=None, max_examples=25)

GEOMETRIES = [
    pytest.param(order, box, kappa, id=f"order{order}-{box or 'free'}-kappa{kappa}")
    for order in (1, 2)
    for box in (None, "closed", "open")
    for kappa in (math.inf, 2.0)
]


def psi(r, pieces):
    """The largest line, or the (smoothed) newsvendor cost as the design page prints it."""
    if len(pieces.slopes) > 2:
        return np.max(
            [w * r + v for w, v in zip(pieces.slopes, pieces.intercepts, strict=True)], axis=0
        )
    b, h, delta = pieces.down, pieces.up, pieces.smoothing
    kinked = np.where(r >= 0, h * r, -b * r)
    if delta == 0:
        return kinked
    rounded = (b + h) / (4 * delta) * r**2 + (h - b) / 2 * r + (b + h) * delta / 4
    return np.where(np.abs(r) < delta, rounded, kinked)


def transport(form, moves, outcome_moves):
    """d_p of moves with a last axis of columns."""
    length = np.sqrt((moves**2).sum(axis=-1))
    price = 0.0
    if math.isfinite(form.outcome_cost):
        price = form.outcome_cost * np.abs(outcome_moves) ** form.order
    return length**form.order + price


def objective(form, theta, t, gamma, row, moves, outcome_moves):
    """psi at the moved sample less the price of the move."""
    r = (form.contexts[row] + moves) @ theta + t - form.outcomes[row] - outcome_moves
    return psi(r, form.pieces) - gamma * transport(form, moves, outcome_moves)


def zooming_maximum(function, low, high, points, rounds=8):
    """Largest value of a function of points (k, dims), on ever finer grids that begin around 0."""
    low, high = np.asarray(low), np.asarray(high)
    centre, width, best = np.zeros(len(low)), np.maximum(-low, high), -np.inf
    for _ in range(rounds):
        steps = np.linspace(-1, 1, points) ** 3  # dense in the middle, where moves are short
        axes = [
            np.unique(np.clip(c + w * steps, a, b))
            for c, w, a, b in zip(centre, width, low, high, strict=True)
        ]
        grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
        values = function(grid)
        if values.max() > best:
            best, centre = float(values.max()), grid[np.argmax(values)]
        width = width / 3
    return best


def holding(form, theta):
    """A multiplier at which the adversary of order 1 cannot run away."""
    return form.pieces.steepest * form.dual_norm(theta)


def moves_from(grid, columns):
    """Grid points are (dx_0, dx_2, dy): column 1 is frozen in these tests."""
    moves = np.zeros((len(grid), columns))
    moves[:, [0, 2]] = grid[:, :2]
    return moves, grid[:, 2]


def brute_force(form, theta, t, gamma, row):
    """The largest objective of a row over moves of columns 0 and 2 and of the outcome."""
    far = 4.0 * max(1.0, form.pieces.steepest) / gamma if form.order == 2 else 20.0
    x, y = form.contexts[row], form.outcomes[row]
    low_y, high_y = form.outcome_lower[row], form.outcome_upper[row]
    low = np.maximum([*(form.lower - x)[[0, 2]], low_y - y], -far)
    high = np.minimum([*(form.upper - x)[[0, 2]], high_y - y], far)
    fixed = math.isinf(form.outcome_cost)
    if fixed:
        low[2] = high[2] = 0.0

    def value(grid):
        return objective(form, theta, t, gamma, row, *moves_from(grid, 3))

    return zooming_maximum(value, low, high, points=101 if fixed else 37)


def some_gamma(form, theta, share, closed):
    """A share of the multiplier that holds; of order 1 on open sides nothing less will do."""
    return holding(form, theta) * (share if closed or form.order == 2 else max(share, 1.02))


@pytest.mark.sweep
@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@pytest.mark.parametrize("share", [0.6, 1.1])
def test_value_is_the_brute_force_maximum(make_affine, order, box, kappa, share):
    form = make_affine(1, rows=3, order=order, box=box, outcome_cost=kappa, frozen=(1,), intercept=True)
    theta, t = np.array([0.8, -0.5, -0.6]), 0.4
    gamma = some_gamma(form, theta, share, box == "closed")
    answer = best_moves(form, theta, t, gamma)
    for row in range(3):
        assert answer.value[row] == pytest.approx(brute_force(form, theta, t, gamma, row), abs=2e-5)


@pytest.mark.sweep
@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@pytest.mark.parametrize("lines", ["tiered", "flat", "salvage", "four"])
def test_value_is_the_brute_force_maximum_of_more_than_two_lines(make_lines, lines, order, box, kappa):
    form = make_lines(1, lines=lines, rows=4, order=order, box=box, outcome_cost=kappa, frozen=(1,))
    theta, t = np.array([0.8, -0.5, -0.6]), 1.4
    gamma = some_gamma(form, theta, 0.7, box == "closed")
    answer = best_moves(form, theta, t, gamma)
    for row in range(4):
        assert answer.value[row] == pytest.approx(brute_force(form, theta, t, gamma, row), abs=2e-5)


def check_that_nobody_does_better(form, theta, t, gamma, rng):
    answer = best_moves(form, theta, t, gamma)
    low, high = form.lower - form.contexts, form.upper - form.contexts
    low_y, high_y = form.outcome_lower - form.outcomes, form.outcome_upper - form.outcomes
    n, s = form.contexts.shape
    fixed = math.isinf(form.outcome_cost)

    # The answer is feasible: inside the box, frozen columns and fixed outcomes at rest.
    assert (answer.contexts >= low - 1e-12).all()
    assert (answer.contexts <= high + 1e-12).all()
    assert (answer.contexts[:, 1] == 0).all()
    if fixed:
        assert (answer.outcomes == 0).all()
    else:
        assert (answer.outcomes >= low_y - 1e-12).all()
        assert (answer.outcomes <= high_y + 1e-12).all()
    # Distance and value are what the formulas say of the answer's own move.
    paid = transport(form, answer.contexts, answer.outcomes)
    np.testing.assert_allclose(answer.distance, paid, atol=1e-12)
    attained = [
        objective(form, theta, t, gamma, i, answer.contexts[i], answer.outcomes[i]) for i in range(n)
    ]
    np.testing.assert_allclose(answer.value, attained, atol=1e-10)
    assert set(answer.slope) <= set(form.pieces.slopes)
    # Nobody does better.
    for i in range(n):
        moves = rng.normal(size=(300, s)) * rng.exponential(size=(300, 1))
        moves[:50] = answer.contexts[i] + 1e-3 * rng.normal(size=(50, s))
        moves[:, 1] = 0.0
        outcome_moves = np.zeros(300)
        if not fixed:
            outcome_moves = np.clip(rng.normal(size=300), low_y[i], high_y[i])
        values = objective(form, theta, t, gamma, i, np.clip(moves, low[i], high[i]), outcome_moves)
        assert values.max() <= answer.value[i] + 1e-9


@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@given(data=st.data())
@settings(law, max_examples=12)
def test_no_feasible_move_beats_it_and_it_attains_its_value(make_affine, order, box, kappa, data):
    seed = data.draw(st.integers(0, 999), label="seed")
    rng = np.random.default_rng(seed)
    form = make_affine(
        seed % 5, rows=5, columns=4, order=order, box=box, outcome_cost=kappa, frozen=(1,),
        backorder=rng.uniform(0.1, 2), holding=rng.uniform(0.1, 2),
    )  # fmt: skip
    theta, t = rng.normal(size=4), rng.normal()
    theta[2] *= rng.random() < 0.5  # a column without pull
    gamma = holding(form, theta) * rng.uniform(0.2, 1.5)
    if order == 1 and box != "closed":
        gamma = holding(form, theta) * rng.uniform(1.0, 1.5)
    check_that_nobody_does_better(form, theta, t, gamma, rng)


@pytest.mark.parametrize(("order", "box", "kappa"), GEOMETRIES)
@given(seed=st.integers(0, 999), lines=st.sampled_from(["tiered", "flat", "salvage", "four"]))
@settings(law, max_examples=12)
def test_no_feasible_move_beats_it_on_more_than_two_lines(make_lines, order, box, kappa, seed, lines):
    rng = np.random.default_rng(seed)
    form = make_lines(
        seed % 5, lines=lines, rows=5, columns=4, order=order, box=box, outcome_cost=kappa, frozen=(1,)
    )
    theta, t = rng.normal(size=4), rng.normal() + 1.0
    theta[2] *= rng.random() < 0.5
    share = rng.uniform(1.0, 1.5) if order == 1 and box != "closed" else rng.uniform(0.2, 1.5)
    check_that_nobody_does_better(form, theta, t, share * holding(form, theta), rng)


def test_order_one_free_has_no_finite_answer_below_the_holding_multiplier(make_affine):
    form = make_affine(2, order=1)
    theta = np.array([0.5, -1.0, 0.2])
    below, above = 0.999 * holding(form, theta), holding(form, theta)
    assert np.isinf(best_moves(form, theta, 0.0, below).value).all()
    answer = best_moves(form, theta, 0.0, above)
    np.testing.assert_allclose(answer.value, psi(form.residuals(theta, 0.0), form.pieces))
    assert not answer.contexts.any()
    # Far along the steep direction the gain below that multiplier is unbounded.
    far = -1e6 * theta
    assert objective(form, theta, 0.0, below, 0, far, 0.0) > 1e2


def test_an_open_box_of_order_one_has_no_finite_answer_below_its_holding_multiplier(make_affine):
    form = make_affine(2, order=1, box="open", columns=1)
    theta = np.array([-1.0])  # backorders pull contexts up, and up is open
    assert np.isinf(best_moves(form, theta, 0.0, 0.99).value).all()
    assert np.isfinite(best_moves(form, theta, 0.0, 1.01).value).all()


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999, 1.0, 1.2, 5.0])
@pytest.mark.parametrize(("backorder", "holding_cost"), [(1.0, 0.3), (0.3, 1.0), (1.0, 1.0)])
def test_smoothed_answer_is_global_also_where_gradient_ascent_has_two_maxima(
    share, backorder, holding_cost
):
    # A k = share: from 1 on the parabola no longer holds the adversary back.
    delta, k = 0.7, 0.0
    pieces = Pieces.kinked(up=holding_cost, down=backorder, smoothing=delta)
    k = share * 2 * delta / (backorder + holding_cost)
    residuals = np.linspace(-3, 3, 41)
    p = order_two_slope(pieces, residuals, k)
    # Along theta: move r by v at the price v^2 / (2 k); the best v is p k.
    v = np.linspace(-4, 4, 80_001) * k
    for r, slope in zip(residuals, p, strict=True):
        best = (psi(r + v, pieces) - v**2 / (2 * k)).max()
        value = psi(r + slope * k, pieces) - (slope * k) ** 2 / (2 * k)
        assert value == pytest.approx(best, abs=1e-6)
    assert (p >= -backorder).all()
    assert (p <= holding_cost).all()


@pytest.mark.parametrize("kappa", [math.inf, 2.0])
def test_smoothed_response_equals_the_best_move_on_a_line(make_affine, kappa):
    form = make_affine(3, smoothing=0.5, outcome_cost=kappa)
    theta, t = np.array([0.4, -0.7, 0.2]), 0.3
    reach = math.sqrt(theta @ theta + (0 if math.isinf(kappa) else 1 / kappa))
    for gamma in (0.05, 0.3, 2.0):
        answer = best_moves(form, theta, t, gamma)
        v = np.linspace(-1.2, 1.2, 200_001) * reach**2 / (2 * gamma)
        for i, r in enumerate(form.residuals(theta, t)):
            best = (psi(r + v, form.pieces) - gamma * v**2 / reach**2).max()
            assert answer.value[i] == pytest.approx(best, abs=1e-6)


@given(seed=st.integers(0, 10_000))
@law
def test_order_one_box_moves_solve_their_fixed_point(make_affine, seed):
    rng = np.random.default_rng(seed)
    form = make_affine(seed % 7, rows=6, columns=4, order=1, box="closed")
    theta = rng.normal(size=4)
    gamma = holding(form, theta) * rng.uniform(0.05, 1.05)
    answer = best_moves(form, theta, 0.2, gamma)
    low, high = form.lower - form.contexts, form.upper - form.contexts
    for i in range(6):
        pull, move = answer.slope[i] * theta, answer.contexts[i]
        tau = np.linalg.norm(move) / gamma
        np.testing.assert_allclose(np.clip(tau * pull, low[i], high[i]), move, atol=1e-10)
        if np.linalg.norm(pull) <= gamma:
            assert not move.any()
        elif (np.where(pull > 0, high[i], -low[i])[pull != 0] > 0).all():
            assert tau > 0  # room on every side and too small a multiplier: it must move


def test_order_two_points_are_those_of_the_design_page(make_affine):
    form = make_affine(4, backorder=1.0, holding=0.2, frozen=(0,))
    theta, t, gamma = np.array([0.5, -1.0, 0.7]), 0.1, 0.9
    moving = np.array([0.0, -1.0, 0.7])
    m2 = moving @ moving
    answer = best_moves(form, theta, t, gamma)
    for i, r in enumerate(form.residuals(theta, t)):
        w = 0.2 if r >= (1.0 - 0.2) * m2 / (4 * gamma) else -1.0
        np.testing.assert_allclose(answer.contexts[i], w / (2 * gamma) * moving, atol=1e-14)
        assert answer.slope[i] == w
        assert answer.distance[i] == pytest.approx(w**2 * m2 / (4 * gamma**2))
    assert len(set(answer.slope)) == 2  # both sides of the threshold were seen


def test_every_line_of_the_cost_wins_somewhere(make_lines):
    form = make_lines(1, lines="four", rows=30, radius=0.1)
    theta = np.array([0.3, -0.2, 0.1])
    answer = best_moves(form, theta, 2.0, 5.0)
    assert set(answer.slope) == set(form.pieces.slopes)
    # A small multiplier lets moves grow, and lines in the middle drop out.
    far = best_moves(form, theta, 2.0, 1e-3)
    assert set(far.slope) <= {form.pieces.slopes[0], form.pieces.slopes[-1]}


@pytest.mark.parametrize("order", [1, 2])
def test_bounds_on_outcomes_that_cannot_move_are_ignored(order):
    X, y = np.array([[0.0], [0.5], [1.0]]), np.array([1.0, 5.0, 9.0])

    def affine(outcome):
        ball = WassersteinBall(0.2, order=order, support=Box(0, 1, outcome=outcome), scale=False)
        (form,) = affine_forms(Problem(Newsvendor(1.0, 0.2), Linear(), Empirical(X, y), ball))
        return form.in_plain_units()

    narrow, wide = affine((2.0, 3.0)), affine((-math.inf, math.inf))
    answer = best_moves(narrow, np.array([3.0]), 0.0, 2.0)
    assert not answer.outcomes.any()
    theta = np.array([3.0])
    assert narrow.worst_value(theta, 0.0) == wide.worst_value(theta, 0.0)
