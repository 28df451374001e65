import itertools
import math
import re
from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.costs import AuxiliaryCost, ConvexPiecewiseCost, Cost, Newsvendor, Pieces
from surefoot.costs.quantiles import outcome_spread
from surefoot.exceptions import InvalidInputError

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
slopes = st.floats(0.05, 20)
widths = st.floats(0.05, 3)
residuals = st.floats(-50, 50)
shares = st.floats(0, 1)


class TwoProducts(ConvexPiecewiseCost):
    """A kinked cost that is not a newsvendor."""

    def pieces(self, n_products):
        assert n_products == 2
        return (Pieces.kinked(up=1.0, down=2.0), Pieces.kinked(up=3.0, down=0.5, smoothing=1.0))


def paper_equation_22(z, y, b, h, delta):
    """The paper's smoothed cost, coefficient by coefficient as printed."""
    if z <= y - delta:
        return b * (y - z)
    if z >= y + delta:
        return h * (z - y)
    a1 = (b + h) / (4 * delta)
    a2 = -(b * (y + delta) + h * (y - delta)) / (2 * delta)
    a3 = b * delta + (b * (y + 3 * delta) + h * (y - delta)) * (y - delta) / (4 * delta)
    return a1 * z**2 + a2 * z + a3


def value(pieces, r):
    return float(pieces.evaluate(np.array([r]))[0])


@repeatable
@given(residuals, slopes, slopes)
def test_the_cost_is_the_larger_of_two_lines(r, up, down):
    assert value(Pieces.kinked(up, down), r) == max(up * r, -down * r)


@repeatable
@given(residuals, slopes, slopes, widths)
def test_smoothing_errs_upwards_by_at_most_a_quarter(r, up, down, delta):
    kinked, smooth = value(Pieces.kinked(up, down), r), value(Pieces.kinked(up, down, delta), r)
    rounding = 1e-13 * (up + down) * (delta + abs(r))
    assert kinked - rounding <= smooth <= kinked + (up + down) * delta / 4 + rounding
    if abs(r) >= delta:
        assert smooth == kinked


@repeatable
@given(slopes, slopes, widths)
def test_the_largest_error_is_at_the_kink(up, down, delta):
    pieces = Pieces.kinked(up, down, delta)
    assert value(pieces, 0.0) == pytest.approx((up + down) * delta / 4, rel=1e-12)
    for r in (-delta, delta):
        assert value(pieces, r) == max(up * r, -down * r)


@repeatable
@given(st.floats(-5, 5), st.floats(-1.5, 1.5), slopes, slopes, widths)
def test_smoothing_is_equation_22_of_the_paper(y, share, b, h, delta):
    z = y + share * delta
    expected = paper_equation_22(z, y, b, h, delta)
    # The printed coefficients lose digits to each other as y grows; ours are centred.
    assert value(Pieces.kinked(up=h, down=b, smoothing=delta), z - y) == pytest.approx(
        expected, rel=1e-9, abs=1e-10 * (b + h) * (1 + y * y / delta)
    )


@repeatable
@given(slopes, slopes, widths)
def test_the_parabola_meets_both_lines_with_their_slopes(up, down, delta):
    pieces, step = Pieces.kinked(up, down, delta), 1e-6 * delta
    inside_up = (value(pieces, delta) - value(pieces, delta - step)) / step
    inside_down = (value(pieces, -delta + step) - value(pieces, -delta)) / step
    assert inside_up == pytest.approx(up, abs=1e-5 * (up + down))
    assert inside_down == pytest.approx(-down, abs=1e-5 * (up + down))


@repeatable
@given(residuals, residuals, shares, slopes, slopes, st.sampled_from([0.0, 0.3, 5.0]))
def test_the_cost_is_convex_and_never_negative(r, s, share, up, down, delta):
    pieces = Pieces.kinked(up, down, delta)
    chord = share * value(pieces, r) + (1 - share) * value(pieces, s)
    assert value(pieces, share * r + (1 - share) * s) <= chord + 1e-10 * (1 + chord)
    assert value(pieces, r) >= 0


