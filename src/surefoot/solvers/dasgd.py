"""DA-SGD: draw a sample, move it adversarially, step; repeat until the gap is certified."""

from dataclasses import dataclass
from typing import Any

from surefoot.exceptions import InvalidTypeError
from surefoot.nominals import Empirical
from surefoot.problem import (
    AffineProblem,
    Problem,
    affine_problems,
    general_problem,
    why_not_affine,
    why_not_general,
)
from surefoot.random import rng_for
from surefoot.solvers.adaptive import AdaptiveRun
from surefoot.solvers.base import DEFAULT_GAP, AffineSolution, Callback, Solution, Solver, assemble
from surefoot.solvers.general import solve_general
from surefoot.solvers.general_run import GeneralSettings
from surefoot.solvers.literal import LiteralDASGD
from surefoot.solvers.loop import MEMORY_GROWTH, PLAIN_GROWTH, draw_blocks, run_until
from surefoot.solvers.memory import MemoryRun
from surefoot.solvers.optimizers import SGD, Adam
from surefoot.solvers.sampled import solve_sampled, why_not_sampled
from surefoot.validation import check_flag, check_integer, check_number

# Most steps where the user sets none, and ascent steps where no exact move is known.
AFFINE_STEPS, GENERAL_STEPS, GENERAL_INNER_STEPS = 50_000_000, 20_000, 10


