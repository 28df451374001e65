import math
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical, Nominal

repeatable = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Few values, so that rows and outcomes repeat.
cells = st.sampled_from([-1.5, 0.1, 0.3, 2.0])


counts = st.integers(1, 4)


@st.composite
def data(draw, weights=counts):
    """Contexts (rows, columns), outcomes (rows, products) and a weight for each row."""
    rows, columns, products = (draw(st.integers(1, most)) for most in (12, 2, 2))
    row = st.lists(cells, min_size=columns + products, max_size=columns + products)
    table = np.array(draw(st.lists(row, min_size=rows, max_size=rows)))
    masses = np.array(draw(st.lists(weights, min_size=rows, max_size=rows)))
    return table[:, :columns], table[:, columns:], masses


def assert_same(one, other):
    """Equal to the last bit."""
    for name in ("contexts", "outcomes", "weights"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def as_dictionary(X, y, weights):
    """The distribution as exact sums of weights, computed the slow way."""
    sums = {}
    for x_row, y_row, weight in zip(X.tolist(), y.tolist(), weights.tolist(), strict=True):
        sums.setdefault((*x_row, *y_row), []).append(weight)
    total = math.fsum(weights)
    return {atom: math.fsum(parts) / total for atom, parts in sums.items() if math.fsum(parts) > 0}


# Laws of distinct()


@repeatable
@given(data())
def test_a_weight_is_a_repetition_to_the_last_bit(case):
    X, y, times = case
    weighted = Empirical(X, y, times).distinct()
    repeated = Empirical(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0)).distinct()
    assert_same(weighted, repeated)


def test_seven_and_three_tenths():
    # Adding 0.1 three times gives 0.30000000000000004: weights must be added before scaling.
    repeated = Empirical([[0.0]] * 3 + [[1.0]] * 7, [0.0] * 3 + [1.0] * 7).distinct()
    assert repeated.weights.tolist() == [0.3, 0.7]


@repeatable
@given(data(weights=st.floats(0.01, 3)), st.randoms(use_true_random=False))
def test_the_order_of_rows_is_forgotten(case, random):
    X, y, weights = case
    order = list(range(len(X)))
    random.shuffle(order)
    assert_same(
        Empirical(X, y, weights).distinct(), Empirical(X[order], y[order], weights[order]).distinct()
    )


def test_weights_of_equal_rows_are_added_in_one_order():
    # In floats, 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit.
    one, other = (
        Empirical([[0.0]] * 3 + [[1.0]], [0.0] * 3 + [1.0], [*weights, 0.1]).distinct()
        for weights in ([0.1, 0.2, 0.3], [0.3, 0.2, 0.1])
    )
    assert_same(one, other)
    np.testing.assert_array_equal(one.masses, other.masses)


@repeatable
@given(data(weights=st.sampled_from([0.0, 0.0, 0.3, 2.0])).filter(lambda case: case[2].any()))
def test_the_distribution_stays_and_rows_without_weight_go(case):
    X, y, weights = case
    merged = Empirical(X, y, weights).distinct()
    assert (merged.weights > 0).all()
    assert merged.weights.sum() == pytest.approx(1.0, rel=1e-14)
    atoms = as_dictionary(merged.contexts, merged.outcomes, merged.weights)
    assert len(atoms) == len(merged.weights)
    expected = as_dictionary(X, y, weights)
    assert atoms.keys() == expected.keys()
    for atom, weight in expected.items():
        assert atoms[atom] == pytest.approx(weight, rel=1e-13)


@repeatable
@given(data())
def test_rows_come_in_order_and_merging_twice_is_merging_once(case):
    merged = Empirical(*case).distinct()
    rows = np.hstack([merged.outcomes, merged.contexts]).tolist()
    assert rows == sorted(rows)
    again = Empirical(merged.contexts, merged.outcomes, merged.masses)
    assert_same(again.distinct(), merged)
    assert merged.distinct() is merged


@repeatable
@given(data(), st.randoms(use_true_random=False))
def test_the_spread_is_that_of_the_columns_whatever_the_order_of_rows(case, random):
    X, y, weights = case
    rows = Empirical(X, y, weights)
    expected = np.sqrt(
        np.average((X - np.average(X, axis=0, weights=weights)) ** 2, axis=0, weights=weights)
    )
    np.testing.assert_allclose(rows.spread, expected, rtol=1e-12, atol=1e-12)
    order = list(range(len(X)))
    random.shuffle(order)
    other = Empirical(X[order], y[order], weights[order])
    np.testing.assert_array_equal(other.spread, rows.spread)
    np.testing.assert_array_equal(other.distinct().spread, rows.spread)