@repeatable
@given(residuals, residuals, slopes, slopes, st.sampled_from([0.0, 0.3]))
def test_the_steepest_slope_is_the_lipschitz_constant(r, s, up, down, delta):
    pieces = Pieces.kinked(up, down, delta)
    gap = abs(value(pieces, r) - value(pieces, s))
    assert gap <= pieces.steepest * abs(r - s) + 1e-10 * (1 + gap)


def test_derived_constants():
    pieces = Pieces.kinked(up=0.2, down=1.0)
    assert pieces.steepest == 1.0
    assert Pieces.kinked(up=3.0, down=1.0).steepest == 3.0
    assert pieces.geometric == pytest.approx(np.sqrt(0.2))
    assert type(pieces.geometric) is float
    assert pieces.quantile == pytest.approx(1 / 1.2)
    assert Pieces.kinked(up=1.0, down=0.2).quantile == pytest.approx(0.2 / 1.2)


def test_pieces_are_immutable_and_print_short():
    pieces = Pieces.kinked(up=0.2, down=1.0)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'slopes'"):
        pieces.slopes = (-1.0, 3.0)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'up'"):
        pieces.up = 3.0
    assert repr(pieces) == "Pieces(slopes=(-1.0, 0.2), intercepts=(0.0, 0.0), smoothing=0.0)"
    assert pieces == Pieces.kinked(0.2, 1.0) == Pieces((-1.0, 0.2), (0.0, 0.0))
    with pytest.raises(TypeError, match="unexpected keyword argument 'smooth'"):
        Pieces.kinked(0.2, 1.0, smooth=0.1)


def test_formulas_use_the_namespace_handed_in():
    used = []

    def record(name):
        def call(*arrays):
            used.append(name)
            return getattr(np, name)(*arrays)

        return call

    xp = SimpleNamespace(**{name: record(name) for name in ("where", "abs")})
    r = np.array([[-2.0], [0.1], [3.0]])
    cost = Newsvendor(1.0, 0.2, smoothing=0.5)
    expected = cost.evaluate(r, np.zeros((3, 1)))
    np.testing.assert_array_equal(cost.evaluate(r, np.zeros((3, 1)), xp), expected)
    assert set(used) == {"where", "abs"}


def test_products_add_up():
    z, y = np.array([[1.0, 5.0], [4.0, 2.5]]), np.array([[3.0, 1.0], [1.0, 2.5]])
    # 2 short at 2 plus 4 over at 3; 3 over at 1 plus the height of the parabola, 3.5/4.
    np.testing.assert_allclose(TwoProducts().evaluate(z, y), [16.0, 3.875])


@pytest.mark.parametrize(
    ("shape_z", "shape_y"), [((3, 1), (3,)), ((3,), (3, 1)), ((3, 2), (3, 1)), ((1, 1), (3, 1))]
)
def test_shapes_that_would_broadcast_are_refused(shape_z, shape_y):
    message = (
        f"decisions and outcomes must have one shape, (rows, products), got {shape_z} and {shape_y}."
    )
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Newsvendor(1.0, 0.2).evaluate(np.ones(shape_z), np.zeros(shape_y))


def test_abstract_costs_cannot_be_made():
    for kind, missing in (
        (Cost, "evaluate"),
        (ConvexPiecewiseCost, "pieces"),
        (AuxiliaryCost, "best_auxiliary"),
    ):
        with pytest.raises(TypeError, match=f"abstract.*{missing}"):
            kind()


def test_a_cost_fits_any_number_of_products_unless_it_says_otherwise():
    assert TwoProducts().why_not(7) is None


class Plain(Cost):
    """A cost that says nothing of itself."""

    def evaluate(self, decisions, outcomes, xp=np):
        return xp.abs(decisions[..., 0] - outcomes[..., 0])


class OneForAll(Plain):
    """One decision, whatever the outcomes."""

    def n_decisions(self, n_outcomes):
        return 1


