"""What every solver takes and gives back."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from surefoot.certificates import Certificate, certify, worst_case_value
from surefoot.exceptions import ConvergenceWarning, UnsupportedProblemError
from surefoot.policies import LinearParameters, PolicyParameters
from surefoot.problem import AffineProblem, Problem, user_parameters
from surefoot.typing import FloatArray

# Certified gap at which an answer counts as converged unless the user says otherwise.
DEFAULT_GAP = 0.01


@dataclass(frozen=True)
class Progress:
    """One check of a running solve.

    Attributes
    ----------
    steps
        Steps taken so far, over all products.
    upper, lower, gap
        The bounds at this check, of the product being solved.
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
class AffineSolution:
    """The answer for one product, in scaled units.

    Attributes
    ----------
    theta, intercept
        The policy.
    slopes
        Slopes in [-b, h], one for each row, from which the lower bound was computed.
    steps
        Steps taken.
    stopped
        Why the run ended: "gap", "steps" or "interrupt".
    history
        The checks, in order.
    """

    theta: FloatArray
    intercept: float
    slopes: FloatArray
    steps: int
    stopped: str
    history: tuple[Progress, ...] = ()


@dataclass(frozen=True, eq=False)
class Solution:
    """A policy, what is proved about it, and how it was found.

    Attributes
    ----------
    parameters
        The policy's parameters in the user's units.
    multiplier
        The optimal gamma of each product.
    certificate
        Bounds computed by code that knows no solver.
    converged
        Whether the certified gap is within the solver's tolerance.
    status
        A sentence that says how the run ended and what to do about it.
    n_steps
        Steps taken, over all products.
    history
        The checks, in order; of the first product, if there are several.
    """

    parameters: LinearParameters | PolicyParameters
    multiplier: FloatArray
    certificate: Certificate
    converged: bool
    status: str
    n_steps: int
    history: tuple[Progress, ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class AffineAnswer(Solution):
    """The solution of an affine problem, product by product.

    Attributes
    ----------
    products
        The answer of each product in scaled units, with its checks.
    problems
        The affine problems that were solved, one for each product.
    """

    products: tuple[AffineSolution, ...] = field(repr=False)
    problems: tuple[AffineProblem, ...] = field(repr=False)


class Solver(ABC):
    """An algorithm for problems: it says what it cannot do before it starts."""

    @abstractmethod
    def why_not(self, problem: Problem) -> str | None:
        """Return why this solver cannot treat the problem, or None if it can."""

    @abstractmethod
    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Solve the problem; the answer depends on the problem and the seed alone."""

    def refuse_unless_fit(self, problem: Problem) -> None:
        """Raise with the reason if the problem is not for this solver."""
        reason = self.why_not(problem)
        if reason is not None:
            raise UnsupportedProblemError(f"{type(self).__name__} cannot solve this: {reason}.")


def assemble(
    problems: tuple[AffineProblem, ...],
    products: tuple[AffineSolution, ...],
    *,
    gap_tol: float,
    advice: str,
) -> AffineAnswer:
    """Certify the answers of all products and say how the run ended."""
    policies = tuple((product.theta, product.intercept) for product in products)
    certificate = certify(problems, policies, [[product.slopes] for product in products])
    steps = sum(product.steps for product in products)
    converged = certificate.gap <= gap_tol
    share = f"certified gap {100 * certificate.gap:.2g} %, tolerance {100 * gap_tol:.2g} %"
    if any(product.stopped == "interrupt" for product in products):
        status = f"Interrupted after {steps:,} steps ({share}): the best policy so far is returned."
    elif converged:
        status = f"Converged after {steps:,} steps ({share})."
    else:
        status = f"Ran out of steps after {steps:,} ({share}): {advice}"
    if not converged:
        warnings.warn(status, ConvergenceWarning, stacklevel=4)
    gammas = [
        worst_case_value(problem, *policy)[1]
        for problem, policy in zip(problems, policies, strict=True)
    ]
    return AffineAnswer(
        parameters=user_parameters(problems, policies),
        multiplier=np.array(gammas),
        certificate=certificate,
        converged=converged,
        status=status,
        n_steps=steps,
        history=products[0].history,
        products=products,
        problems=problems,
    )
