"""The paper's theory, in numbers, for a fitted model: constants, assumptions, bounds, verdicts."""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from surefoot.ambiguity import WassersteinForm
from surefoot.ambiguity.moves import best_moves, stay
from surefoot.diagnostics.fitted_model import checked_model, rows_of
from surefoot.diagnostics.theory_bounds import (
    Assumption,
    Claim,
    ConvexBound,
    StepSizes,
    convex_bound,
    judged,
    out_of_sample_bound,
    step_sizes,
    theorem_one_bound,
)
from surefoot.diagnostics.theory_constants import Constants, start, theorem_constants
from surefoot.estimators import RobustEstimator
from surefoot.estimators.paper_radius import (
    nearest_distance,
    paper_probability,
    paper_radius,
    transport_geometry,
)
from surefoot.estimators.radius_rules import transport_forms
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical
from surefoot.policies import LinearParameters
from surefoot.problem import Problem
from surefoot.text_table import number, text_table
from surefoot.typing import FloatArray
from surefoot.validation import check_integer, check_number

# The kinked cost has no curvature bound; constants are then those of the cost smoothed by this share
# of the outcome's standard deviation.
SMOOTHING_SHARE = 0.1


@dataclass(frozen=True)
class TheoryReport:
    """What the theorems say about one fitted model; ``print`` it, or read its parts.

    Attributes
    ----------
    steps
        T, the number of steps that the bounds are for.
    constants
        Every constant of Theorem 1, in scaled units.
    step_sizes
        What the theorems ask for.
    assumptions, claims
        Each with a verdict and a reason.
    certified_gap
        upper - lower of this fit: what is proved without any theorem.
    """

    steps: int
    constants: Constants
    step_sizes: StepSizes
    assumptions: tuple[Assumption, ...]
    claims: tuple[Claim, ...]
    certified_gap: float

    def claim(self, name: str) -> Claim:
        """Return the claim of that name."""
        for claim in self.claims:
            if claim.name == name:
                return claim
        known = ", ".join(repr(claim.name) for claim in self.claims)
        raise InvalidInputError(f"name must be one of {known}, got {name!r}.")

    def __str__(self) -> str:
        """Return four tables: constants, step sizes, assumptions, claims."""
        parts = [
            text_table((title, "value"), [(name, number(value)) for name, value in _numbers(part)])
            for title, part in (("constant", self.constants), ("step size", self.step_sizes))
        ]
        verdicts = [(a.name, "holds" if a.holds else "fails", a.why) for a in self.assumptions]
        parts.append(text_table(("assumption", "verdict", "why"), verdicts))
        claims = [
            (c.name, c.verdict, number(c.value), number(c.yardstick), c.quantity, c.against, c.why)
            for c in self.claims
        ]
        parts.append(
            text_table(("claim", "verdict", "value", "trivial", "of", "trivial is", "why"), claims)
        )
        parts.append(f"Certified gap of this fit after {self.steps:,} steps: {self.certified_gap:.4g}.")
        return "\n\n".join(parts)


def _numbers(part: Any) -> list[tuple[str, float]]:
    return [(entry.name, getattr(part, entry.name)) for entry in fields(part)]


@dataclass(frozen=True, eq=False)
class _Fit:
    """One product of a fitted model, in scaled units."""

    problem: Problem
    product: WassersteinForm
    theta: FloatArray
    intercept: float
    upper: float
    lower: float
    multiplier: float
    rows: float
    nominal_cost: float
    constant_cost: float


def theory(
    model: RobustEstimator,
    X: Any = None,
    y: Any = None,
    *,
    product: int = 0,
    steps: int | None = None,
    smoothing: float | None = None,
    confidence: float = 0.95,
) -> TheoryReport:
    """Return what the paper's theorems say about a fitted model, and what can be believed.

    Parameters
    ----------
    model
        A fitted RobustNewsvendor or RobustPolicy with an affine policy and a kinked cost.
    X, y
        The training data; None takes those that the model remembers from ``fit``. A model from a
        file remembers none, and one that has learned on (``partial_fit``) only its newest rows.
    product
        Which product the report is about.
    steps
        T; None is the number of steps that the fit took, and at least one.
    smoothing
        delta of the constants; None is the cost's own, or 10 % of the outcome's standard deviation if
        the cost has a kink (Theorem 1 is void then, and the constants are those of a smoothed twin).
    confidence
        The probability of Theorem 3 and of the out-of-sample bound.

    Examples
    --------
    >>> from surefoot import RobustNewsvendor
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=100, s=10, seed=0)
    >>> model = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)
    >>> report = theory(model, data.X, data.y)
    >>> report.claim("Theorem 1").verdict, report.claim("Theorem 2").verdict
    ('void', 'void')
    """
    fitted = checked_model(model)
    confidence = check_number("confidence", confidence, above=0, below=1)
    fit = _fit(fitted, _nominal(fitted, X, y), product)
    # A fit that is proved at its start takes no step; bounds after none say nothing.
    T = max(model.n_steps_, 1) if steps is None else check_integer("steps", steps, at_least=1)
    return _report(fit, T, _smoothing(fit.product, smoothing), confidence)