@repeatable
@given(data())
def test_moments_stay(case):
    given_, merged = Empirical(*case), Empirical(*case).distinct()
    for name in ("contexts", "outcomes"):
        before, after = getattr(given_, name), getattr(merged, name)
        np.testing.assert_allclose(merged.weights @ after, given_.weights @ before, atol=1e-13)
        np.testing.assert_allclose(merged.weights @ after**2, given_.weights @ before**2, atol=1e-13)


def test_equal_outcomes_with_other_contexts_stay_apart():
    merged = Empirical([[2.0], [1.0], [2.0]], [5.0, 5.0, 5.0]).distinct()
    assert merged.contexts.tolist() == [[1.0], [2.0]]
    assert merged.weights.tolist() == [1 / 3, 2 / 3]


def test_a_weight_too_small_to_count_is_dropped():
    assert Empirical([[1.0], [2.0]], [1.0, 2.0], [1e-320, 1e10]).distinct().weights.tolist() == [1.0]


# Sampling


def test_samples_are_rows_with_their_weights():
    X, y = np.arange(8.0).reshape(4, 2), np.arange(4.0)
    nominal = Empirical(X, y, [1, 0, 3, 4])
    contexts, outcomes = nominal.sample(np.random.default_rng(0), 20_000)
    assert contexts.shape == (20_000, 2)
    assert outcomes.shape == (20_000, 1)
    np.testing.assert_array_equal(contexts, X[outcomes[:, 0].astype(int)])
    shares = np.bincount(outcomes[:, 0].astype(int), minlength=4) / 20_000
    # Five standard errors of a share of one half.
    np.testing.assert_allclose(shares, [1 / 8, 0, 3 / 8, 1 / 2], atol=5 * math.sqrt(0.25 / 20_000))
    assert shares[1] == 0


def test_samples_repeat_with_the_generator():
    nominal = Empirical(np.arange(8.0).reshape(4, 2), np.arange(4.0))
    one, other, third = (nominal.sample(np.random.default_rng(seed), 50) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one[1], other[1])
    assert (one[1] != third[1]).any()


# Offsets


@repeatable
@given(data(), st.randoms(use_true_random=False))
def test_offsets_stay_beside_their_rows(case, random):
    X, y, masses = case
    given_offsets = np.array([[random.choice([0.0, 0.5, 2.0]) for _ in row] for row in y])
    nominal = Empirical(X, y, masses, offsets=given_offsets)
    np.testing.assert_array_equal(nominal.offsets, given_offsets)
    merged = nominal.distinct()

    def atoms(rows):
        table = np.hstack([rows.outcomes, rows.offsets])
        return as_dictionary(rows.contexts, table, rows.weights)

    assert len(atoms(merged)) == len(merged.weights)
    for atom, weight in atoms(nominal).items():
        assert atoms(merged)[atom] == pytest.approx(weight, rel=1e-13)
    # Ordered by what there is to decide about.
    left = (merged.outcomes - merged.offsets)[:, 0].tolist()
    assert left == sorted(left)
    again = merged.distinct()
    assert_same(again, merged)
    np.testing.assert_array_equal(again.offsets, merged.offsets)
    order = list(range(len(X)))
    random.shuffle(order)
    shuffled = Empirical(X[order], y[order], masses[order], offsets=given_offsets[order]).distinct()
    assert_same(shuffled, merged)
    np.testing.assert_array_equal(shuffled.offsets, merged.offsets)


def test_rows_that_differ_in_their_offset_alone_stay_apart():
    merged = Empirical([[1.0]] * 3, [2.0] * 3, offsets=[0.5, 1.0, 0.5]).distinct()
    assert merged.offsets.tolist() == [[1.0], [0.5]]
    assert merged.weights.tolist() == [1 / 3, 2 / 3]
    assert merged.outcomes.tolist() == [[2.0], [2.0]]


def test_without_offsets_there_are_none():
    assert Empirical([[1.0]], [2.0]).offsets is None
    assert Empirical([[1.0]], [2.0]).distinct().offsets is None
    assert Empirical([[1.0]], [2.0]).take(np.array([0, 0])).offsets is None


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([1.0], "offsets must have one row per row of X (2), got 1."),
        (
            [1.0, math.nan],
            "offsets must be finite (no NaN, no infinity), got NaN in row 1.",
        ),
        (["a", "b"], "offsets must be numeric, got text or dates (<U1)."),
    ],
)
def test_unusable_offsets_are_refused(offsets, message):
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Empirical([[1.0], [2.0]], [1.0, 2.0], offsets=offsets)


