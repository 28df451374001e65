"""Costs of more than two lines, on the same small random problems."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from surefoot import Problem
from surefoot.ambiguity import WassersteinForm
from surefoot.costs import ConvexPiecewiseCost, Pieces
from surefoot.problem import affine_forms

LINES = {
    "newsvendor": Pieces.kinked(up=0.3, down=1.0),
    # A tiered shortage cost, a service level with a cost of its own, a salvage value below zero.
    "tiered": Pieces((-2.0, -0.7, 0.4), (-0.9, 0.0, 0.0)),
    "flat": Pieces((-1.0, 0.0, 1.6), (-0.3, 0.0, -0.5)),
    "salvage": Pieces((-0.5, 0.3, 1.0), (-2.0, -2.2, -3.0)),
    "four": Pieces((-1.5, -0.5, 0.2, 0.9), (-1.0, 0.1, 0.0, -0.6)),
}


@dataclass(frozen=True)
class Lines(ConvexPiecewiseCost):
    """Any lines, the same for every product."""

    lines: Pieces

    def pieces(self, n_products: int) -> tuple[Pieces, ...]:
        """Return the lines."""
        return (self.lines,) * n_products


@pytest.fixture(scope="session")
def make_lines_problem(make_problem: Callable[..., Problem]) -> Callable[..., Problem]:
    """Return the maker of random problems whose cost has the named lines."""
    return lambda seed=0, *, lines, **options: replace(
        make_problem(seed, **options), cost=Lines(LINES[lines])
    )


@pytest.fixture(scope="session")
def make_lines(make_lines_problem: Callable[..., Problem]) -> Callable[..., WassersteinForm]:
    """Return the maker of forms, in the user's own units, whose cost has the named lines."""
    return lambda seed=0, **options: affine_forms(make_lines_problem(seed, **options))[
        0
    ].in_plain_units()
