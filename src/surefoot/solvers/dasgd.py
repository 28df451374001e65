"""DA-SGD: draw a sample, move it adversarially, step; repeat until the gap is certified."""

from dataclasses import dataclass

from surefoot.problem import AffineProblem, Problem, affine_problems, why_not_affine
from surefoot.random import rng_for
from surefoot.solvers.adaptive import AdaptiveRun
from surefoot.solvers.base import DEFAULT_GAP, AffineSolution, Callback, Solution, Solver, assemble
from surefoot.solvers.literal import LiteralDASGD
from surefoot.solvers.loop import draw_blocks, run_until
from surefoot.solvers.memory import MemoryRun
from surefoot.validation import check_flag, check_integer, check_number

# Blocks between checks grow by this factor. Memory converges geometrically, so it is checked often;
# plain DA-SGD averages over its newest block, which must outweigh all blocks before it.
MEMORY_GROWTH, PLAIN_GROWTH = 1.2, 2.0


@dataclass(frozen=True)
class DASGD(Solver):
    """Data-augmentation stochastic gradient descent for affine policies, compiled.

    One step draws a row of the nominal, moves it to its worst place, and steps the parameters and
    the multiplier. The run stops when an independent certificate proves that the policy is within
    ``gap_tol`` of the best, and says so when it could not.

    Parameters
    ----------
    gap_tol
        Largest certified gap (upper - lower) / lower at which the run stops.
    max_steps
        Most steps for each product.
    memory
        Whether rows remember the slope at which they were last seen. With memory the gap falls
        geometrically. Without, it falls like 1/sqrt(steps), as in the paper. Box supports, smoothed
        costs, minibatches and gradient inner steps go without.
    minibatch
        Samples for each step; more than one needs ``memory=False``.
    inner_steps
        0: the exact inner maximiser. K > 0: K proximal gradient steps from the sample itself, as in
        the paper; needs ``memory=False``. They stop at the nearest maximiser and do not cross the
        kink, so for order 2 the certified gap levels off above zero.
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
    max_steps: int = 50_000_000
    memory: bool = True
    minibatch: int = 1
    inner_steps: int = 0
    callback: Callback | None = None

    def __post_init__(self) -> None:
        """Check every option by name."""
        check_number("gap_tol", self.gap_tol, above=0)
        check_integer("max_steps", self.max_steps, at_least=1)
        check_flag("memory", self.memory)
        check_integer("minibatch", self.minibatch, at_least=1)
        check_integer("inner_steps", self.inner_steps, at_least=0)

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
        """Return why the compiled engine cannot treat the problem, or None."""
        reason = why_not_affine(problem)
        if reason is not None:
            return reason
        if self.memory and (self.minibatch > 1 or self.inner_steps > 0):
            return "minibatch > 1 and inner_steps > 0 need memory=False"
        if self.inner_steps > 0 and problem.ball.outcome_cost != float("inf"):
            return "inner_steps > 0 moves contexts only: set outcome_cost=inf or inner_steps=0"
        return None

    def solve(self, problem: Problem, seed: int = 0) -> Solution:
        """Solve the problem; the answer depends on the problem and the seed alone."""
        check_integer("seed", seed, at_least=0)
        self.refuse_unless_fit(problem)
        problems = affine_problems(problem)
        products = tuple(
            self.solve_affine(product, seed, name=str(j)) for j, product in enumerate(problems)
        )
        return assemble(
            problems, products, gap_tol=self.gap_tol, advice="raise max_steps or loosen gap_tol."
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
        blocks = draw_blocks(
            problem, rng, self.max_steps * self.minibatch, PLAIN_GROWTH if plain else MEMORY_GROWTH
        )
        return run_until(run, blocks, gap_tol=self.gap_tol, callback=self.callback)
