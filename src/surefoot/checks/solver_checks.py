"""What solvers must keep."""

import numpy as np

from surefoot.ambiguity import AmbiguitySet, WassersteinBall
from surefoot.certificates import Certificate, relative_gap
from surefoot.checks.demands import (
    ConformanceError,
    close,
    demand,
    frozen,
    number_of,
    reason_of,
    saved,
    solved,
    some_rows,
)
from surefoot.costs import Newsvendor
from surefoot.engines.choice import adversary_of
from surefoot.exceptions import (
    UnsupportedProblemError,
)
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import Problem, affine_forms
from surefoot.solvers import Exact, Solution, Solver


def _asked() -> list[Problem]:
    """Return problems that a solver may treat: radii, orders, and two products."""
    cost, rows = Newsvendor(1.0, 0.3), Empirical(*some_rows(n=30))
    balls: list[AmbiguitySet] = [
        WassersteinBall(0.1), WassersteinBall(0.1, order=1), WassersteinBall(0.0)
    ]  # fmt: skip
    two = Empirical(*some_rows(n=30, products=2))
    return [
        *(Problem(cost, Linear(), rows, ball) for ball in balls),
        Problem(cost, Linear(), two, WassersteinBall(0.1)),
    ]


def _problems(solver: Solver) -> list[Problem]:
    """Return problems that a solver says it can treat."""
    fitting = [problem for problem in _asked() if reason_of(solver.why_not(problem)) is None]
    demand(bool(fitting), "why_not must be None for some newsvendor problem of 30 rows and 3 columns")
    return fitting


def _solution(solver: Solver, problem: Problem) -> Solution:
    """Return an answer of the right form."""
    solution = solved(solver, problem, 3)
    got = type(solution).__name__
    demand(isinstance(solution, Solution), f"solve must return a Solution, got {got}")
    sentence = isinstance(solution.status, str) and solution.status.strip() != ""
    demand(sentence, f"status must be a sentence, got {solution.status!r}")
    made = isinstance(solution.certificate, Certificate)
    demand(made, f"certificate must be a Certificate, got {solution.certificate!r}")
    steps = solution.n_steps
    whole = isinstance(steps, int | np.integer) and not isinstance(steps, bool) and steps >= 0
    demand(whole, f"n_steps must be a whole number >= 0, got {steps!r}")
    known = solution.converged is None or isinstance(solution.converged, bool | np.bool_)
    demand(known, f"converged must be True, False or None, got {solution.converged!r}")
    return solution


def _solver_answers(solver: Solver) -> None:
    """The answer is a Solution that depends on the problem and the seed alone, and changes neither."""
    X = some_rows(n=30)[0]
    for problem in _problems(solver):
        rows = problem.nominal
        assert isinstance(rows, Empirical)  # as it was made
        before = rows.contexts.copy(), rows.outcomes.copy()
        solution, again = _solution(solver, problem), _solution(solver, problem)
        close(rows.contexts, before[0], "solve must not change the rows")
        close(rows.outcomes, before[1], "solve must not change the rows")
        decisions = problem.policy.decide(solution.parameters, X)
        shape = len(X), rows.n_products
        demand(
            decisions.shape == shape,
            f"parameters must decide for each product, shape {shape}, got {decisions.shape}",
        )
        demand(bool(np.isfinite(decisions).all()), "parameters must give finite decisions")
        close(
            decisions, problem.policy.decide(again.parameters, X),
            "the answer must depend on the problem and the seed alone",
        )  # fmt: skip
        multiplier = np.asarray(solution.multiplier)
        demand(
            multiplier.shape in ((1,), (rows.n_products,)) and bool((multiplier >= 0).all()),
            f"multiplier must be one number >= 0 for each adversary, got {solution.multiplier!r}",
        )


def _solver_certificate(solver: Solver) -> None:
    """The certificate is true: of the policy returned, of a better one, and of its own bounds."""
    for problem in _problems(solver):
        solution = _solution(solver, problem)
        worst = adversary_of(solver.settled(problem), solution.parameters).value
        certificate = solution.certificate
        upper = number_of(certificate.upper, "upper of the certificate")
        lower = number_of(certificate.lower, "lower of the certificate")
        demand(
            upper >= worst * (1 - 1e-6),
            f"the certificate says at most {upper}, the worst case is {worst}",
        )
        if certificate.kind == "estimate":
            continue
        best = min(worst, solved(Exact(), problem, 0).certificate.upper)
        demand(
            lower <= best * (1 + 1e-6),
            f"the certificate says no policy is below {lower}, and one has a worst case of {best}",
        )
        if certificate.kind == "exact":
            demand(
                upper <= worst * (1 + 1e-6),
                f"a certificate that says exact must be: it says {upper}, the worst case is {worst}",
            )
        floor = sum(form.gap_floor * form.value_unit for form in affine_forms(problem))
        gap, tolerance = certificate.gap, getattr(solver, "gap_tol", None)
        close(gap, relative_gap(upper, lower, floor), "the gap must be that of the bounds", 1e-6)
        if tolerance is not None and solution.converged is not None:
            demand(
                solution.converged == (gap <= tolerance),
                f"converged must be whether the gap {gap} is within gap_tol, got {solution.converged}",
            )


def _solver_refuses(solver: Solver) -> None:
    """What why_not refuses, solve refuses with that reason, before any work."""
    for problem in _asked():
        reason = reason_of(solver.why_not(problem))
        if reason is None:
            continue
        try:
            solver.solve(problem, 0)
        except UnsupportedProblemError as error:
            told = reason.rstrip(".") in str(error)
            demand(told, f"solve must refuse with the reason of why_not, {reason!r}, got {error}")
            continue
        raise ConformanceError("solve must refuse what why_not refuses.")


SOLVER_CHECKS = (frozen, saved, _solver_answers, _solver_certificate, _solver_refuses)