def weighted_rows(least=1):
    rows = st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(0.01, 1)), min_size=least, max_size=12)
    return rows.map(lambda pairs: (np.array(pairs)[:, 0], np.array(pairs)[:, 1])).map(
        lambda pair: (pair[0], pair[1] / pair[1].sum())
    )


@repeatable
@given(weighted_rows(2), st.integers(-3, 3), st.floats(-10, 10))
def test_the_spread_is_a_weighted_standard_deviation(rows, power, shift):
    values, weights = rows
    outcomes = np.column_stack([values, 2.0 * values + 1.0])
    spread = outcome_spread(outcomes, weights)
    assert spread.shape == (2,)
    assert (spread > 0).all()
    deviation = np.sqrt(np.cov(values, aweights=weights, ddof=0))
    if deviation > 1e-6:
        np.testing.assert_allclose(spread, [deviation, 2 * deviation], rtol=1e-6)
        factor = 2.0**power
        np.testing.assert_allclose(outcome_spread(factor * outcomes, weights), factor * spread)
        np.testing.assert_allclose(outcome_spread(outcomes + shift, weights), spread, rtol=1e-6)


def test_an_outcome_that_does_not_vary_is_measured_by_its_size():
    weights = np.full(7, 1 / 7)
    # 0.1 in sevenths does not add up to 0.1: what is left is rounding, not spread.
    outcomes = np.tile([0.1, -3.0, 0.0, 1e-9], (7, 1))
    np.testing.assert_allclose(outcome_spread(outcomes, weights), [0.1, 3.0, 1.0, 1e-9])


def test_what_a_cost_says_unless_it_knows_better():
    cost = Plain()
    assert (cost.growth(), cost.curvature(), cost.floor()) == (np.inf, np.inf, -np.inf)
    assert cost.why_not(4) is None
    assert cost.why_unlimited() is None
    assert cost.n_decisions(4) == 4
    outcomes, weights = np.array([[1.0, 10.0], [3.0, 10.0]]), np.array([0.25, 0.75])
    centre, unit = cost.typical(outcomes, weights)
    np.testing.assert_allclose(centre, [2.5, 10.0])
    np.testing.assert_allclose(unit, [np.sqrt(0.75), 10.0])
    # Decisions of another kind than outcomes have no unit that outcomes could tell.
    centre, unit = OneForAll().typical(outcomes, weights)
    np.testing.assert_array_equal(centre, [0.0])
    np.testing.assert_array_equal(unit, [1.0])


def test_the_mean_is_weighted():
    decisions, outcomes = np.array([[1.0], [5.0]]), np.array([[3.0], [4.0]])
    found = Plain().mean(decisions, outcomes, np.array([0.25, 0.75]))
    assert found == 0.25 * 2 + 0.75 * 1
    assert type(found) is float


def test_a_kinked_cost_starts_at_its_quantiles_and_says_what_it_is():
    outcomes, weights = np.column_stack([np.arange(9.0), np.arange(9.0) * 10]), np.full(9, 1 / 9)
    centre, unit = TwoProducts().typical(outcomes, weights)
    # Quantiles 2/3 and 1/7 of nine rows: the sixth and the second.
    np.testing.assert_array_equal(centre, [5.0, 10.0])
    np.testing.assert_allclose(unit, [outcomes[:, 0].std(), outcomes[:, 1].std()])
    assert TwoProducts().growth() == 1.0
    assert Newsvendor(1.0, 0.2).floor() == 0.0


def test_no_cost_is_below_the_least_of_each_product():
    rounded = 1.0 * 3.0 * 0.5 / 3.5  # the bottom of the parabola
    assert TwoProducts().floor(2) == pytest.approx(rounded)


