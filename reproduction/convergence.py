"""How fast algorithms converge: gaps against steps, and the slope on log axes."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.ambiguity import WassersteinForm
from surefoot.engines.affine_lane import Lane
from surefoot.engines.engine import Options
from surefoot.engines.primal_dual import PrimalDualRun
from surefoot.estimators.radius_rules import transport_forms
from surefoot.exceptions import ConvergenceWarning, InvalidInputError, UnsupportedProblemError
from surefoot.policies import LinearParameters
from surefoot.problem import Problem, form_policies
from surefoot.random import rng_for
from surefoot.solvers import DASGD, Exact
from surefoot.typing import ArrayLike, FloatArray, IntArray
from surefoot.validation import check_integer, numeric_array

# The optimum is known to this relative precision; gaps below a few times that are not measured.
PRECISION = 1e-7
# Settings of the printed algorithm beside its step sizes; the paper leaves them open.
LITERAL_ETA, LITERAL_INNER_STEPS, LITERAL_EPSILON = 0.01, 10, 1e-3
# The printed algorithm with a constant step, and with c / sqrt(T) as its Theorem 1 asks for.
LITERAL_STEP, LITERAL_SHRINKING = 0.01, 1.0


@dataclass(frozen=True)
class Rate:
    """A power law gap = constant * size^slope, fitted by least squares on log axes.

    Attributes
    ----------
    slope, error
        The exponent and its standard error (NaN from two points).
    constant
        The gap at size one.
    """

    slope: float
    error: float
    constant: float

    def at(self, size: ArrayLike) -> FloatArray:
        """Return the gap that the law gives."""
        return np.asarray(self.constant * np.asarray(size, dtype=np.float64) ** self.slope)


def empirical_rate(sizes: ArrayLike, gaps: ArrayLike) -> Rate:
    """Return the slope of gaps against sizes on log axes.

    Parameters
    ----------
    sizes, gaps
        Shape (points,), all above zero; steps or rows, and the gaps measured there.

    Examples
    --------
    >>> rate = empirical_rate([100, 1_000, 10_000], [0.2, 0.02, 0.002])
    >>> round(rate.slope, 6), round(rate.constant, 6)
    (-1.0, 20.0)
    """
    x, y = numeric_array("sizes", sizes), numeric_array("gaps", gaps)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise InvalidInputError(
            "sizes and gaps must be lists of equal length, two or more, got shapes "
            f"{x.shape} and {y.shape}."
        )
    if not (x.min() > 0.0 and y.min() > 0.0):
        raise InvalidInputError(f"sizes and gaps must be > 0 on log axes, got {min(x.min(), y.min())}.")
    if np.ptp(x) == 0.0:
        raise InvalidInputError(f"sizes must differ, got {x[0]:g} everywhere.")
    logs = np.log(x)
    centred = logs - logs.mean()
    slope = float(centred @ np.log(y) / (centred @ centred))
    offset = float(np.log(y).mean() - slope * logs.mean())
    left = np.log(y) - offset - slope * logs
    free = len(x) - 2
    error = float(np.sqrt(left @ left / free / (centred @ centred))) if free > 0 else float("nan")
    return Rate(slope, error, float(np.exp(offset)))


@dataclass(frozen=True, eq=False)
class GapCurve:
    """Gaps of one algorithm: relative to the optimum, shape (seeds, steps)."""

    algorithm: str
    steps: tuple[int, ...]
    gaps: FloatArray

    @property
    def median(self) -> FloatArray:
        """The median over seeds at each number of steps."""
        return np.asarray(np.median(self.gaps, axis=0))

    def rate(self, smallest: float = 10.0 * PRECISION) -> Rate:
        """Return the slope of the median gap where it is measured, above ``smallest``."""
        kept = self.median > smallest
        return empirical_rate(np.array(self.steps)[kept], self.median[kept])


_Policy = tuple[FloatArray, float]
# From a problem, its affine form, steps and a seed to the policies after so many steps.
Trace = Callable[[Problem, WassersteinForm, Sequence[int], int], list[_Policy]]


def _printed(step_size: Callable[[int], float]) -> Trace:
    """Return the printed algorithm, run afresh for each number of steps: the last policy counts."""

    def trace(
        problem: Problem, form: WassersteinForm, steps: Sequence[int], seed: int
    ) -> list[_Policy]:
        found = []
        for count in steps:
            size = step_size(count)
            solver = DASGD.literal(
                alpha=size, beta=size, eta=LITERAL_ETA, K=LITERAL_INNER_STEPS,
                epsilon=LITERAL_EPSILON, steps=count,
            )  # fmt: skip
            answer = solver.solve(problem, seed)
            assert isinstance(answer.parameters, LinearParameters)  # the policy is linear
            found.append(form_policies((form,), answer.parameters)[0])
        return found

    return trace


def _draws(form: WassersteinForm, steps: Sequence[int], seed: int) -> list[IntArray]:
    """Return the rows to learn from between one number of steps and the next."""
    rng = rng_for(seed, "convergence")
    sizes = np.diff([0, *steps])
    return [rng.choice(len(form.weights), size=size, p=form.weights) for size in sizes]


def _corrected(*, average: bool) -> Trace:
    """Return DA-SGD: where it stands, or its average since the last look."""

    def trace(
        problem: Problem, form: WassersteinForm, steps: Sequence[int], seed: int
    ) -> list[_Policy]:
        del problem
        lane, found = Lane(form, Options(), rotate=True), []
        theta, numbers = lane.first()
        for draws in _draws(form, steps, seed):
            seen = lane.step(theta, numbers, form, lane.rows, draws)
            last = lane.arrangement.original(theta, float(numbers["intercept"][0]))
            found.append(seen.policy if average else last)
        return found

    return trace


def _primal_dual(
    problem: Problem, form: WassersteinForm, steps: Sequence[int], seed: int
) -> list[_Policy]:
    """Run the primal-dual method: where it stands."""
    del problem
    run, found = PrimalDualRun.start(form), []
    for draws in _draws(form, steps, seed):
        run.run(draws)
        found.append(run.policy())
    return found


ALGORITHMS: Mapping[str, Trace] = {
    "as printed, constant step": _printed(lambda steps: LITERAL_STEP),
    "as printed, step c/sqrt(T)": _printed(lambda steps: LITERAL_SHRINKING / float(np.sqrt(steps))),
    "DA-SGD, last policy": _corrected(average=False),
    "DA-SGD, averaged": _corrected(average=True),
    "primal-dual": _primal_dual,
}


def gaps_against_steps(
    problem: Problem, steps: Sequence[int], *, seeds: Sequence[int] = (0, 1, 2)
) -> tuple[GapCurve, ...]:
    """Measure how far each algorithm is from the optimum after given numbers of steps.

    The gap is (H(theta) - H*) / H*, with H the exact worst case of the policy and H* the certified
    lower bound of ``Exact`` at a gap of 1e-7. Averages run over the steps since the last look, so
    steps that double give the average over the last half of the run.

    Parameters
    ----------
    problem
        An affine problem of one product with free support and an unsmoothed cost.
    steps
        Ascending numbers of steps.
    seeds
        One run of each algorithm for each of them.

    Examples
    --------
    >>> from surefoot import Problem, WassersteinBall
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.datasets import synthetic
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> data = synthetic(n=50, s=3, seed=0, noise_variance=0.1)
    >>> problem = Problem(Newsvendor(1.0, 0.2), Linear(), Empirical(data.X, data.y),
    ...                   WassersteinBall(0.1))
    >>> curves = gaps_against_steps(problem, [500, 1_000, 2_000, 4_000])
    >>> curves[3].algorithm, curves[3].rate().slope < -0.3
    ('DA-SGD, averaged', True)
    """
    listed = [check_integer("steps", count, at_least=1) for count in steps]
    if len(listed) < 2 or (np.diff(listed) <= 0).any():
        raise InvalidInputError(f"steps must ascend and be two or more, got {list(steps)!r}.")
    forms = transport_forms(problem, "gaps_against_steps", merge=True)
    if len(forms) > 1 or forms[0].boxed or forms[0].pieces.smoothing > 0.0:
        raise UnsupportedProblemError(
            "gaps_against_steps needs one product, a free support and an unsmoothed cost: the optimum "
            "and every algorithm are exact there."
        )
    best = Exact(gap_tol=PRECISION).solve(problem).certificate.lower
    curves = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is the point
        for name, trace in ALGORITHMS.items():
            gaps = [
                [
                    forms[0].worst_value(*policy)[0] * forms[0].value_unit / best - 1.0
                    for policy in policies
                ]
                for policies in (trace(problem, forms[0], listed, seed) for seed in seeds)
            ]
            curves.append(GapCurve(name, tuple(listed), np.array(gaps)))
    return tuple(curves)