def _report(fit: _Fit, T: int, smoothing: float, confidence: float) -> TheoryReport:
    constants = theorem_constants(
        fit.product, fit.theta, fit.multiplier, lowest=fit.lower, smoothing=smoothing
    )
    convex = convex_bound(fit.product, fit.theta, fit.intercept)
    assumptions = _assumptions(fit, constants)
    return TheoryReport(
        steps=T,
        constants=constants,
        step_sizes=step_sizes(constants, T, convex.step(T)),
        assumptions=assumptions,
        claims=(
            *_algorithm_claims(fit, constants, convex, assumptions, T),
            *_sample_claims(fit, convex, confidence),
            *_online_claims(fit, convex, T),
        ),
        certified_gap=fit.upper - fit.lower,
    )


def _nominal(model: RobustEstimator, X: Any, y: Any) -> Empirical:
    if X is not None or y is not None:
        if X is None or y is None:
            raise InvalidInputError("X and y must be given together, got one of them.")
        return rows_of(model, X, y)
    nominal = getattr(model, "nominal_", None)
    if nominal is not None and model.learned_on:
        raise InvalidInputError(
            "X and y must be given, all rows that the model has learned, got None: after partial_fit "
            "it remembers the newest of them alone."
        )
    if not isinstance(nominal, Empirical):
        raise InvalidInputError(
            "X and y must be given where the model does not remember its rows, got None."
        )
    return nominal


def _smoothing(product: WassersteinForm, given: float | None) -> float:
    """Return the width of the constants: the given one, the cost's own, or a share of the spread."""
    if given is not None:
        return check_number("smoothing", given, at_least=0)
    centred = product.outcomes - product.weights @ product.outcomes
    spread = math.sqrt(float(product.weights @ centred**2))
    return product.pieces.smoothing or SMOOTHING_SHARE * spread


def _fit(model: RobustEstimator, nominal: Empirical, product: int) -> _Fit:
    problem = model.problem_.around(nominal)
    forms = transport_forms(problem, "The theory has no constants for this model", merge=True)
    if not check_integer("product", product, at_least=0) < len(forms):
        raise InvalidInputError(f"product must be < {len(forms)}, got {product}.")
    parameters = model.parameters_
    assert isinstance(parameters, LinearParameters)  # the problem is affine
    # The report speaks of the user's costs and outcomes, in units of the ball.
    form = forms[product].in_plain_units()
    theta, intercept = parameters.theta[:, product] * form.scale, float(parameters.intercept[product])
    upper, multiplier = form.worst_value(theta, intercept)
    certificate = model.certificate_
    lower = form.lower_bound(_slopes(form, theta, intercept, multiplier))
    if len(forms) == 1 and math.isclose(certificate.upper, upper, rel_tol=1e-9):
        lower = max(lower, certificate.lower)  # it speaks of these rows
    return _Fit(
        problem=problem, product=form, theta=theta, intercept=intercept, upper=upper,
        lower=min(upper, lower), multiplier=multiplier,
        rows=_row_count(nominal),
        nominal_cost=form.mean_cost(form.residuals(theta, intercept)),
        constant_cost=form.mean_cost(start(form)[1] - form.outcomes),
    )  # fmt: skip


def _row_count(nominal: Empirical) -> float:
    """Return N = 1 / sum w^2, where atoms into which one row was split count as one."""
    weights = nominal.weights
    if nominal.offsets is not None:
        _, row = np.unique(np.hstack([nominal.contexts, nominal.offsets]), axis=0, return_inverse=True)
        weights = np.zeros(len(row))
        np.add.at(weights, row.ravel(), nominal.weights)
    return 1.0 / float(weights @ weights)


def _slopes(
    product: WassersteinForm, theta: FloatArray, intercept: float, multiplier: float
) -> FloatArray:
    """Return the slopes at the adversary's answer, from which a lower bound can be made."""
    if product.radius == 0.0 or multiplier == 0.0:
        return stay(product, theta, intercept).slope
    return best_moves(product, theta, intercept, multiplier).slope


