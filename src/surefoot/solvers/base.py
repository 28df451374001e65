"""What every solver takes and gives back."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from surefoot.ambiguity import AffineForm, JointForm, WassersteinBall
from surefoot.certificates import Certificate
from surefoot.certificates.certificate import certified
from surefoot.engines.affine_adversary import multiplier_unit
from surefoot.engines.engine import Parameters
from surefoot.exceptions import (
    ConvergenceWarning,
    InvalidInputError,
    InvalidTypeError,
    UnsupportedProblemError,
    warn_user,
)
from surefoot.nominals import Empirical
from surefoot.problem import Problem, user_parameters, why_not_affine, with_adversaries
from surefoot.problem.problem import check_problem
from surefoot.typing import FloatArray
from surefoot.validation import check_instance, check_integer, check_number, numeric_array

# Certified gap at which an answer counts as converged unless the user says otherwise.
DEFAULT_GAP = 0.01
ADVICE = "raise max_steps or loosen gap_tol."


class Progress(NamedTuple):
    """One check of a running solve.

    Attributes
    ----------
    steps
        Steps taken so far.
    upper, lower, gap
        The bounds at this check, of the problem or product being solved.
    seconds
        Time since the solve began.
    """

    steps: int
    upper: float
    lower: float
    gap: float
    seconds: float


Callback = Callable[[Progress], None]


@dataclass(frozen=True, eq=False)
class Solution:
    """A policy, what is proved about it, and how it was found.

    Attributes
    ----------
    parameters
        The policy's parameters in the user's units.
    multiplier
        The optimal gamma of each adversary.
    certificate
        Bounds computed by code that knows no solver.
    converged
        Whether the certified gap is within the solver's tolerance; None where no lower bound is known,
        so that nothing can be claimed.
    status
        A sentence that says which solver ran, how it ended and what to do about it.
    n_steps
        Steps taken, over all products.
    history
        The checks, in order; of the first product, if each has its own.
    """

    parameters: Parameters
    multiplier: FloatArray
    certificate: Certificate
    converged: bool | None
    status: str
    n_steps: int
    history: tuple[Progress, ...] = field(default_factory=tuple, repr=False)


class Solver(ABC):
    """An algorithm for problems: it says what it cannot do before it starts."""

    @abstractmethod
    def why_not(self, problem: Problem) -> str | None:
        """Return why this solver cannot treat the problem, or None if it can."""

    @abstractmethod
    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Solve the problem; the answer depends on the problem and the seed alone."""

    def settled(self, problem: Problem) -> Problem:
        """Return the problem as this solver reads it: "auto" adversaries are those of each product."""
        check_problem(problem)
        ball = problem.ball
        auto = isinstance(ball, WassersteinBall) and ball.adversary == "auto"
        return with_adversaries(problem) if auto and problem.nominal.n_products > 1 else problem

    def solve_together(self, problems: Sequence[Problem], seeds: Sequence[int]) -> list[Solution]:
        """Solve problems that differ in data, radius and seed alone; one by one unless overridden."""
        problems = listed_problems(problems)
        seeds = seed_for_each(seeds, problems)
        return [self.solve(problem, seed) for problem, seed in zip(problems, seeds, strict=True)]

    def solve_path(self, problem: Problem, radii: Sequence[float], seed: int = 0) -> list[Solution]:
        """Solve a problem at several radii, each from the last one where the solver can."""
        check_problem(problem)
        path = [problem.at_radius(radius) for radius in listed_radii(radii)]
        return self.solve_together(path, [seed] * len(path))

    def solve_paths(
        self, problems: Sequence[Problem], radii: Sequence[float], seed: int = 0
    ) -> list[list[Parameters]]:
        """Solve several problems, such as folds, at several radii; return the policies alone."""
        with ThreadPoolExecutor(max_workers=min(len(problems), os.cpu_count() or 1)) as pool:
            return list(
                pool.map(lambda k: self.path_of(k, problems[k], radii, seed), range(len(problems)))
            )

    def path_of(
        self, number: int, problem: Problem, radii: Sequence[float], seed: int
    ) -> list[Parameters]:
        """Return the policies of one of several problems at several radii."""
        del number
        return [solution.parameters for solution in self.solve_path(problem, radii, seed)]

    def roughly(self, rows: int) -> "Solver":
        """Return a solver for rehearsals on so many rows, such as folds: quick rather than exact."""
        del rows
        return self

    def refuse_unless_fit(self, problem: Problem) -> None:
        """Raise with the reason if the problem is not for this solver."""
        check_problem(problem)
        reason = self.why_not(problem)
        if reason is not None:
            raise UnsupportedProblemError(f"{type(self).__name__} cannot solve this: {reason}.")


def check_options(solver: Any) -> None:
    """Refuse by name what a solver that stops at a gap cannot take."""
    check_number("gap_tol", solver.gap_tol, above=0)
    check_integer("max_steps", solver.max_steps, at_least=1)
    check_callback(solver.callback)