def test_offsets_have_the_shape_of_the_outcomes():
    with pytest.raises(InvalidInputError, match=r"^offsets "):
        Empirical([[1.0], [2.0]], [[1.0, 1.0], [2.0, 2.0]], offsets=[1.0, 2.0])


def test_offsets_are_a_read_only_copy():
    offsets = np.array([[1.0], [2.0]])
    nominal = Empirical([[1.0], [2.0]], [3.0, 4.0], offsets=offsets)
    offsets[0] = 9.0
    assert nominal.offsets.tolist() == [[1.0], [2.0]]
    with pytest.raises(ValueError, match="read-only"):
        nominal.offsets[0] = 9.0
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'offsets'"):
        nominal.offsets = None


# Some of the rows


@pytest.mark.parametrize("offsets", [None, [10.0, 20.0, 30.0, 40.0]])
def test_taken_rows_come_in_the_order_asked_for_with_their_own_masses(offsets):
    X, y = np.arange(8.0).reshape(4, 2), np.arange(4.0)
    nominal = Empirical(X, y, [1, 2, 3, 4], names=["a", "b"], offsets=offsets)
    rows = np.array([3, 1, 1])
    some = nominal.take(rows)
    np.testing.assert_array_equal(some.contexts, X[rows])
    assert some.outcomes[:, 0].tolist() == [3.0, 1.0, 1.0]
    assert some.masses.tolist() == [4.0, 2.0, 2.0]
    assert some.weights.tolist() == [0.5, 0.25, 0.25]
    assert some.names == ("a", "b")
    if offsets is not None:
        assert some.offsets[:, 0].tolist() == [40.0, 20.0, 20.0]


def test_taken_rows_may_be_given_masses():
    nominal = Empirical(np.arange(8.0).reshape(4, 2), np.arange(4.0), [1, 2, 3, 4])
    assert nominal.take(np.array([3, 1]), np.array([1.0, 3.0])).weights.tolist() == [0.25, 0.75]
    assert nominal.take(np.array([3, 1]), np.ones(1)).weights.tolist() == [0.5, 0.5]


def test_taken_rows_must_be_some_with_masses_that_can_be():
    nominal = Empirical([[1.0], [2.0]], [1.0, 2.0], names=["heat"])
    with pytest.raises(InvalidInputError, match="X must have at least one row"):
        nominal.take(np.zeros(0, dtype=int))
    with pytest.raises(InvalidInputError, match="sample_weight must be >= 0"):
        nominal.take(np.arange(2), np.array([1.0, -1.0]))
    chosen = nominal.take(np.array([False, True]))
    assert (chosen.contexts.tolist(), chosen.names, chosen.weighted) == ([[2.0]], ("heat",), True)
    with pytest.raises(ValueError, match="read-only"):
        chosen.outcomes[0] = 3.0


def test_all_rows_taken_are_the_nominal():
    nominal = Empirical(np.arange(8.0).reshape(4, 2), np.arange(4.0), [1, 2, 3, 4])
    whole = nominal.take(np.arange(4))
    assert_same(whole, nominal)
    np.testing.assert_array_equal(whole.masses, nominal.masses)


# Shapes, names, printing


def test_a_vector_of_outcomes_is_one_product():
    vector, matrix = Empirical([[1, 2]], [3]), Empirical([[1, 2]], [[3]])
    assert_same(vector, matrix)
    assert (vector.n_columns, vector.n_products) == (2, 1)
    assert Empirical([[1], [2]], [[1, 2, 3], [4, 5, 6]]).n_products == 3


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_bring_their_names(library):
    frame = library.DataFrame({"price": [1.0, 2.0], "holiday": [0, 1]})
    nominal = Empirical(frame, library.Series([3.0, 4.0]))
    assert nominal.names == ("price", "holiday")
    assert nominal.contexts.tolist() == [[1.0, 0.0], [2.0, 1.0]]
    assert Empirical(frame, [3.0, 4.0], names=["a", "b"]).names == ("a", "b")
    assert Empirical(frame.to_numpy(), [3.0, 4.0]).names is None


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"], "ab"])
def test_names_must_match_the_columns(names):
    message = f"names must have one entry per column of X (2), got {names!r}."
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Empirical([[1.0, 2.0]], [3.0], names=names)


