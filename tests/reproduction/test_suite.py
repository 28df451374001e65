"""The grid: keys, order, presets."""

import itertools

import pytest

from reproduction import (
    METHODS,
    Suite,
    SyntheticSet,
    chosen_methods,
    paper_suite,
    quick_suite,
    restaurant,
    variant_suite,
)
from surefoot.exceptions import InvalidInputError


def test_the_paper_has_1120_instances():
    suite = paper_suite(chosen_methods(["saa"]))
    keys = [cell.key for cell in suite.cells()]
    assert len(set(keys)) == len(keys) == 1120 + 35  # and the restaurant, once
    assert "synthetic/positive/uniform/s=1000/variance=0.5/n=500/saa/repetition=19" in keys


def test_seeds_depend_on_names_alone(small_suite):
    suite = small_suite()
    seeds = {cell.key: cell.seed for cell in suite.cells()}
    alone = Suite(suite.data[1:], suite.methods[:1], 2)
    for cell in alone.cells():
        assert seeds[cell.key] == cell.seed
    assert len({(c.method.name, c.repetition, c.seed) for c in suite.cells()}) == 8


def test_real_data_are_run_once():
    suite = Suite(restaurant(("lamb",), (30,)), chosen_methods(["saa"]), 5)
    assert [cell.repetition for cell in suite.cells()] == [0]


def test_neighbours_share_their_data(small_suite):
    suite = small_suite()
    order = [(cell.data.key, cell.repetition) for cell in suite.cells()]
    changes = sum(a != b for a, b in itertools.pairwise(order))
    assert changes + 1 == len(set(order))


def test_quick_has_all_methods_and_the_restaurant():
    suite = quick_suite()
    assert suite.methods == METHODS
    assert {data.parts.kind for data in suite.data} == {"synthetic", "yaz"}


def test_variants_span_both_flags():
    found = {(d.contexts, d.coefficients) for d in variant_suite().data}
    assert found == {("gaussian", "positive"), ("uniform", "mixed"), ("gaussian", "mixed")}


def test_flags_reach_the_data():
    suite = paper_suite(chosen_methods(["saa"]), 1, coefficients="mixed", contexts="gaussian")
    assert suite.data[0].key.startswith("synthetic/mixed/gaussian/")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: chosen_methods(["sas"]), "methods must be among ours-auto-2, .*, got 'sas'"),
        (lambda: chosen_methods([]), "methods must be at least one name, got none"),
        (lambda: Suite((), METHODS, 1), "data sets must be distinct and at least one"),
        (lambda: Suite((SyntheticSet(9, 2, 1.0),) * 2, METHODS, 1), "data sets must be distinct"),
        (lambda: Suite((SyntheticSet(9, 2, 1.0),), METHODS, 0), "repetitions must be >= 1, got 0"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
