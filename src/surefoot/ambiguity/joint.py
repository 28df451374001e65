"""One adversary for several products: it moves a context once, and every product's cost feels it.

The total cost of several products is again a maximum of lines, one for each choice of a line of every
product:

    sum_j psi_j(r_j) = max over l of  w_l'r + v_l,        w_l = (slopes of the products' lines)

A move of the context by x' - x changes line l by (Theta w_l)'(x' - x), where the columns of Theta are
the products' parameters. So all that holds for the lines of one product holds with Theta w_l in the
place of w theta. An adversary of its own for each product can do no less, as each may spend the budget.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from surefoot.ambiguity.form import Adversary
from surefoot.ambiguity.joint_rows import JointRows
from surefoot.ambiguity.joint_slopes import JointSlopes, joint_slopes_bound
from surefoot.ambiguity.joint_worst_case import adversary, worst_value
from surefoot.ambiguity.plan import JointPlan, joint_plan_bound
from surefoot.typing import FloatArray


class JointForm(JointRows):
    """Several products in one ball under one adversary, with exact worst cases and bounds."""

    def start(self) -> tuple[tuple[FloatArray, Any], Any]:
        """Return the best constant decisions (zero without an intercept); nothing is proved yet."""
        decisions = np.array([form.constant_order()[0] for form in self.products])
        theta = np.zeros((len(self.scale), len(self.products)))
        return (theta, decisions if self.intercept else np.zeros_like(decisions)), None

    def in_user_units(self, theta: FloatArray, intercept: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a policy of this form in the user's units."""
        units = np.array([form.outcome_unit for form in self.products])
        return theta * units / self.scale[:, None], intercept * units

    def from_user_units(
        self, theta: FloatArray, intercept: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return a policy in the user's units as one of this form."""
        units = np.array([form.outcome_unit for form in self.products])
        return theta * self.scale[:, None] / units, intercept / units

    def at_radius(self, radius: float) -> Self:
        """Return the form at another radius, in units of the ball."""
        return replace(self, products=tuple(form.at_radius(radius) for form in self.products))

    def worst_value(self, theta: FloatArray, intercept: FloatArray) -> tuple[float, float]:
        """Return the worst-case expected cost of a policy and the multiplier that attains it."""
        return worst_value(self, theta, intercept)

    def adversary(self, theta: FloatArray, intercept: FloatArray) -> Adversary:
        """Return the worst distribution for a policy, as atoms that respect the budget."""
        return adversary(self, theta, intercept)

    def lower_bound(self, plan: JointPlan | JointSlopes | None) -> float:
        """Return what a plan of the adversary proves: no policy has a smaller worst case.

        Slopes without moves are a plan for order 2 in all of space.
        """
        if plan is None:
            return self.least
        if isinstance(plan, JointSlopes):
            bound = joint_slopes_bound(self, plan)
        else:
            bound = joint_plan_bound(self.products, self.shares, plan)
        return max(self.least, bound - self.unresolved)
