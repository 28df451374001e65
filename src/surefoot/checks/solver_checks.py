"""What solvers must keep."""

from surefoot.ambiguity import AmbiguitySet, WassersteinBall
from surefoot.certificates import relative_gap
from surefoot.checks.demands import ConformanceError, close, demand, frozen, saved, solved, some_rows
from surefoot.costs import Newsvendor
from surefoot.engines.choice import adversary_of
from surefoot.exceptions import (
    UnsupportedProblemError,
)
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import Problem, affine_forms
from surefoot.solvers import Exact, Solution, Solver


def _problems(solver: Solver) -> list[Problem]:
    """Return problems that a solver says it can treat."""
    from_rows = Empirical(*some_rows(n=30))
    balls = [ball for ball in _balls() if _fits(solver, from_rows, ball)]
    demand(bool(balls), "why_not must be None for some newsvendor problem of 30 rows and 3 columns")
    return [Problem(Newsvendor(1.0, 0.3), Linear(), from_rows, ball) for ball in balls]


def _balls() -> list[AmbiguitySet]:
    return [WassersteinBall(0.1), WassersteinBall(0.1, order=1), WassersteinBall(0.0)]


def _fits(solver: Solver, rows: Empirical, ball: AmbiguitySet) -> bool:
    reason = solver.why_not(Problem(Newsvendor(1.0, 0.3), Linear(), rows, ball))
    demand(reason is None or isinstance(reason, str), "why_not must return a sentence or None")
    return reason is None


def _solver_answers(solver: Solver) -> None:
    """The answer is a Solution that depends on the problem and the seed alone."""
    X = some_rows(n=30)[0]
    for problem in _problems(solver):
        solution, again = solved(solver, problem, 3), solved(solver, problem, 3)
        demand(
            isinstance(solution, Solution),
            f"solve must return a Solution, got {type(solution).__name__}",
        )
        demand(bool(solution.status), "status must be a sentence")
        close(
            problem.policy.decide(solution.parameters, X), problem.policy.decide(again.parameters, X),
            "the answer must depend on the problem and the seed alone",
        )  # fmt: skip


def _solver_certificate(solver: Solver) -> None:
    """The certificate is true: of the policy returned, of a better one, and of its own bounds."""
    for problem in _problems(solver):
        solution = solved(solver, problem, 3)
        worst = adversary_of(problem, solution.parameters).value
        upper, lower = solution.certificate.upper, solution.certificate.lower
        demand(
            upper >= worst * (1 - 1e-6),
            f"the certificate says at most {upper}, the worst case is {worst}",
        )
        if solution.certificate.kind == "estimate":
            continue
        best = min(worst, solved(Exact(), problem, 0).certificate.upper)
        demand(
            lower <= best * (1 + 1e-6),
            f"the certificate says no policy is below {lower}, and one has a worst case of {best}",
        )
        floor = sum(form.gap_floor * form.value_unit for form in affine_forms(problem))
        gap, tolerance = solution.certificate.gap, getattr(solver, "gap_tol", None)
        close(gap, relative_gap(upper, lower, floor), "the gap must be that of the bounds", 1e-6)
        if tolerance is not None and solution.converged is not None:
            demand(
                solution.converged == (gap <= tolerance),
                f"converged must be whether the gap {gap} is within gap_tol, got {solution.converged}",
            )


def _solver_refuses(solver: Solver) -> None:
    """What why_not refuses, solve refuses with that reason, before any work."""
    rows = Empirical(*some_rows(n=30))
    for ball in _balls():
        problem = Problem(Newsvendor(1.0, 0.3), Linear(), rows, ball)
        if solver.why_not(problem) is None:
            continue
        try:
            solver.solve(problem, 0)
        except UnsupportedProblemError:
            continue
        raise ConformanceError("solve must refuse what why_not refuses.")


SOLVER_CHECKS = (frozen, saved, _solver_answers, _solver_certificate, _solver_refuses)