def _assumptions(fit: _Fit, constants: Constants) -> tuple[Assumption, ...]:
    product = fit.product
    sides = (product.upper - product.lower)[product.movable]
    compact = bool(np.isfinite(sides).all())
    own = product.pieces.smoothing
    if product.order == 1:
        concave = "the distance of order 1 is a norm, which has no curvature: mu = 0"
    else:
        concave = (
            f"mu = 2 gamma - k R^2 = {constants.mu:.4g} at the fitted policy (delta = "
            f"{constants.smoothing:.4g})"
        )
    return (
        Assumption(
            "1 (compact support)", compact,
            ("the ball has a box" if len(sides) else "no column moves") if compact
            else "contexts may move anywhere: give the ball a support",
        ),
        Assumption(
            "2 (smooth cost)", own > 0.0,
            f"smoothed within {own:.4g}" if own > 0.0 else "the cost has a kink; constants are those "
            f"of a twin smoothed within {constants.smoothing:.4g}",
        ),
        Assumption("3 (inner problem strongly concave)", constants.mu > 0.0, concave),
        Assumption(
            "4 (bounded variance)", True,
            f"within the region: {constants.variance_theta:.4g} and {constants.variance_gamma:.4g}",
        ),
    )  # fmt: skip


def _algorithm_claims(
    fit: _Fit,
    constants: Constants,
    convex: ConvexBound,
    assumptions: tuple[Assumption, ...],
    steps: int,
) -> list[Claim]:
    failing = [a.name for a in assumptions if not a.holds]
    void = f"it needs assumption {' and '.join(failing)}" if failing else None
    alpha = step_sizes(constants, steps, 0.0)
    if void is None and alpha.theorem > alpha.largest:
        void = f"its step size {alpha.theorem:.3g} is above 1/L = {alpha.largest:.3g}: T is too small"
    bound = theorem_one_bound(constants, steps)
    verdict, why = judged(
        bound,
        constants.gradient_squared,
        void,
        "all assumptions hold while the run stays in the region",
    )
    at_start = fit.constant_cost - fit.lower
    gap = convex.gap(steps) + fit.upper - fit.lower  # to this policy, and from it to the best one
    convex_verdict, convex_why = judged(
        gap, at_start, None, "H is jointly convex for an affine policy and a convex cost"
    )
    return [
        Claim("Theorem 1", "mean squared gradient norm of H", bound, constants.gradient_squared,
              "largest squared gradient in the region", verdict, why),
        Claim("Corollary 2", "modulus of strong convexity in theta", 0.0, None, "none", "void",
              "it needs a modulus above 0: a cost of theta'x is flat across directions that x lacks"),
        Claim("Convex bound", "E H(average) - min H", gap, at_start,
              "cost of the start minus the certified lower bound", convex_verdict, convex_why),
    ]  # fmt: skip


def _sample_claims(fit: _Fit, convex: ConvexBound, confidence: float) -> list[Claim]:
    product, radius = fit.product, fit.product.radius
    points, diameter = transport_geometry(fit.problem)
    rows, probability = fit.rows, paper_probability(diameter, fit.rows, radius)
    nearest = nearest_distance(points)
    if product.inverse_kappa == 0.0:
        void = "only contexts move, so the ball never holds a continuous outcome's distribution"
    elif nearest > radius:
        void = f"the true distribution is about {nearest:.3g} away or farther, beyond the radius"
    else:
        void = "its proof takes the asymptotic rate of Sanov's theorem for a bound at finite N"
    slope = product.pieces.steepest * product.dual_norm(fit.theta)
    third = slope * (paper_radius(diameter, rows, confidence) + radius)
    ours = out_of_sample_bound(product, convex, fit.nominal_cost, rows, confidence)
    verdict, why = judged(
        ours, fit.constant_cost, None, "for a region and a support that were fixed beforehand"
    )
    return [
        Claim("Theorem 2", "probability that the ball holds the truth", probability, None, "none",
              "void", void),
        Claim("Theorem 3", "true cost above the best one's", third, fit.constant_cost,
              "nominal cost of the constant order", "void",
              "it rests on Theorem 2 and leaves out a term O(1/sqrt(N)) of unknown size"),
        Claim("Out-of-sample corollary", "|worst case - true cost|", slope * radius, None, "none",
              "void", "radius times slope; the term O(1/sqrt(N)) is left out, and all depends on it"),
        Claim("Out-of-sample bound", "true cost of this policy", ours, fit.constant_cost,
              "nominal cost of the constant order", verdict, why),
    ]  # fmt: skip


def _online_claims(fit: _Fit, convex: ConvexBound, steps: int) -> list[Claim]:
    average = convex.regret(steps) / steps
    verdict, why = judged(
        average, fit.constant_cost, None,
        "online gradient descent on a convex H, against this policy at this radius",
    )  # fmt: skip
    return [
        Claim("Regret corollary", "regret over T steps", math.nan, None, "none", "void",
              "it uses the lemma of follow-the-leader, which gradient descent does not follow"),
        Claim("Regret bound", "mean regret over T steps", average, fit.constant_cost,
              "mean cost of the constant order", verdict, why),
    ]  # fmt: skip
