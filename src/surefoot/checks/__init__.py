"""Checks that a cost, policy, nominal, ambiguity set or solver of one's own must pass.

``check(part)`` runs all that apply and raises ``ConformanceError`` with a sentence at the first that
fails; ``checks_for(part)`` returns them by name, for a test of each::

    @pytest.mark.parametrize("name, run", checks_for(MyCost(0.3)))
    def test_my_cost(name, run):
        run()

Surefoot's own parts pass them, too.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from surefoot.ambiguity import AmbiguitySet
from surefoot.checks.cost_checks import COST_CHECKS
from surefoot.checks.demands import ConformanceError, guarded
from surefoot.checks.nominal_checks import NOMINAL_CHECKS
from surefoot.checks.policy_checks import POLICY_CHECKS
from surefoot.checks.set_checks import SET_CHECKS
from surefoot.checks.solver_checks import SOLVER_CHECKS
from surefoot.costs import Cost
from surefoot.nominals import Nominal
from surefoot.policies import Policy
from surefoot.solvers import Solver

__all__ = ["Check", "ConformanceError", "check", "checks_for"]

Check = tuple[str, Callable[[], None]]


def check(part: Any) -> None:
    """Run every check that applies to a part.

    Examples
    --------
    >>> from surefoot.ambiguity import Contamination, WassersteinBall
    >>> from surefoot.costs import TieredNewsvendor
    >>> check(TieredNewsvendor(((0, 1.0), (10, 3.0)), 0.2))
    >>> check(WassersteinBall(0.1))
    >>> check(Contamination(0.1))
    """
    for _, run in checks_for(part):
        run()


def checks_for(part: Any) -> list[Check]:
    """Return the checks that apply to a part: a name, and a function that raises if it fails."""
    kinds: tuple[tuple[type, tuple[Callable[[Any], None], ...]], ...] = (
        (Cost, COST_CHECKS), (Policy, POLICY_CHECKS), (Nominal, NOMINAL_CHECKS),
        (AmbiguitySet, SET_CHECKS), (Solver, SOLVER_CHECKS),
    )  # fmt: skip
    for kind, checks in kinds:
        if isinstance(part, kind):
            return [(run.__name__.removeprefix("_"), partial(guarded, run, part)) for run in checks]
    raise ConformanceError(
        f"checks are for costs, policies, nominals, ambiguity sets and solvers, got {part!r}."
    )
