"""What ambiguity sets must keep."""

import dataclasses
import itertools
from typing import Any

import numpy as np

from surefoot.ambiguity import Adversary, AffineForm, AmbiguitySet
from surefoot.checks.demands import (
    SLACK,
    ConformanceError,
    close,
    demand,
    frozen,
    number_of,
    numbers_of,
    saved,
    solved,
    some_rows,
)
from surefoot.costs import Newsvendor, TieredNewsvendor
from surefoot.exceptions import SurefootError
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
    forms = [affine_forms(problem)[0] for problem in _questions(ball, radius)]
    for form in forms:
        got = type(form).__name__
        demand(isinstance(form, AffineForm), f"form must return an AffineForm, got {got}")
    return forms


def _policies(form: AffineForm) -> list[tuple[FloatArray, float]]:
    rng = np.random.default_rng(1)
    decision = form.constant_order()[0] if form.intercept else 0.0
    return [(share * rng.normal(size=len(form.scale)), decision) for share in (0.0, 0.1, 1.0)]


def _value(form: AffineForm, policy: tuple[FloatArray, float]) -> float:
    """Return the worst case of a policy."""
    pair = form.worst_value(*policy)
    both = isinstance(pair, tuple) and len(pair) == 2
    demand(both, f"worst_value must return the worst case and the multiplier, got {pair!r}")
    value = number_of(pair[0], "the worst case")
    demand(bool(np.isfinite(value)), f"the worst case must be finite, got {value}")
    return value


def _set_radius(ball: AmbiguitySet) -> None:
    """The radius is a field, and one below zero or without a value is refused."""
    # Somebody else's set: that it is a dataclass was asked for, which types do not show.
    names = [field.name for field in dataclasses.fields(ball)]  # type: ignore[arg-type]
    demand("radius" in names, f"an ambiguity set must have a field radius, got {names}")
    for radius in (-1.0, float("nan")):
        try:
            ball.at(radius)
        except (SurefootError, ValueError):
            continue
        raise ConformanceError(
            f"radius must be >= 0 (call check_radius in __post_init__), and {radius} was taken."
        )


def _set_grows(ball: AmbiguitySet) -> None:
    """At radius zero the worst case is the nominal cost; it grows with the radius."""
    radii = (0.0, 0.05, 0.2)
    grown = False
    for forms in zip(*(_forms(ball, radius) for radius in radii), strict=True):
        rows = [forms[0].contexts.copy(), forms[0].outcomes.copy()]
        for policy in _policies(forms[0]):
            values = [_value(form, policy) for form in forms]
            nominal = forms[0].mean_cost(forms[0].residuals(*policy))
            close(values[0], nominal, "the worst case at radius 0 must be the nominal cost")
            ordered = all(b >= a * (1 - SLACK) for a, b in itertools.pairwise(values))
            demand(ordered, f"the worst case must grow with the radius, got {values}")
            again = [_value(form, policy) for form in forms]
            close(again, values, "the worst case must depend on the policy alone")
            moved = [_value(forms[0].at_radius(radius), policy) for radius in radii]
            close(moved, values, "a form's at_radius must be the set at that radius")
            grown = grown or values[-1] > values[0] * (1 + SLACK)
        for now, before in zip((forms[0].contexts, forms[0].outcomes), rows, strict=True):
            close(now, before, "a worst case must not change the rows")
    demand(grown, "the worst case must grow with the radius, and is the nominal cost at any")