@repeatable
@given(st.tuples(slopes, slopes), st.tuples(slopes, slopes), widths, residuals, residuals)
def test_the_curvature_of_a_rounded_kink_is_bounded(backorder, holding, delta, r, s):
    cost = Newsvendor(backorder, holding, smoothing=delta)
    step = 1e-3 * delta
    for place in ((r, s), (0.0, 0.5 * delta), (delta, -delta)):
        for j in range(2):
            z = np.array([place, place, place])
            z[:, j] += (-step, 0.0, step)
            left, middle, right = cost.evaluate(z, np.zeros((3, 2)))
            second = (left - 2 * middle + right) / step**2
            assert second <= cost.curvature() * (1 + 1e-6) + 1e-13 * middle / step**2
    assert Newsvendor(backorder, holding).curvature() == np.inf


# More than two lines


@st.composite
def many_lines(draw):
    """Pieces with up to five lines; eighths and whole numbers, so that nothing is rounded."""
    eighths = st.integers(1, 24).map(lambda k: k / 8)
    below = draw(st.lists(eighths, min_size=1, max_size=3))
    above = draw(st.lists(eighths, min_size=1, max_size=2))
    flat = [0.0] * draw(st.booleans())
    slopes = sorted({-w for w in below} | set(flat) | set(above))
    steps = draw(st.lists(st.integers(1, 5), min_size=len(slopes), max_size=len(slopes)))
    kinks = np.cumsum([draw(st.integers(-6, 2)), *steps])[: len(slopes) - 1]
    intercepts = [float(draw(st.integers(-5, 5)))]
    for kink, (left, right) in zip(kinks, itertools.pairwise(slopes), strict=True):
        intercepts.append(intercepts[-1] - (right - left) * kink)
    pieces = Pieces(tuple(slopes), tuple(intercepts))
    np.testing.assert_array_equal(pieces.kinks, kinks)
    return pieces


THREE = Pieces((-3.0, -1.0, 0.5), (-4.0, 0.0, 0.0))
FOUR = Pieces((-3.0, -1.0, 0.5, 2.0), (-4.0, 0.0, 0.0, -4.5))


def largest_line(pieces, r):
    return max(w * r + v for w, v in zip(pieces.slopes, pieces.intercepts, strict=True))


@repeatable
@given(many_lines(), st.integers(-80, 80).map(lambda k: k / 4))
def test_the_cost_is_the_largest_of_its_lines(pieces, r):
    assert value(pieces, r) == largest_line(pieces, r)


@repeatable
@given(many_lines(), st.integers(-40, 40).map(lambda k: k / 2))
def test_the_slope_is_that_of_the_largest_line_and_the_upper_one_at_a_kink(pieces, r):
    step = 1 / 64
    ahead = (largest_line(pieces, r + step) - largest_line(pieces, r)) / step
    assert pieces.slope_at(np.array([r])).tolist() == [ahead]


def test_three_and_four_lines_by_hand():
    r = np.array([-4.0, -2.0, -1.0, 0.0, 2.0, 3.0, 5.0])
    np.testing.assert_array_equal(THREE.evaluate(r), [8.0, 2.0, 1.0, 0.0, 1.0, 1.5, 2.5])
    np.testing.assert_array_equal(FOUR.evaluate(r), [8.0, 2.0, 1.0, 0.0, 1.0, 1.5, 5.5])
    np.testing.assert_array_equal(THREE.slope_at(r), [-3.0, -1.0, -1.0, 0.5, 0.5, 0.5, 0.5])
    np.testing.assert_array_equal(FOUR.slope_at(r), [-3.0, -1.0, -1.0, 0.5, 0.5, 2.0, 2.0])
    np.testing.assert_array_equal(THREE.kinks, [-2.0, 0.0])
    np.testing.assert_array_equal(FOUR.kinks, [-2.0, 0.0, 3.0])
    assert (THREE.up, THREE.down, THREE.steepest, THREE.least) == (0.5, 3.0, 3.0, 0.0)
    assert (FOUR.up, FOUR.down, FOUR.steepest, FOUR.least) == (2.0, 3.0, 3.0, 0.0)
    assert FOUR.geometric == pytest.approx(np.sqrt(6.0))
    assert not THREE.two
    assert Pieces.kinked(1.0, 2.0).two
    assert not Pieces((-1.0, 1.0), (0.0, 1.0)).two  # their kink is not at zero


