"""The parts of a problem, before there are data."""

from dataclasses import dataclass, replace
from typing import Any

from surefoot.ambiguity import WassersteinBall
from surefoot.costs import Cost
from surefoot.exceptions import InvalidInputError
from surefoot.forecasts import Forecaster
from surefoot.nominals import Nominal
from surefoot.policies import Policy
from surefoot.problem import Problem
from surefoot.solvers import Solver
from surefoot.typing import FloatArray
from surefoot.validation import check_instance


@dataclass(frozen=True)
class Recipe:
    """The parts of a problem, before there are data."""

    cost: Cost
    policy: Policy
    ball: WassersteinBall
    solver: Solver
    nominal: Nominal | None = None
    forecaster: Forecaster | None = None

    def checked(self) -> "Recipe":
        """Return the recipe after refusing parts of the wrong kind by name."""
        check_instance("cost_function", self.cost, Cost, "a cost such as Newsvendor(1.0, 0.2)")
        check_instance("policy", self.policy, Policy, "a policy such as Linear()")
        check_instance("ball", self.ball, WassersteinBall, "a WassersteinBall")
        check_instance("solver", self.solver, Solver, "a solver such as DASGD()")
        if self.nominal is not None:
            check_instance(
                "nominal", self.nominal, Nominal, "a nominal such as Empirical(X, y), 'auto' or None"
            )
        return self

    def fitted(self, contexts: FloatArray) -> "Recipe":
        """Return the recipe with the policy's feature map fitted."""
        return replace(self, policy=self.policy.fitted(contexts))

    def problem(self, nominal: Nominal, radius: float) -> Problem:
        """Return the problem at a radius."""
        return Problem(self.cost, self.policy, nominal, replace(self.ball, radius=radius))


def nominal_parts(given: Any) -> dict[str, Any]:
    """Return what the parameter ``nominal`` says: a distribution, or a way to forecast first."""
    if isinstance(given, Forecaster):
        return {"forecaster": given}
    if isinstance(given, str):
        if given != "auto":
            raise InvalidInputError(f"nominal must be a Nominal, 'auto' or None, got {given!r}.")
        return {"forecaster": Forecaster()}
    return {"nominal": given}