def _set_atoms(ball: AmbiguitySet) -> None:
    """Atoms are a distribution in the support whose cost is at most the value."""
    for problem, form in zip(_questions(ball, 0.1), _forms(ball, 0.1), strict=True):
        still = problem.ball.frozen_columns(len(form.scale))
        for policy in _policies(form):
            worst = form.adversary(*policy)
            got = type(worst).__name__
            demand(isinstance(worst, Adversary), f"adversary must return an Adversary, got {got}")
            _inside(problem, form, worst, still)
            close(worst.weights.sum(), 1.0, "the weights of the atoms must sum to one")
            light = bool((worst.weights >= 0).all())
            demand(light, "the weights of the atoms must not be negative")
            close(worst.value, _value(form, policy), "adversary and worst_value must agree", 1e-6)
            costs = form.pieces.evaluate(worst.contexts @ policy[0] + policy[1] - worst.outcomes)
            promise = "expected_cost must be that of the atoms"
            close(worst.weights @ costs, worst.expected_cost, promise, 1e-6)
            most = worst.value * (1 + 1e-6) + SLACK
            demand(worst.expected_cost <= most, "no atoms may cost more than the value")
            nominal = form.mean_cost(form.residuals(*policy)) * (1 - SLACK)
            demand(worst.value >= nominal, "the nominal is in the set: no value may be below its cost")


def _inside(problem: Problem, form: AffineForm, worst: Adversary, still: Any) -> None:
    """Raise unless atoms have one entry each, and lie where the set lets samples lie."""
    n, s = len(worst.weights), len(form.scale)
    shapes = {"contexts": (n, s), "outcomes": (n,), "weights": (n,), "distances": (n,), "rows": (n,)}
    for name, shape in shapes.items():
        got = np.shape(getattr(worst, name))
        demand(got == shape, f"{name} of the atoms must have shape {shape}, got {got}")
    for name in ("contexts", "outcomes"):
        finite = bool(np.isfinite(numbers_of(getattr(worst, name), f"{name} of the atoms")).all())
        demand(finite, f"{name} of the atoms must be finite")
    rows = np.asarray(worst.rows)
    known = bool(np.isin(rows, np.arange(-1, len(form.outcomes))).all())
    demand(known, "rows of the atoms must be numbers of rows, or -1 for none")
    demand(bool((np.asarray(worst.distances) >= 0).all()), "distances of the atoms must be >= 0")
    moved = (worst.contexts - form.contexts[rows])[rows >= 0][:, still]
    demand(bool((np.abs(moved) <= SLACK).all()), "atoms must stay in columns that are frozen")
    box = problem.ball.support
    if box is not None:
        lower, upper = box.arrays(s)
        at = worst.contexts * form.scale
        slack = SLACK * (1.0 + np.abs(at))
        within = bool(((at >= lower - slack) & (at <= upper + slack)).all())
        demand(within, "atoms must lie in the support")


def _set_convex(ball: AmbiguitySet) -> None:
    """The worst case is convex in the policy."""
    for form in _forms(ball, 0.1):
        (a, s), (b, t) = _policies(form)[1:]
        ends = _value(form, (a, s)) + _value(form, (b, t))
        middle = _value(form, (0.5 * (a + b), 0.5 * (s + t)))
        demand(middle <= 0.5 * ends * (1 + 1e-6), "the worst case must be convex in the policy")


def _set_bounds(ball: AmbiguitySet) -> None:
    """No lower bound, from whatever slopes, is above the worst case of a policy near the best."""
    rng = np.random.default_rng(2)
    for problem in _questions(ball, 0.1):
        (form,) = affine_forms(problem)
        many = rng.uniform(-form.pieces.down, form.pieces.up, (5, len(form.outcomes)))
        bounds = [
            number_of(form.lower_bound(slopes), "a lower bound")
            for slopes in (*many, form.constant_order()[1])
        ]
        solution = solved(DASGD(max_steps=BEST_STEPS), problem, 0)
        linear: Any = solution.parameters  # of a linear policy
        best = form_policies((form,), linear)[0]
        value = min(_value(form, policy) for policy in [best, *_policies(form)])
        bounds.append(form.lower_bound(form.pieces.derivative_at(form.residuals(*best))))
        bound = max(*bounds, solution.certificate.lower / form.value_unit)
        demand(
            bound <= value * (1 + SLACK) + SLACK,
            f"a lower bound of {bound} is above the worst case {value} of a policy",
        )


SET_CHECKS = (frozen, saved, _set_radius, _set_grows, _set_atoms, _set_convex, _set_bounds)