@repeatable
@given(many_lines())
def test_the_least_cost_is_the_smallest_of_a_grid(pieces):
    grid = np.arange(-40.0, 40.0, 0.5)
    assert pieces.least == min(largest_line(pieces, r) for r in grid)


@repeatable
@given(slopes, slopes, widths)
def test_the_least_cost_of_a_rounded_kink_is_the_bottom_of_its_parabola(up, down, delta):
    pieces = Pieces.kinked(up, down, delta)
    grid = np.linspace(-delta, delta, 2001)
    lowest = float(pieces.evaluate(grid).min())
    assert lowest - 1e-3 * (up + down) * delta <= pieces.least <= lowest * (1.0 + 1e-12)


@settings(repeatable, max_examples=25)
@given(many_lines(), st.integers(-40, 40).map(float))
def test_the_derivative_at_a_kink_is_the_upper_slope_in_jax_too(pieces, r):
    assert float(jax.grad(lambda x: pieces.evaluate(x, jnp))(r)) == pieces.slope_at(np.array([r]))[0]


@repeatable
@given(
    many_lines(),
    st.lists(st.tuples(st.integers(-6, 6), st.integers(1, 4)), min_size=1, max_size=8),
)
def test_the_best_constant_is_the_smallest_of_the_best(pieces, rows):
    outcomes, weights = (np.array(part, dtype=float) for part in zip(*rows, strict=True))

    def cost(z):
        """Exact: halves and eighths of small whole numbers."""
        return sum(w * largest_line(pieces, z - y) for y, w in rows)

    grid = np.arange(-40.0, 40.0, 0.5)  # kinks and outcomes are whole numbers
    costs = np.array([cost(z) for z in grid])
    expected = grid[np.argmin(costs)]
    assert pieces.best_constant(outcomes, weights / weights.sum()) == expected
    assert pieces.best_constant(outcomes, weights) == expected  # weights need not sum to one


@repeatable
@given(weighted_rows(), many_lines(), st.floats(-20, 20))
def test_no_constant_is_better_than_the_best(rows, pieces, trial):
    values, weights = rows
    best = pieces.best_constant(values, weights)
    found, tried = (weights @ pieces.evaluate(z - values) for z in (best, best + trial))
    assert found <= tried + 1e-9 * (1 + abs(tried))


def test_the_best_constant_of_two_lines_is_a_quantile_wherever_they_meet():
    outcomes, weights = np.arange(9.0), np.full(9, 1 / 9)
    kinked = Pieces.kinked(up=1.0, down=2.0).best_constant(outcomes, weights)
    shifted = Pieces((-2.0, 1.0), (0.0, 1.5)).best_constant(outcomes, weights)
    assert (kinked, shifted) == (5.0, 4.5)  # the second meet at -1/2


@repeatable
@given(many_lines(), st.floats(0.01, 100), st.floats(0.01, 100), residuals)
def test_scaled_pieces_cost_the_same_in_other_units(pieces, cost, length, r):
    scaled = pieces.scaled(cost, length)
    assert cost * length * value(scaled, r / length) == pytest.approx(
        largest_line(pieces, r), rel=1e-9, abs=1e-9
    )
    np.testing.assert_allclose(scaled.kinks, pieces.kinks / length, rtol=1e-9, atol=1e-9)
    assert scaled.steepest == pytest.approx(pieces.steepest / cost)
    # Powers of two change no digit.
    there = pieces.scaled(2.0**-7, 2.0**5)
    assert there.scaled(2.0**7, 2.0**-5) == pieces


def test_smoothing_is_a_length():
    assert Pieces.kinked(3.0, 1.0, 0.5).scaled(4.0, 2.0) == Pieces.kinked(0.75, 0.25, 0.25)


NOT_LINES = "slopes must increase from below to above zero with every line the largest somewhere, "


