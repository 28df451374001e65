"""The two-line way in: how much to order."""

from collections.abc import Sequence

from surefoot.ambiguity import WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.estimators.recipe import Recipe, nominal_parts
from surefoot.estimators.robust_estimator import RobustEstimator
from surefoot.exceptions import InvalidInputError
from surefoot.forecasts import Ensemble, Forecaster
from surefoot.nominals import Nominal
from surefoot.policies import Linear
from surefoot.solvers import Solver
from surefoot.validation import check_number


class RobustNewsvendor(RobustEstimator):
    """How much to order, given what is known beforehand.

    Parameters
    ----------
    backorder
        Cost per unit short; one number, or one for each product.
    holding
        Cost per unit left over; one number, or one for each product.
    radius
        "auto" chooses it, and everything else that is left open, from the data; a number is in
        standard deviations of the columns. "profile" and "paper" are rules, see the page on the
        radius.
    order
        Order of the Wasserstein distance, 1 or 2.
    intercept
        Whether the order has a constant part.
    protect
        A shift of contexts to be prepared for, in standard deviations of each column: with 0.5,
        decisions are rehearsed under contexts that have moved by half a standard deviation. Zero
        takes the days to come to be like those seen.
    nominal
        "auto": with an automatic radius and an intercept, an ensemble decides (see the page on
        automatic decisions); with a radius of your own, the empirical distribution, so that the
        number means what it says. None is the empirical distribution in any case: the robust linear
        policy. A ``Forecaster``, which a robust policy corrects, or a nominal is taken as it is.
    frozen
        Columns (names or positions) that an adversary cannot move: categories, calendar flags.
    solver
        None is the quickest that can certify: ``PrimalDual()`` where it can, else ``DASGD()``.
    random_state
        A whole number; the fit depends on it and on the data alone. None draws a new one for each
        fit, which ``seed_`` tells.

    Examples
    --------
    >>> from surefoot import RobustNewsvendor
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=50, s=10, seed=0)
    >>> model = RobustNewsvendor(backorder=1.0, holding=0.2).fit(data.X, data.y)
    >>> orders = model.predict(data.X_test)
    >>> model.cost(data.X_test, data.y_test) < 0.5
    True
    """

    def __init__(
        self,
        backorder: float | Sequence[float] = 1.0,
        holding: float | Sequence[float] = 0.2,
        *,
        radius: float | str = "auto",
        order: int = 2,
        intercept: bool = True,
        protect: float = 0.0,
        nominal: Nominal | Forecaster | Ensemble | str | None = "auto",
        frozen: Sequence[str | int] = (),
        solver: Solver | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.backorder = backorder
        self.holding = holding
        self.radius = radius
        self.order = order
        self.intercept = intercept
        self.protect = protect
        self.nominal = nominal
        self.frozen = frozen
        self.solver = solver
        self.random_state = random_state

    def _recipe(self) -> Recipe:
        # By default a radius or a policy of the user's own is taken at its word.
        free = isinstance(self.radius, str) and self.radius == "auto" and self.intercept
        own = isinstance(self.nominal, str) and self.nominal == "auto" and not free
        protect = check_number("protect", self.protect, at_least=0)
        if protect > 0.0 and (own or not isinstance(self.nominal, str) or self.solver is not None):
            raise InvalidInputError(
                "protect must be 0 beside a radius, a nominal, a policy or a solver of your own, "
                f"got {protect:g}: it is for radius='auto' and nominal='auto'."
            )
        ball = WassersteinBall(self.radius, order=self.order, frozen=self.frozen)
        return Recipe(
            cost=Newsvendor(self.backorder, self.holding),
            policy=Linear(intercept=self.intercept),
            ball=ball,
            solver=self.solver,
            **nominal_parts(None if own else self.nominal, ball, self.solver, protect),
        ).checked()
