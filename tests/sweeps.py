"""Which cases of a sweep run on every push: enough of them that each pair of settings meets.

A test over two orders, three supports, two prices and four costs has 48 cases. Mistakes hide in one setting,
or where two of them meet: a dozen cases hold every such pair, and ``make attack`` runs all 48.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence

import pytest


def mark_sweeps(items: Iterable[pytest.Item]) -> None:
    """Leave to the night the cases of each test marked ``sweep`` that show no new pair of settings."""
    swept: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sweep"):
            swept.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in swept.values():
        kept = holding_each_pair([settings_of(case.callspec.params) for case in cases])
        for number, case in enumerate(cases):
            if number not in kept:
                case.add_marker(pytest.mark.nightly)


def settings_of(parameters: Mapping[str, object]) -> frozenset[tuple[str, str]]:
    """Return names and values of a case; those of a dictionary of options one by one."""
    found: dict[str, object] = {}
    for name, value in parameters.items():
        found.update(value if isinstance(value, dict) else {name: value})
    return frozenset((name, repr(value)) for name, value in found.items())


def holding_each_pair(cases: Sequence[frozenset[tuple[str, str]]]) -> set[int]:
    """Return numbers of cases that together hold every pair of settings that any case holds.

    Greedy: the next is the first of those that hold most pairs not yet seen.
    """
    pairs = [set(itertools.combinations(sorted(case), 2)) or set(case) for case in cases]
    kept: set[int] = set()
    missing = set().union(*pairs)
    while missing:
        best = max(range(len(cases)), key=lambda number: len(pairs[number] & missing))
        kept.add(best)
        missing -= pairs[best]
    return kept
