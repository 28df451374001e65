"""What ambiguity sets must keep."""

import itertools
from typing import Any

import numpy as np

from surefoot.ambiguity import AffineForm, AmbiguitySet
from surefoot.checks.demands import SLACK, close, demand, frozen, saved, solved, some_rows
from surefoot.costs import Newsvendor, TieredNewsvendor
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import Problem, affine_forms, form_policies
from surefoot.solvers import DASGD
from surefoot.typing import FloatArray

# Steps that bring a policy close enough to the best to find lower bounds that are too high.
BEST_STEPS = 20_000


def _questions(ball: AmbiguitySet, radius: float) -> list[Problem]:
    """Return problems with a set of some radius: with and without intercept, two lines and three."""
    rows = Empirical(*some_rows(n=20))
    # Lopsided, so that slopes which a bound would need may not exist.
    two, three = Newsvendor(1.0, 0.05), TieredNewsvendor(((0, 1.0), (1, 2.0)), 0.3)
    parts = ((two, Linear()), (three, Linear()), (two, Linear(intercept=False)))
    return [Problem(cost, policy, rows, ball.at(radius)) for cost, policy in parts]


def _forms(ball: AmbiguitySet, radius: float) -> list[AffineForm]:
    return [affine_forms(problem)[0] for problem in _questions(ball, radius)]


def _policies(form: AffineForm) -> list[tuple[FloatArray, float]]:
    rng = np.random.default_rng(1)
    decision = form.constant_order()[0] if form.intercept else 0.0
    return [(share * rng.normal(size=len(form.scale)), decision) for share in (0.0, 0.1, 1.0)]


def _set_grows(ball: AmbiguitySet) -> None:
    """At radius zero the worst case is the nominal cost; it grows with the radius."""
    radii = (0.0, 0.05, 0.2)
    for forms in zip(*(_forms(ball, radius) for radius in radii), strict=True):
        for policy in _policies(forms[0]):
            values = [form.worst_value(*policy)[0] for form in forms]
            nominal = forms[0].mean_cost(forms[0].residuals(*policy))
            close(values[0], nominal, "the worst case at radius 0 must be the nominal cost")
            ordered = all(b >= a * (1 - SLACK) for a, b in itertools.pairwise(values))
            demand(ordered, f"the worst case must grow with the radius, got {values}")
            moved = [forms[0].at_radius(radius).worst_value(*policy)[0] for radius in radii]
            close(moved, values, "a form's at_radius must be the set at that radius")


def _set_atoms(ball: AmbiguitySet) -> None:
    """Atoms are a distribution whose cost is at most the value."""
    for form in _forms(ball, 0.1):
        for policy in _policies(form):
            worst = form.adversary(*policy)
            close(worst.weights.sum(), 1.0, "the weights of the atoms must sum to one")
            light = bool((worst.weights >= 0).all())
            demand(light, "the weights of the atoms must not be negative")
            value = form.worst_value(*policy)[0]
            close(worst.value, value, "adversary and worst_value must agree", 1e-6)
            costs = form.pieces.evaluate(worst.contexts @ policy[0] + policy[1] - worst.outcomes)
            promise = "expected_cost must be that of the atoms"
            close(worst.weights @ costs, worst.expected_cost, promise, 1e-6)
            most = worst.value * (1 + 1e-6) + SLACK
            demand(worst.expected_cost <= most, "no atoms may cost more than the value")


def _set_convex(ball: AmbiguitySet) -> None:
    """The worst case is convex in the policy."""
    for form in _forms(ball, 0.1):
        (a, s), (b, t) = _policies(form)[1:]
        ends = form.worst_value(a, s)[0] + form.worst_value(b, t)[0]
        middle = form.worst_value(0.5 * (a + b), 0.5 * (s + t))[0]
        demand(middle <= 0.5 * ends * (1 + 1e-6), "the worst case must be convex in the policy")


def _set_bounds(ball: AmbiguitySet) -> None:
    """No lower bound, from whatever slopes, is above the worst case of a policy near the best."""
    rng = np.random.default_rng(2)
    for problem in _questions(ball, 0.1):
        (form,), solution = affine_forms(problem), solved(DASGD(max_steps=BEST_STEPS), problem, 0)
        linear: Any = solution.parameters  # of a linear policy
        best = form_policies((form,), linear)[0]
        value = min(form.worst_value(*policy)[0] for policy in [best, *_policies(form)])
        many = rng.uniform(-form.pieces.down, form.pieces.up, (5, len(form.outcomes)))
        at_best = form.pieces.derivative_at(form.residuals(*best))
        bounds = [form.lower_bound(slopes) for slopes in (*many, at_best, form.constant_order()[1])]
        bound = max(*bounds, solution.certificate.lower / form.value_unit)
        demand(
            bound <= value * (1 + SLACK) + SLACK,
            f"a lower bound of {bound} is above the worst case {value} of a policy",
        )


SET_CHECKS = (frozen, saved, _set_grows, _set_atoms, _set_convex, _set_bounds)
