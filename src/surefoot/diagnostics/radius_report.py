"""All radius rules side by side, and what each does to the policy."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from surefoot.certificates import Certificate
from surefoot.estimators import RobustEstimator, RobustNewsvendor
from surefoot.estimators.radius_rules import CONFIDENCE, ruled_radius, transport_forms
from surefoot.estimators.radius_selection import choose_radius
from surefoot.exceptions import InvalidInputError
from surefoot.forecasts import Question
from surefoot.nominals import Empirical
from surefoot.policies import LinearParameters
from surefoot.problem import Problem
from surefoot.solvers import Solver, default_solver
from surefoot.text_table import number, text_table
from surefoot.tracing import load_extra
from surefoot.validation import check_instance, check_integer, check_number, numeric_array

_CONSTANT = "From here on the best policy is the constant order."
_NOT_CONSTANT = (
    "The scale of useful radii. Here it does not make the policy constant: columns are frozen, a box "
    "stops moves, outcomes move, or there is no intercept."
)


@dataclass(frozen=True)
class RadiusRow:
    """One radius and the policy that it leads to.

    Attributes
    ----------
    rule
        "plain" (radius 0), "auto", "profile", "paper", "rho_max", or "given" for a radius of yours.
    radius, share_of_max
        The radius in units of the ball, and as a share of rho_max.
    norm_share
        Norm of theta (scaled columns, all products) as a share of the plain policy's.
    constant_share
        How constant the decisions are: 1 - their standard deviation over that of the plain policy's.
    nominal_cost, worst_case
        Mean cost on the data, and the worst case in the ball.
    gap
        Certified gap of the fit.
    states
        What the rule promises, as a sentence.
    warnings
        What stands against it.
    """

    rule: str
    radius: float
    share_of_max: float
    norm_share: float
    constant_share: float
    nominal_cost: float
    worst_case: float
    gap: float
    states: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class RadiusReport:
    """What ``radius_report`` found: ``rows`` to compute with, ``print`` to read.

    Attributes
    ----------
    collapse_radius
        rho_max: from here on the policy ignores the context.
    rows
        One ``RadiusRow`` for each rule, by growing radius.
    """

    collapse_radius: float
    rows: tuple[RadiusRow, ...]

    def __str__(self) -> str:
        """Return a table, and below it what the rules state and what stands against them."""
        headings = (
            "rule",
            "radius",
            "/ rho_max",
            "|theta|",
            "constant",
            "nominal",
            "worst case",
            "gap",
        )
        lines = [
            (
                row.rule, number(row.radius), f"{row.share_of_max:.3f}", f"{row.norm_share:.3f}",
                f"{row.constant_share:.1%}", number(row.nominal_cost), number(row.worst_case),
                f"{row.gap:.2%}",
            )
            for row in self.rows
        ]  # fmt: skip
        notes = [
            f"{row.rule}: {' '.join([row.states, *_sentences(row.warnings)])}" for row in self.rows
        ]
        return "\n".join([text_table(headings, lines), "", *notes])

    def to_pandas(self) -> Any:
        """Return the rows as a pandas frame, one column for each field."""
        pandas = load_extra("pandas", "to_pandas needs pandas: run pip install pandas.")
        names = [entry.name for entry in fields(RadiusRow)]
        return pandas.DataFrame([{n: getattr(row, n) for n in names} for row in self.rows])


def _sentences(warnings: Sequence[str]) -> list[str]:
    return [f"But {text}." for text in warnings]


def radius_report(
    X: Any,
    y: Any,
    model: RobustEstimator | None = None,
    *,
    radii: Sequence[float] = (),
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> RadiusReport:
    """Show every radius rule beside rho_max, and the policy that each leads to.

    Parameters
    ----------
    X, y
        Past contexts and outcomes.
    model
        An estimator, fitted or not, that says which cost, policy, ball and solver; its radius and
        its nominal are not looked at: rules are compared on the data themselves, also where the
        estimator would forecast first (``nominal="auto"``). None is ``RobustNewsvendor()``.
    radii
        Radii of your own to put beside the rules.
    confidence
        The probability that "profile" and "paper" state.
    seed
        Of folds, draws and fits.

    Examples
    --------
    >>> from surefoot import RobustNewsvendor
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=60, s=5, seed=0)
    >>> report = radius_report(data.X, data.y, RobustNewsvendor(1.0, 0.2))
    >>> [row.rule for row in report.rows][0], report.rows[-1].rule
    ('plain', 'paper')
    """
    model = RobustNewsvendor() if model is None else model
    check_instance("model", model, RobustEstimator, "an estimator such as RobustNewsvendor()")
    seed = check_integer("seed", seed, at_least=0)
    given = tuple(
        check_number("radii", float(radius), at_least=0)
        for radius in np.atleast_1d(numeric_array("radii", radii))
    )
    nominal = Empirical(X, y)
    if len(nominal.weights) < 2:
        raise InvalidInputError(f"X must have at least 2 rows, got {len(nominal.weights)}.")
    recipe = model._recipe().fitted(nominal.contexts)
    problem = Problem(recipe.cost, recipe.policy, nominal, recipe.ball.at(0.0))
    forms = transport_forms(problem, "radius_report has no rho_max for this model", merge=True)
    largest = max(form.largest_radius * form.column_unit for form in forms)
    ends = _CONSTANT if all(form.collapses for form in forms) else _NOT_CONSTANT
    solver = default_solver(problem.at_radius(1.0)) if recipe.solver is None else recipe.solver
    ruled = [ruled_radius(rule, problem, confidence=confidence, seed=seed)
             for rule in ("profile", "paper")]  # fmt: skip
    chosen = choose_radius(Question(problem, problem.around(nominal.distinct())), solver, seed).radius
    plans: list[tuple[str, float, str, tuple[str, ...]]] = [
        ("plain", 0.0, "No adversary: the smallest mean cost on the data.", ()),
        ("auto", chosen, "The smallest cross-validated cost; no probability is stated.", ()),
        *[(rule.rule, rule.radius, rule.statement, rule.warnings) for rule in ruled],
        ("rho_max", largest, ends, ()),
        *[("given", radius, "Your own.", ()) for radius in given],
    ]
    plans.sort(key=lambda plan: plan[1])  # stable: "plain" stays first among equal radii
    plain = _policy(problem, solver, seed)
    return RadiusReport(
        largest, tuple(_row(problem, solver, plan, plain, largest, seed) for plan in plans)
    )


def _policy(problem: Problem, solver: Solver, seed: int) -> tuple[float, float, float, Certificate]:
    """Fit at a radius; return the policy's norm, its decisions' spread, their cost, and a proof."""
    solution, nominal = solver.solve(problem, seed), problem.nominal
    form = transport_forms(problem, "radius_report")[0]
    parameters = solution.parameters
    assert isinstance(parameters, LinearParameters)  # the problem is affine
    assert isinstance(nominal, Empirical)
    scaled = parameters.theta * (form.scale / form.column_unit)[:, None]
    decisions = problem.policy.decide(parameters, nominal.contexts)
    centred = decisions - nominal.weights @ decisions
    spread = float(np.sqrt((nominal.weights @ centred**2).sum()))  # of all products together
    cost = problem.cost.mean(decisions, nominal.outcomes, nominal.weights)
    return float(np.linalg.norm(scaled[form.movable])), spread, cost, solution.certificate


def _row(
    problem: Problem,
    solver: Solver,
    plan: tuple[str, float, str, tuple[str, ...]],
    plain: tuple[float, float, float, Certificate],
    largest: float,
    seed: int,
) -> RadiusRow:
    rule, radius, states, warnings = plan
    norm, spread, cost, proof = _policy(problem.at_radius(radius), solver, seed)
    return RadiusRow(
        rule=rule,
        radius=radius,
        share_of_max=radius / largest if largest > 0.0 else float("nan"),
        norm_share=norm / plain[0] if plain[0] > 0.0 else float("nan"),
        constant_share=1.0 - spread / plain[1] if plain[1] > 0.0 else float("nan"),
        nominal_cost=cost,
        worst_case=proof.upper,
        gap=proof.gap,
        states=states,
        warnings=warnings,
    )
