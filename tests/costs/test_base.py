import re
from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.costs import ConvexPiecewiseCost, Cost, Newsvendor, Pieces
from surefoot.exceptions import InvalidInputError

repeatable = settings(
    derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
slopes = st.floats(0.05, 20)
widths = st.floats(0.05, 3)
residuals = st.floats(-50, 50)
shares = st.floats(0, 1)


class TwoProducts(ConvexPiecewiseCost):
    """A kinked cost that is not a newsvendor."""

    def pieces(self, n_products):
        assert n_products == 2
        return (Pieces(up=1.0, down=2.0), Pieces(up=3.0, down=0.5, smoothing=1.0))


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
    assert value(Pieces(up, down), r) == max(up * r, -down * r)


@repeatable
@given(residuals, slopes, slopes, widths)
def test_smoothing_errs_upwards_by_at_most_a_quarter(r, up, down, delta):
    kinked, smooth = value(Pieces(up, down), r), value(Pieces(up, down, delta), r)
    rounding = 1e-13 * (up + down) * (delta + abs(r))
    assert kinked - rounding <= smooth <= kinked + (up + down) * delta / 4 + rounding
    if abs(r) >= delta:
        assert smooth == kinked


@repeatable
@given(slopes, slopes, widths)
def test_the_largest_error_is_at_the_kink(up, down, delta):
    pieces = Pieces(up, down, delta)
    assert value(pieces, 0.0) == pytest.approx((up + down) * delta / 4, rel=1e-12)
    for r in (-delta, delta):
        assert value(pieces, r) == max(up * r, -down * r)


@repeatable
@given(st.floats(-5, 5), st.floats(-1.5, 1.5), slopes, slopes, widths)
def test_smoothing_is_equation_22_of_the_paper(y, share, b, h, delta):
    z = y + share * delta
    expected = paper_equation_22(z, y, b, h, delta)
    # The printed coefficients lose digits to each other as y grows; ours are centred.
    assert value(Pieces(up=h, down=b, smoothing=delta), z - y) == pytest.approx(
        expected, rel=1e-9, abs=1e-10 * (b + h) * (1 + y * y / delta)
    )


@repeatable
@given(slopes, slopes, widths)
def test_the_parabola_meets_both_lines_with_their_slopes(up, down, delta):
    pieces, step = Pieces(up, down, delta), 1e-6 * delta
    inside_up = (value(pieces, delta) - value(pieces, delta - step)) / step
    inside_down = (value(pieces, -delta + step) - value(pieces, -delta)) / step
    assert inside_up == pytest.approx(up, abs=1e-5 * (up + down))
    assert inside_down == pytest.approx(-down, abs=1e-5 * (up + down))


@repeatable
@given(residuals, residuals, shares, slopes, slopes, st.sampled_from([0.0, 0.3, 5.0]))
def test_the_cost_is_convex_and_never_negative(r, s, share, up, down, delta):
    pieces = Pieces(up, down, delta)
    chord = share * value(pieces, r) + (1 - share) * value(pieces, s)
    assert value(pieces, share * r + (1 - share) * s) <= chord + 1e-10 * (1 + chord)
    assert value(pieces, r) >= 0


@repeatable
@given(residuals, residuals, slopes, slopes, st.sampled_from([0.0, 0.3]))
def test_the_steepest_slope_is_the_lipschitz_constant(r, s, up, down, delta):
    pieces = Pieces(up, down, delta)
    gap = abs(value(pieces, r) - value(pieces, s))
    assert gap <= pieces.steepest * abs(r - s) + 1e-10 * (1 + gap)


def test_derived_constants():
    pieces = Pieces(up=0.2, down=1.0)
    assert pieces.steepest == 1.0
    assert Pieces(up=3.0, down=1.0).steepest == 3.0
    assert pieces.geometric == pytest.approx(np.sqrt(0.2))
    assert type(pieces.geometric) is float
    assert pieces.quantile == pytest.approx(1 / 1.2)
    assert Pieces(up=1.0, down=0.2).quantile == pytest.approx(0.2 / 1.2)


def test_pieces_are_immutable_and_print_short():
    pieces = Pieces(up=0.2, down=1.0)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'up'"):
        pieces.up = 3.0
    assert repr(pieces) == "Pieces(up=0.2, down=1.0, smoothing=0.0)"
    assert pieces == Pieces(0.2, 1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'smooth'"):
        Pieces(0.2, 1.0, smooth=0.1)


def test_formulas_use_the_namespace_handed_in():
    used = []

    def record(name):
        def call(*arrays):
            used.append(name)
            return getattr(np, name)(*arrays)

        return call

    xp = SimpleNamespace(**{name: record(name) for name in ("maximum", "where", "abs")})
    r = np.array([[-2.0], [0.1], [3.0]])
    cost = Newsvendor(1.0, 0.2, smoothing=0.5)
    expected = cost.evaluate(r, np.zeros((3, 1)))
    np.testing.assert_array_equal(cost.evaluate(r, np.zeros((3, 1)), xp), expected)
    assert set(used) == {"maximum", "where", "abs"}


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
    for kind, missing in ((Cost, "evaluate"), (ConvexPiecewiseCost, "pieces")):
        with pytest.raises(TypeError, match=f"abstract.*{missing}"):
            kind()


def test_a_cost_fits_any_number_of_products_unless_it_says_otherwise():
    assert TwoProducts().why_not(7) is None
