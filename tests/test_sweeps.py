"""What a sweep leaves to the night: no setting, and no two settings that meet."""

import itertools

from tests.sweeps import holding_each_pair, mark_sweeps, settings_of

pytest_plugins = ["pytester"]

ORDERS, SUPPORTS, PRICES, COSTS = (1, 2), (None, "closed", "open"), (0.5, 2.0), "abcd"


def all_cases():
    return [
        settings_of(dict(zip(("order", "support", "price", "cost"), values, strict=True)))
        for values in itertools.product(ORDERS, SUPPORTS, PRICES, COSTS)
    ]


def test_each_pair_of_settings_meets_in_few_cases():
    cases = all_cases()
    kept = holding_each_pair(cases)
    assert len(cases) == 48
    assert 12 <= len(kept) <= 16  # three supports meet four costs
    seen = {pair for number in kept for pair in itertools.permutations(cases[number], 2)}
    for case in cases:
        assert seen.issuperset(itertools.permutations(case, 2))


def test_a_sweep_over_one_setting_or_two_is_whole():
    assert holding_each_pair([settings_of({"order": order}) for order in ORDERS]) == {0, 1}
    two = [settings_of({"order": a, "cost": b}) for a in ORDERS for b in COSTS]
    assert len(holding_each_pair(two)) == 8


def test_options_count_one_by_one():
    together = settings_of({"options": {"order": 1, "box": None}, "share": 0.3})
    assert together == settings_of({"order": 1, "box": None, "share": 0.3})


def test_cases_left_to_the_night_are_marked(pytester):
    pytester.makeini("[pytest]\nmarkers =\n  sweep\n  nightly")
    items = pytester.getitems(
        """
        import pytest

        @pytest.mark.sweep
        @pytest.mark.parametrize("order", [1, 2])
        @pytest.mark.parametrize("support", [None, "closed"])
        @pytest.mark.parametrize("price", [0.5, 2.0])
        def test_swept(order, support, price): ...

        @pytest.mark.parametrize("order", [1, 2])
        @pytest.mark.parametrize("support", [None, "closed"])
        @pytest.mark.parametrize("price", [0.5, 2.0])
        def test_whole(order, support, price): ...
        """
    )
    mark_sweeps(items)
    left = [item.name for item in items if item.get_closest_marker("nightly")]
    assert len(left) == 4
    assert all(name.startswith("test_swept[") for name in left)