def check_callback(callback: Any) -> None:
    """Refuse what cannot be called with the progress."""
    if callback is not None and not callable(callback):
        raise InvalidTypeError(f"callback must be a function or None, got {callback!r}.")


def listed(name: str, values: Any, example: str) -> list[Any]:
    """Return values as a list, or refuse by name what is none."""
    try:
        return [*iter(values)]
    except TypeError:
        check_instance(name, values, (), example)
        raise


def listed_problems(problems: Any) -> list[Problem]:
    """Return problems as a list, or refuse what is none of them."""
    found = listed("problems", problems, "a sequence of Problem(...)")
    for problem in found:
        if type(problem) is not Problem:  # asked here: a call for each of thousands takes long
            check_instance("problems", problem, Problem, "a sequence of Problem(...)")
    return found


def seed_for_each(seeds: Any, problems: Sequence[Problem]) -> list[int]:
    """Return one seed for each problem, from one for all or as many as there are problems."""
    count = len(problems)
    if isinstance(seeds, int | np.integer):
        return [check_integer("seeds", seeds, at_least=0)] * count
    found = listed("seeds", seeds, "a whole number, or one for each problem")
    if len(found) != count:
        raise InvalidInputError(
            f"seeds must be one number or one per problem ({count}), got {len(found)}."
        )
    return [check_integer("seeds", seed, at_least=0) for seed in found]


def listed_radii(radii: Any) -> list[float]:
    """Return radii of a path, or refuse what is none.

    >>> listed_radii((0.3, 0.1))
    [0.3, 0.1]
    """
    path = numeric_array("radii", radii)
    if path.ndim != 1 or not path.size or not (path >= 0.0).all():
        raise InvalidInputError(f"radii must be a sequence of numbers >= 0, got {radii!r}.")
    return [float(radius) for radius in path]


class AffineSolver(Solver):
    """A solver for linear policies, piecewise linear costs and the rows of an Empirical nominal."""

    def why_not(self, problem: Problem) -> str | None:
        """Return why the problem is not affine, or None."""
        reason = why_not_affine(problem)
        if reason is None and not isinstance(problem.nominal, Empirical):
            return f"it needs an Empirical nominal, got {type(problem.nominal).__name__}"
        return reason


@dataclass(frozen=True, eq=False)
class ProductAnswer:
    """The answer for one product, or for all under one adversary, in the units of its form.

    Attributes
    ----------
    form, theta, intercept
        What was solved, and the policy.
    slopes
        One for each row, or a plan of the adversary, from which the lower bound was computed.
    steps
        Steps taken.
    interrupted
        Whether the user ended the run.
    history
        The checks, in order.
    finished_by
        The solver that went on where the one that was asked stays, or nothing.
    """

    form: AffineForm | JointForm
    theta: FloatArray
    intercept: Any
    slopes: Any
    steps: int
    interrupted: bool = False
    history: tuple[Progress, ...] = ()
    finished_by: str = ""

    @property
    def policy(self) -> tuple[FloatArray, Any]:
        """(theta, intercept)."""
        return self.theta, self.intercept


def assemble(
    solver: Solver,
    products: Sequence[ProductAnswer],
    *,
    gap_tol: float,
    advice: str = ADVICE,
    warn: bool = True,
) -> Solution:
    """Certify the answers of all products and say how the run ended."""
    forms = tuple(product.form for product in products)
    policies = tuple(product.policy for product in products)
    certificate, gammas = certified(forms, policies, [product.slopes for product in products])
    steps = sum(product.steps for product in products)
    converged = bool(certificate.gap <= gap_tol)
    interrupted = any(product.interrupted for product in products)
    share = f"certified gap {100 * certificate.gap:.2g} %, tolerance {100 * gap_tol:.2g} %"
    others = {product.finished_by for product in products if product.finished_by}
    name = " and ".join([type(solver).__name__, *sorted(others)])
    status = sentence(name, steps, share, converged, interrupted=interrupted, advice=advice)
    if warn and not converged:
        warn_user(status, ConvergenceWarning)
    return Solution(
        parameters=user_parameters(forms, policies),
        multiplier=np.array(gammas) * [multiplier_unit(form) for form in forms],
        certificate=certificate,
        converged=converged,
        status=status,
        n_steps=steps,
        history=products[0].history,
    )


def sentence(
    name: str,
    steps: int,
    share: str,
    converged: bool,
    *,
    interrupted: bool = False,
    advice: str = ADVICE,
) -> str:
    """Say which solver ran, how it ended and what to do about it."""
    if interrupted:
        ended = f"{name} was interrupted after {steps:,} steps"
        return f"{ended} ({share}): the best policy so far is returned."
    if converged:
        return f"{name} converged after {steps:,} steps ({share})."
    return f"{name} ran out of steps after {steps:,} ({share}): {advice}"