@pytest.mark.parametrize(
    ("nominal", "text"),
    [
        (Empirical([[1.0]], [2.0]), "Empirical(1 row, 1 column, 1 product)"),
        (
            Empirical(np.zeros((500, 100)), np.zeros((500, 2))),
            "Empirical(500 rows, 100 columns, 2 products)",
        ),
        (
            Empirical([[1.0], [2.0]], [2.0, 3.0], [1, 2]),
            "Empirical(2 rows, 1 column, 1 product, weighted)",
        ),
    ],
)
def test_repr_tells_sizes(nominal, text):
    assert repr(nominal) == text


# Immutability


def test_immutable():
    nominal = Empirical([[1.0], [2.0]], [3.0, 4.0])
    for name in ("contexts", "outcomes", "weights", "names", "weighted"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(nominal, name, None)


@pytest.mark.parametrize("merge", [False, True])
def test_arrays_are_read_only(merge):
    nominal = Empirical([[1.0], [1.0], [2.0]], [3.0, 3.0, 4.0], [1, 2, 3])
    nominal = nominal.distinct() if merge else nominal
    for name in ("contexts", "outcomes", "weights", "masses"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(nominal, name)[0] = 9.0


def test_the_user_s_own_arrays_stay_theirs():
    X, y, w = np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]), np.array([0.25, 0.75])
    nominal = Empirical(X, y, w)
    nominal.distinct()
    np.testing.assert_array_equal(X, [[1.0], [2.0]])
    np.testing.assert_array_equal(y, [[3.0], [4.0]])
    np.testing.assert_array_equal(w, [0.25, 0.75])
    for array in (X, y, w):
        array[0] = 9.0
    assert nominal.contexts.tolist() == [[1.0], [2.0]]
    assert nominal.outcomes.tolist() == [[3.0], [4.0]]
    assert nominal.weights.tolist() == [0.25, 0.75]


# Bad input


@pytest.mark.parametrize(
    ("X", "y", "weights", "message"),
    [
        (
            [[1.0], [math.nan]],
            [1, 2],
            None,
            "X must be finite (no NaN, no infinity), got NaN in row 1, column 0.",
        ),
        (
            [[1.0], [2.0]],
            [1, math.inf],
            None,
            "y must be finite (no NaN, no infinity), got infinity in row 1.",
        ),
        (
            [[1.0], [2.0, 3.0]],
            [1, 2],
            None,
            "X must be a rectangular array, got rows of different lengths.",
        ),
        ([["a"], ["b"]], [1, 2], None, "X must be numeric, got text or dates (<U1)."),
        ([["1"], ["2"]], [1, 2], None, "X must be numeric, got text or dates (<U1)."),
        ([[1.0], [2j]], [1, 2], None, "X must be real, got complex data."),
        (np.zeros((0, 2)), [], None, "X must have at least one row and one column, got shape (0, 2)."),
        ([1.0, 2.0], [1, 2], None, "X must be a matrix (rows, columns), got an array of shape (2,)."),
        ([[1.0], [2.0]], [1, 2, 3], None, "y must have one row per row of X (2), got 3."),
        ([[1.0], [2.0]], ["a", "b"], None, "y must be numeric, got text or dates (<U1)."),
        (
            [[1.0, 0.0], [2.0, -1e-120]],
            [1, 2],
            None,
            "X must be zero or reach 1e-100 in each column, got at most 1e-120 in column 1: choose other "
            "units.",
        ),
        (
            [[1.0], [2.0]],
            [1e-160, 0.0],
            None,
            "y must be zero or reach 1e-100 in each column, got at most 1e-160 in column 0: choose other "
            "units.",
        ),
        (
            [[1.0], [2.0]],
            [1e160, 0.0],
            None,
            "y must lie within +-1e+100, got 1e+160: choose other units.",
        ),
        ([[1.0], [2.0]], [1, 2], [1, -1], "sample_weight must be >= 0, got -1.0."),
        ([[1.0], [2.0]], [1, 2], [0, 0], "sample_weight must have a positive sum, got all zeros."),
        (
            [[1.0], [2.0]],
            [1, 2],
            [1],
            "sample_weight must have one entry per row of X (2), got shape (1,).",
        ),
    ],
)
def test_unusable_data_are_refused(X, y, weights, message):
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        Empirical(X, y, weights)


def test_misspelt_options_are_type_errors():
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        Empirical([[1.0]], [2.0], weights=[1])


def test_abstract_nominals_cannot_be_made():
    with pytest.raises(TypeError, match=r"abstract.*n_columns.*n_products.*sample"):
        Nominal()
