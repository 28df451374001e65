"""Data sets: keys, seeds, and that every method sees the same rows."""

import numpy as np
import pytest

from reproduction import SyntheticSet, YazSet, grid, restaurant
from reproduction.data import TEST_DAYS
from surefoot.datasets import load_yaz
from surefoot.exceptions import InvalidInputError


def test_the_papers_grid_has_56_data_sets_with_their_own_keys():
    keys = [data.key for data in grid()]
    assert len(set(keys)) == 56
    assert keys[0] == "synthetic/positive/uniform/s=100/variance=0.1/n=10"


def test_keys_of_the_restaurant_are_stable():
    sets = restaurant()
    assert len(sets) == 35
    assert len({data.key for data in sets}) == 35
    assert sets[0].key == "yaz/calamari/days=30"


def test_rows_follow_from_names_alone():
    first = SyntheticSet(10, 5, 1.0, test=20).load(3)
    SyntheticSet(12, 5, 1.0, test=20).load(1)
    SyntheticSet(14, 5, 1.0, test=20).load(2)  # pushes the first out of the cache
    again = SyntheticSet(10, 5, 1.0, test=20).load(3)
    assert first.X is not again.X
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y_test, again.y_test)


def test_repetitions_differ_and_smaller_data_begin_larger_ones():
    small, large = SyntheticSet(10, 5, 1.0, test=20), SyntheticSet(30, 5, 1.0, test=20)
    assert not np.array_equal(small.load(0).X, small.load(1).X)
    assert np.array_equal(small.load(0).X, large.load(0).X[:10])
    assert np.array_equal(small.load(0).X_test, large.load(0).X_test)


def test_variants_are_drawn_as_named():
    gaussian = SyntheticSet(50, 5, 1.0, "mixed", "gaussian", test=20).load(0)
    assert gaussian.X.min() < 0
    assert gaussian.truth.theta.min() < 0
    uniform = SyntheticSet(50, 5, 1.0, test=20).load(0)
    assert uniform.X.min() >= 0
    assert uniform.truth.theta.min() >= 0


def test_a_window_of_the_restaurant_ends_where_the_test_begins():
    data = load_yaz(drop_closed=True)
    sample = YazSet("lamb", 60).load(0)
    y = data.product("lamb")
    assert np.array_equal(sample.y, y[-TEST_DAYS - 60 : -TEST_DAYS])
    assert np.array_equal(sample.y_test, y[-TEST_DAYS:])
    assert np.ptp(sample.X, axis=0).min() > 0
    assert sample.X.shape[1] == sample.X_test.shape[1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SyntheticSet(1, 5, 1.0), "n must be >= 2, got 1"),
        (lambda: SyntheticSet(10, 5, -1.0), "noise_variance must be >= 0, got -1.0"),
        (lambda: SyntheticSet(10, 5, 1.0, "negative"), "coefficients must be"),
        (lambda: YazSet("pizza", 60), "product must be"),
        (lambda: YazSet("lamb", 596), "days must be between 10 and 595, got 596"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
