import math
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.costs import Newsvendor, Pieces
from surefoot.exceptions import InvalidInputError, InvalidTypeError

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
prices = st.floats(0.05, 20)
amounts = st.floats(-50, 50)
shares = st.floats(0, 1)


def single(cost, z, y):
    """The cost of one decision for one product."""
    return float(cost.evaluate(np.array([[z]]), np.array([[y]]))[0])


@repeatable
@given(amounts, amounts, prices, prices)
def test_the_textbook_formula(z, y, b, h):
    expected = b * max(y - z, 0.0) + h * max(z - y, 0.0)
    assert single(Newsvendor(backorder=b, holding=h), z, y) == pytest.approx(expected, abs=1e-300)
    r = z - y
    assert single(Newsvendor(backorder=b, holding=h), z, y) == max(h * r, -b * r)


@repeatable
@given(*(amounts,) * 4, shares, prices, prices, st.sampled_from([0.0, 2.0]))
def test_convex_in_decision_and_outcome_together(z1, y1, z2, y2, share, b, h, delta):
    cost = Newsvendor(b, h, smoothing=delta)
    middle = single(cost, share * z1 + (1 - share) * z2, share * y1 + (1 - share) * y2)
    chord = share * single(cost, z1, y1) + (1 - share) * single(cost, z2, y2)
    assert middle <= chord + 1e-10 * (1 + chord)


@repeatable
@given(amounts, amounts, prices, prices)
def test_never_negative_and_zero_only_on_the_spot(z, y, b, h):
    cost = Newsvendor(b, h)
    assert single(cost, y, y) == 0
    assert (single(cost, z, y) > 0) is (z != y)


@repeatable
@given(amounts, amounts, prices, prices, st.integers(-3, 3))
def test_units_of_amounts_and_of_money(z, y, b, h, power):
    factor = 2.0**power
    cost = single(Newsvendor(b, h), z, y)
    assert single(Newsvendor(b, h), factor * z, factor * y) == factor * cost
    assert single(Newsvendor(factor * b, factor * h), z, y) == factor * cost
    assert single(Newsvendor(backorder=h, holding=b), -z, -y) == cost


@repeatable
@given(
    st.lists(st.tuples(amounts, amounts, prices, prices), min_size=1, max_size=4),
    st.sampled_from([0.0, 1.0]),
)
def test_products_with_their_own_prices_add_up(products, delta):
    z, y, b, h = (np.array(part) for part in zip(*products, strict=True))
    together = Newsvendor(b, h, delta).evaluate(z[None, :], y[None, :])
    alone = [single(Newsvendor(bj, hj, delta), zj, yj) for zj, yj, bj, hj in products]
    assert together.shape == (1,)
    assert together[0] == pytest.approx(sum(alone), rel=1e-12)


def test_one_price_serves_every_product():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(2, 6, 3))
    shared = Newsvendor(1.0, 0.2).evaluate(z, y)
    np.testing.assert_array_equal(Newsvendor([1.0] * 3, [0.2] * 3).evaluate(z, y), shared)
    np.testing.assert_array_equal(Newsvendor(1.0, [0.2] * 3).evaluate(z, y), shared)
    columns = [Newsvendor(1.0, 0.2).evaluate(z[:, [j]], y[:, [j]]) for j in range(3)]
    np.testing.assert_allclose(shared, np.sum(columns, axis=0), rtol=1e-14)


def test_pieces_put_each_price_on_its_side():
    cost = Newsvendor(backorder=(1.0, 2.0), holding=0.2, smoothing=0.1)
    assert cost.pieces(2) == (Pieces.kinked(0.2, 1.0, 0.1), Pieces.kinked(0.2, 2.0, 0.1))
    assert Newsvendor(1.0, 0.2).pieces(1) == (Pieces.kinked(up=0.2, down=1.0),)


def test_smoothing_shifts_the_best_order_as_far_as_documented():
    b, h, delta = 1.0, 0.2, 0.5
    z = np.linspace(-1, 1, 20_001)[:, None]
    costs = Newsvendor(b, h, smoothing=delta).evaluate(z, np.zeros_like(z))
    assert z[np.argmin(costs), 0] == pytest.approx(delta * (b - h) / (b + h), abs=1e-3)


# Bad input


