"""The general estimator: any cost, policy, ball and solver."""

from typing import cast

from surefoot.ambiguity import AmbiguitySet, WassersteinBall
from surefoot.costs import Cost
from surefoot.estimators.recipe import Recipe, nominal_parts
from surefoot.estimators.robust_estimator import RobustEstimator
from surefoot.forecasts import Ensemble, Forecaster
from surefoot.nominals import Nominal
from surefoot.policies import Linear, Policy
from surefoot.solvers import Solver


class RobustPolicy(RobustEstimator):
    r"""A policy that minimises its worst expected cost over a Wasserstein ball.

    .. math:: \min_\theta \sup_{P: W_p(P, Q) \le \rho} E_P[c(f(\theta; X), Y)]

    Parameters
    ----------
    cost_function
        What a decision costs, for example ``Newsvendor(backorder=1.0, holding=0.2)``. (It is not
        called ``cost`` because ``model.cost(X, y)`` is the realised cost.)
    policy
        How a context becomes a decision; None is ``Linear(intercept=True)``.
    ball
        Which distributions to withstand; None is ``WassersteinBall(radius="auto", order=2)``.
    solver
        None is the quickest that can certify: ``PrimalDual()`` where it can, else ``DASGD()``.
    nominal
        The centre of the ball; None is the empirical distribution of the data given to ``fit``.
        "auto" lets an ensemble decide (see the page on automatic decisions), or, beside a solver of
        your own, corrects a forecast. A ``Forecaster`` forecasts the outcome first, and the ball
        holds contexts and errors of the forecast.
    random_state
        A whole number; the fit depends on it and on the data alone. None draws a new one for each
        fit, which ``seed_`` tells.

    Attributes
    ----------
    radius_, multiplier_, parameters_, n_steps_
        The radius used, the optimal gamma, the policy's parameters and the steps taken.
    certificate_
        Bounds on the worst case with ``upper``, ``lower``, ``gap``, ``kind`` and ``message``.
    converged_, status_
        Whether the certified gap is within tolerance (None where no lower bound is known), and a
        sentence that says which solver ran and how it ended.
    problem_
        The question in the units of the fit.
    radius_path_
        What cross-validation saw, when the radius is "auto".

    Examples
    --------
    >>> from surefoot import RobustPolicy, WassersteinBall
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=50, s=10, seed=0)
    >>> model = RobustPolicy(Newsvendor(backorder=1.0, holding=0.2),
    ...                      ball=WassersteinBall(radius=0.1)).fit(data.X, data.y)
    >>> model.predict(data.X_test).shape
    (10000,)
    >>> model.certificate_.gap <= 0.01
    True
    """

    def __init__(
        self,
        cost_function: Cost | None = None,
        policy: Policy | None = None,
        *,
        ball: AmbiguitySet | None = None,
        solver: Solver | None = None,
        nominal: Nominal | Forecaster | Ensemble | str | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.cost_function = cost_function
        self.policy = policy
        self.ball = ball
        self.solver = solver
        self.nominal = nominal
        self.random_state = random_state

    def _recipe(self) -> Recipe:
        ball = WassersteinBall("auto") if self.ball is None else self.ball
        recipe = Recipe(
            cost=cast(Cost, self.cost_function),  # refused below if it is missing
            policy=Linear() if self.policy is None else self.policy,
            ball=ball,
            solver=self.solver,
            **nominal_parts(self.nominal, ball, self.solver),
        )
        return recipe.checked()
