"""The parts of a problem, before there are data."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot.ambiguity import AmbiguitySet, WassersteinBall
from surefoot.costs import Cost
from surefoot.exceptions import InvalidInputError
from surefoot.forecasts import Ensemble, Forecaster, Question, centred, ensembled
from surefoot.nominals import Empirical, Nominal
from surefoot.policies import Policy
from surefoot.problem import Problem
from surefoot.solvers import Solver
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import check_instance


@dataclass(frozen=True)
class Recipe:
    """The parts of a problem, before there are data; no solver is the quickest that can certify."""

    cost: Cost
    policy: Policy
    ball: AmbiguitySet
    solver: Solver | None = None
    nominal: Nominal | None = None
    forecaster: Forecaster | Ensemble | None = None

    def checked(self) -> "Recipe":
        """Return the recipe after refusing parts of the wrong kind by name."""
        check_instance("cost_function", self.cost, Cost, "a cost such as Newsvendor(1.0, 0.2)")
        check_instance("policy", self.policy, Policy, "a policy such as Linear()")
        check_instance("ball", self.ball, AmbiguitySet, "a WassersteinBall")
        if self.solver is not None:
            check_instance("solver", self.solver, Solver, "a solver such as DASGD() or None")
        if self.nominal is not None:
            check_instance(
                "nominal", self.nominal, Nominal, "a nominal such as Empirical(X, y), 'auto' or None"
            )
        return self

    @property
    def follows_level(self) -> bool:
        """Whether decisions follow a level that drifts, told when rows were."""
        return isinstance(self.forecaster, Ensemble)

    def fitted(self, contexts: FloatArray) -> "Recipe":
        """Return the recipe with the policy's feature map fitted."""
        return replace(self, policy=self.policy.fitted(contexts))

    def question(self, nominal: Nominal, seed: int, when: IntArray | None = None) -> Question:
        """Return the problem around a nominal, around a forecast if the recipe asks for one.

        ``when`` says how late each row was, None where that is not known.
        """
        if self.forecaster is None:
            open_radius = isinstance(self.ball.radius, str)
            ball = self.ball.at(0.0) if open_radius else self.ball
            problem = Problem(self.cost, self.policy, nominal, ball)
            if not isinstance(nominal, Empirical) or not open_radius:
                return Question(problem, problem)  # no radius will be rehearsed
            if when is None:
                return Question(problem, problem.around(nominal.distinct()))
            order = np.argsort(when, kind="stable")
            order = order[nominal.weights[order] > 0.0]
            return Question(problem, problem.around(nominal.take(order)), times=when[order])
        if self.ball.radius in self.ball.rules[1:]:
            raise InvalidInputError(
                f"nominal must be None beside radius={self.ball.radius!r}, which speaks of "
                "independent rows and not of errors of a forecast, got a forecast."
            )
        assert isinstance(nominal, Empirical)  # a recipe with a forecaster has no other
        if isinstance(self.forecaster, Ensemble):
            return ensembled(self.cost, self.policy, self.ball, self.forecaster, nominal, seed, when)
        return centred(self.cost, self.policy, self.ball, self.forecaster, nominal, seed)


def nominal_parts(
    given: Any, ball: AmbiguitySet, solver: Any = None, protect: float = 0.0
) -> dict[str, Any]:
    """Return what the parameter ``nominal`` says: a distribution, or a way to forecast first.

    "auto" is an ensemble, or a forecast to be corrected where the user has a solver or a set to do so.
    """
    if isinstance(given, Forecaster | Ensemble):
        return {"forecaster": given}
    if isinstance(given, str):
        if given != "auto":
            raise InvalidInputError(f"nominal must be a Nominal, 'auto' or None, got {given!r}.")
        plain = isinstance(ball, WassersteinBall) and solver is None
        return {"forecaster": Ensemble(protect) if plain else Forecaster()}
    return {"nominal": given}