@dataclass(frozen=True)
class DASGD(Solver):
    """Data-augmentation stochastic gradient descent.

    One step draws a row of the nominal, moves it to its worst place, and steps the parameters and
    the multiplier. Affine policies with newsvendor costs run in compiled kernels until an independent
    certificate proves that the policy is within ``gap_tol`` of the best. Every other policy and cost
    runs in the general engine (``pip install "surefoot[jax]"``) for ``max_steps`` steps.

    Parameters
    ----------
    gap_tol
        Largest certified gap (upper - lower) / lower at which the run stops. In the general engine,
        which has no lower bound: the largest change of the worst case between the last two checks at
        which it counts as converged.
    max_steps
        Most steps for each product; None is 50 million in the compiled kernels, where the gap ends
        a run long before, and 20,000 in the general engine.
    memory
        Whether rows remember the slope at which they were last seen. With memory the gap falls
        geometrically. Without, it falls like 1/sqrt(steps), as in the paper. Box supports, smoothed
        costs, minibatches and gradient inner steps go without.
    minibatch
        Samples for each step; more than one needs ``memory=False``.
    inner_steps
        0: the exact inner maximiser, or 10 gradient steps in the general engine, which knows none.
        K > 0: K proximal gradient steps from the sample itself, as in the paper; needs
        ``memory=False`` for affine policies. They stop at the nearest maximiser and do not cross the
        kink, so for order 2 the certified gap levels off above zero.
    optimizer
        How the general engine steps: ``Adam(...)``, ``SGD(...)`` or any gradient transformation of
        optax. None: distance over gradients for linear policies, ``Adam()`` for the others. Given
        one, affine problems run in the general engine, too, and lose the proof.
    callback
        Called with a ``Progress`` after every check.

    Examples
    --------
    >>> from surefoot import Problem, WassersteinBall
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.datasets import synthetic
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> data = synthetic(n=50, s=10, seed=0)
    >>> problem = Problem(Newsvendor(backorder=1.0, holding=0.2), Linear(),
    ...                   Empirical(data.X, data.y), WassersteinBall(radius=0.1))
    >>> solution = DASGD().solve(problem, seed=0)
    >>> solution.converged, solution.certificate.gap <= 0.01
    (True, True)

    References
    ----------
    Li, Liu and Zhang, "Achieving robust data-driven contextual decision making in a data
    augmentation way". With memory: Chambolle, Ehrhardt, Richtarik and Schoenlieb (2018),
    "Stochastic primal-dual hybrid gradient algorithm with arbitrary sampling".
    """

    gap_tol: float = DEFAULT_GAP
    max_steps: int | None = None
    memory: bool = True
    minibatch: int = 1
    inner_steps: int = 0
    optimizer: Any = None
    callback: Callback | None = None

    def __post_init__(self) -> None:
        """Check every option by name."""
        check_number("gap_tol", self.gap_tol, above=0)
        if self.max_steps is not None:
            check_integer("max_steps", self.max_steps, at_least=1)
        check_flag("memory", self.memory)
        check_integer("minibatch", self.minibatch, at_least=1)
        check_integer("inner_steps", self.inner_steps, at_least=0)
        known = isinstance(self.optimizer, Adam | SGD | None) or (
            callable(getattr(self.optimizer, "init", None))
            and callable(getattr(self.optimizer, "update", None))
        )
        if not known:
            raise InvalidTypeError(
                "optimizer must be Adam(...), SGD(...), a gradient transformation of optax or None, "
                f"got {self.optimizer!r}."
            )

    @staticmethod
    def literal(
        *,
        alpha: float,
        beta: float,
        eta: float,
        K: int,
        epsilon: float,
        steps: int,
    ) -> LiteralDASGD:
        """Return Algorithm 1 exactly as printed in the paper, for comparison.

        Parameters
        ----------
        alpha, beta, eta
            Constant step sizes of theta, of the multiplier and of the inner ascent.
        K, epsilon
            Inner steps stop after K + 1 of them or at this norm of the gradient.
        steps
            Outer steps T.
        """
        return LiteralDASGD(alpha=alpha, beta=beta, eta=eta, K=K, epsilon=epsilon, steps=steps)

    def why_not(self, problem: Problem) -> str | None:
        """Return why no engine can treat the problem, or None."""
        if self._sampled(problem):
            if self.inner_steps > 0:
                return "inner_steps > 0 needs an Empirical nominal: set inner_steps=0"
            return None
        if not self._affine(problem):
            return why_not_general(problem)
        if self.memory and (self.minibatch > 1 or self.inner_steps > 0):
            return "minibatch > 1 and inner_steps > 0 need memory=False"
        if self.inner_steps > 0 and problem.ball.outcome_cost != float("inf"):
            return "inner_steps > 0 moves contexts only: set outcome_cost=inf or inner_steps=0"
        return None

    def compiled(self, problem: Problem) -> bool:
        """Whether the compiled kernels treat the problem, from its rows or from fresh draws."""
        return self._affine(problem) or self._sampled(problem)

    def _affine(self, problem: Problem) -> bool:
        """Whether the compiled kernels treat the problem: it is affine and asks for no optimizer."""
        return self.optimizer is None and why_not_affine(problem) is None

    def _sampled(self, problem: Problem) -> bool:
        """Whether the compiled kernels learn from fresh draws of a nominal without rows."""
        fresh = self.optimizer is None and not isinstance(problem.nominal, Empirical)
        return fresh and why_not_sampled(problem) is None

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Solve the problem; the answer depends on the problem and the seed alone."""
        check_integer("seed", seed, at_least=0)
        self.refuse_unless_fit(problem)
        if self._sampled(problem):
            return solve_sampled(
                problem, gap_tol=self.gap_tol, max_steps=self.max_steps or AFFINE_STEPS,
                minibatch=self.minibatch, seed=seed, callback=self.callback,
            )  # fmt: skip
        if not self._affine(problem):
            return solve_general(
                [general_problem(problem, seed)], self.general_settings(), [seed],
                gap_tol=self.gap_tol, callback=self.callback,
            )[0]  # fmt: skip
        problems = affine_problems(problem)
        products = tuple(
            self.solve_affine(product, seed, name=str(j)) for j, product in enumerate(problems)
        )
        return assemble(
            problems, products, gap_tol=self.gap_tol, advice="raise max_steps or loosen gap_tol."
        )

    def general_settings(self) -> GeneralSettings:
        """Return how the general engine runs under these options."""
        return GeneralSettings(
            max_steps=GENERAL_STEPS if self.max_steps is None else self.max_steps,
            minibatch=self.minibatch,
            inner_steps=self.inner_steps or GENERAL_INNER_STEPS,
            optimizer=self.optimizer,
        )

    def solve_affine(self, problem: AffineProblem, seed: int, name: str = "0") -> AffineSolution:
        """Solve one product."""
        rng = rng_for(seed, "dasgd", name)
        plain = not self.memory or problem.boxed or problem.pieces.smoothing > 0
        run: AdaptiveRun | MemoryRun
        if plain:
            run = AdaptiveRun(problem, batch=self.minibatch, inner_steps=self.inner_steps)
        else:
            run = MemoryRun.start(problem)
        steps = AFFINE_STEPS if self.max_steps is None else self.max_steps
        growth = PLAIN_GROWTH if plain else MEMORY_GROWTH
        blocks = draw_blocks(problem, rng, steps * self.minibatch, growth)
        return run_until(run, blocks, gap_tol=self.gap_tol, callback=self.callback)