@pytest.mark.parametrize(
    ("slopes", "intercepts"),
    [
        ((-1.0, 1.0, 0.5), (0.0, 0.0, 0.0)),
        ((-1.0, -1.0, 0.5), (0.0, 1.0, 0.0)),
        ((1.0, -1.0), (0.0, 0.0)),
        ((-3.0, -2.0, -1.0), (0.0, 1.0, 0.0)),
        ((-3.0, -2.0, 0.0), (0.0, 1.0, 0.0)),
        ((0.0, 1.0, 2.0), (0.0, 0.0, -1.0)),
        ((-1.0, 0.0, 1.0), (0.0, -0.5, 0.0)),  # the second is nowhere the largest
        ((-1.0, 0.0, 1.0), (0.0, 0.0, 0.0)),  # or only at one point
        ((-3.0, -1.0, 0.5, 2.0), (-4.0, 0.0, 0.0, 1.0)),
    ],
)
def test_lines_that_are_not_the_pieces_of_a_cost_are_refused(slopes, intercepts):
    message = f"{NOT_LINES}got slopes {slopes} and intercepts {intercepts}."
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Pieces(slopes, intercepts)


@pytest.mark.parametrize(
    ("slopes", "intercepts"),
    [
        ((-1.0, 0.0, 1.0), (0.0, math.nan, 0.0)),
        ((-1.0, 1.0), (0.0, math.nan)),
        ((-1.0, 0.0, 1.0), (0.0, math.inf, 0.0)),
        ((-math.inf, 1.0), (0.0, 0.0)),
    ],
)
def test_lines_that_are_not_finite_are_refused(slopes, intercepts):
    with pytest.raises(InvalidInputError):
        Pieces(slopes, intercepts)


@pytest.mark.parametrize(
    ("slopes", "intercepts"),
    [((-1.0,), (0.0,)), ((), ()), ((-1.0, 1.0), (0.0,)), ((-1.0, 1.0), (0.0, 0.0, 0.0))],
)
def test_as_many_intercepts_as_slopes(slopes, intercepts):
    message = (
        "slopes and intercepts must have the same length, at least 2, "
        f"got {len(slopes)} and {len(intercepts)}."
    )
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Pieces(slopes, intercepts)


@pytest.mark.parametrize(
    ("slopes", "intercepts"),
    [((-3.0, -1.0, 0.5), (-4.0, 0.0, 0.0)), ((-1.0, 1.0), (0.0, 1.0))],
    ids=["three lines", "a kink elsewhere"],
)
def test_only_two_lines_that_meet_at_zero_can_be_rounded(slopes, intercepts):
    message = "smoothing must be 0 unless two lines meet at zero, got 0.1."
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Pieces(slopes, intercepts, 0.1)
    assert Pieces(slopes, intercepts, 0.0) == Pieces(slopes, intercepts)


class Tiered(ConvexPiecewiseCost):
    """Four lines for the first product, three for the second."""

    def pieces(self, n_products):
        assert n_products == 2
        return FOUR, THREE


def test_a_tiered_cost_adds_up_and_starts_at_its_best_constants():
    z, y = np.array([[1.0, 5.0], [4.0, -2.5]]), np.array([[3.0, 1.0], [0.0, 2.5]])
    np.testing.assert_allclose(Tiered().evaluate(z, y), [2.0 + 2.0, 3.5 + 11.0])
    outcomes, weights = np.column_stack([np.arange(9.0), np.arange(9.0) * 10]), np.full(9, 1 / 9)
    centre, unit = Tiered().typical(outcomes, weights)
    for j, pieces in enumerate((FOUR, THREE)):
        grid = np.arange(-20.0, 120.0, 0.5)
        costs = [sum(largest_line(pieces, z - y) for y in outcomes[:, j]) for z in grid]
        assert centre[j] == grid[np.argmin(costs)]
    np.testing.assert_allclose(unit, outcomes.std(axis=0))
    assert Tiered().growth() == 1.0