@pytest.mark.parametrize("name", ["backorder", "holding"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "must be > 0, got 0.0."),
        (-1.0, "must be > 0, got -1.0."),
        ((1.0, -2.0), "must be > 0, got -2.0."),
        (math.nan, "must be finite (no NaN, no infinity), got NaN in the value."),
        (math.inf, "must be finite (no NaN, no infinity), got infinity in the value."),
        ([1.0, math.nan], "must be finite (no NaN, no infinity), got NaN in row 1."),
        ("1.0", "must be numeric, got text or dates (<U3)."),
        (1 + 2j, "must be real, got complex data."),
        ([], "must be a number or one number per product, got shape (0,)."),
        ([[1.0]], "must be a number or one number per product, got shape (1, 1)."),
        ([[1.0], [1.0, 2.0]], "must be a rectangular array, got rows of different lengths."),
    ],
)
def test_unusable_prices_are_refused(name, value, message):
    options = {"backorder": 1.0, "holding": 0.2, name: value}
    with pytest.raises(InvalidInputError, match=f"^{name} {re.escape(message)}$"):
        Newsvendor(**options)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (-0.1, InvalidInputError, "smoothing must be >= 0, got -0.1."),
        (math.nan, InvalidInputError, "smoothing must be >= 0, got nan."),
        (math.inf, InvalidInputError, "smoothing must be finite, got inf."),
        ("0", InvalidTypeError, "smoothing must be a number, got '0'."),
        (True, InvalidTypeError, "smoothing must be a number, got True."),
        ([0.1], InvalidTypeError, "smoothing must be a number, got [0.1]."),
    ],
)
def test_unusable_smoothing_is_refused(value, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        Newsvendor(1.0, 0.2, smoothing=value)


@pytest.mark.parametrize(
    ("cost", "n_products", "message"),
    [
        (
            Newsvendor((1.0, 2.0, 3.0), 0.2),
            2,
            "backorder must be one number or one per product (2), got 3 numbers.",
        ),
        (
            Newsvendor([1.0, 2.0], 0.2),
            3,
            "backorder must be one number or one per product (3), got 2 numbers.",
        ),
        (
            Newsvendor(1.0, [0.2]),
            2,
            "holding must be one number or one per product (2), got 1 numbers.",
        ),
    ],
)
def test_prices_must_match_the_products(cost, n_products, message):
    assert cost.why_not(n_products) == message
    for call in (
        lambda: cost.pieces(n_products),
        lambda: cost.evaluate(np.zeros((4, n_products)), np.ones((4, n_products))),
    ):
        with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
            call()


def test_prices_that_match_are_welcome():
    assert Newsvendor([1.0, 2.0], [0.2, 0.3]).why_not(2) is None
    assert Newsvendor(1.0, 0.2).why_not(17) is None


def test_misspelt_and_missing_options_are_type_errors():
    with pytest.raises(TypeError, match="unexpected keyword argument 'back_order'"):
        Newsvendor(back_order=1.0, holding=0.2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'holding'"):
        Newsvendor(1.0)


# Values: immutable, equal, printable


def test_immutable():
    cost = Newsvendor(1.0, 0.2)
    for name in ("backorder", "holding", "smoothing"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(cost, name, 3.0)


def test_the_user_s_array_is_copied():
    backorder = np.array([1.0, 2.0])
    cost = Newsvendor(backorder, 0.2)
    backorder[0] = 9.0
    assert cost.backorder == (1.0, 2.0)


def test_equal_prices_make_equal_costs():
    assert Newsvendor(1, 0.2) == Newsvendor(np.float64(1.0), 0.2)
    assert Newsvendor([1, 2], 0.2) == Newsvendor(np.array([1.0, 2.0]), 0.2)
    assert len({Newsvendor(1, 0.2), Newsvendor(1.0, 0.2), Newsvendor(1, 0.3)}) == 2


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (Newsvendor(1, np.float64(0.2)), "Newsvendor(backorder=1.0, holding=0.2, smoothing=0.0)"),
        (
            Newsvendor(np.ones(2), 0.2, 0.1),
            "Newsvendor(backorder=(1.0, 1.0), holding=0.2, smoothing=0.1)",
        ),
    ],
)
def test_repr_reads_back(cost, text):
    assert repr(cost) == text
    assert eval(repr(cost), {"Newsvendor": Newsvendor}) == cost
