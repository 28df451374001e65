"""The question, without an algorithm."""

from dataclasses import dataclass, replace
from typing import Any

from surefoot.ambiguity import AmbiguitySet
from surefoot.costs import ConvexPiecewiseCost, Cost
from surefoot.costs.base import product_lines
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Nominal
from surefoot.policies import Policy
from surefoot.validation import check_instance


@dataclass(frozen=True)
class Problem:
    r"""Choose the policy whose worst expected cost over the ambiguity set is smallest.

    .. math:: \min_\theta \sup_{P: W_p(P, Q) \le \rho} E_P[c(f(\theta; X), Y)]

    Parameters
    ----------
    cost
        c, for example ``Newsvendor(backorder=1.0, holding=0.2)``.
    policy
        f, for example ``Linear()``.
    nominal
        Q, for example ``Empirical(X, y)``.
    ball
        Which distributions to withstand, for example ``WassersteinBall(radius=0.3)``.

    Examples
    --------
    >>> from surefoot.ambiguity import WassersteinBall
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> Problem(Newsvendor(1.0, 0.2), Linear(), Empirical([[1.0], [2.0]], [3.0, 4.0]),
    ...         WassersteinBall(0.3)).nominal
    Empirical(2 rows, 1 column, 1 product)
    """

    cost: Cost
    policy: Policy
    nominal: Nominal
    ball: AmbiguitySet

    def __post_init__(self) -> None:
        """Check the parts and that they fit each other."""
        check_instance("cost", self.cost, Cost, "a cost such as Newsvendor(1.0, 0.2)")
        check_instance("policy", self.policy, Policy, "a policy such as Linear()")
        check_instance("nominal", self.nominal, Nominal, "a nominal such as Empirical(X, y)")
        check_instance("ball", self.ball, AmbiguitySet, "a WassersteinBall")
        _ = self.ball.size  # a number, and not a rule by which to choose one
        reason = self.cost.why_not(self.nominal.n_products)
        if reason is not None:
            raise InvalidInputError(reason)
        if isinstance(self.cost, ConvexPiecewiseCost):
            product_lines(self.cost, self.nominal.n_products)
        offsets = getattr(self.nominal, "offsets", None)
        if offsets is not None and getattr(self.policy, "offset", None) is None:
            raise InvalidInputError(
                f"offsets of the nominal need a policy with an offset, got {self.policy!r}."
            )

    @property
    def radius(self) -> float:
        """The radius, as the number that it must be here."""
        return self.ball.size

    def at_radius(self, radius: float) -> "Problem":
        """Return the problem at another radius."""
        ball = self.ball.at(radius)
        return self if ball is self.ball else replace(self, ball=ball)

    def around(self, nominal: Nominal) -> "Problem":
        """Return the problem around another nominal."""
        return replace(self, nominal=nominal)


def check_problem(problem: Any) -> None:
    """Refuse what is no problem, before anybody asks for its parts."""
    check_instance("problem", problem, Problem, "a Problem(cost, policy, nominal, ball)")
