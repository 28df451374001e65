"""Choose the radius by cross-validation: all folds side by side, each a path of radii."""

from dataclasses import dataclass, replace

import numpy as np

from surefoot.costs import AuxiliaryCost
from surefoot.engines.choice import radius_grid
from surefoot.exceptions import InvalidInputError
from surefoot.forecasts import Question, later_blocks
from surefoot.io import register
from surefoot.nominals import Empirical
from surefoot.problem import Problem, fitted_problem
from surefoot.random import rng_for
from surefoot.solvers import Solver
from surefoot.typing import FloatArray, IntArray

N_FOLDS = 5
# What is tried for the errors of a forecast, in shares of the largest useful radius; on how many rows
# at most, and from how many on: with fewer, folds of a few rows only add noise.
CORRECTION_SHARES = (1.0, 0.6, 0.35, 0.2, 0.1, 0.03, 0.0)
CORRECTION_ROWS, CORRECTION_LEAST = 2_000, 30
# From this many rows on, half a standard error is clear enough.
CORRECTION_TRUSTED = 100


@register
@dataclass(frozen=True, eq=False)
class RadiusPath:
    """What cross-validation saw.

    Attributes
    ----------
    radii
        The radii tried, from the largest useful one down to zero.
    fold_costs
        Mean cost on held-out rows, shape (folds, radii), summed over products.
    fold_weights
        The weight of each fold's held-out rows.
    radius
        The chosen radius: the smallest mean cost, and of equal ones the largest radius. After a
        forecast the largest radius, unless the smallest mean cost is clearly smaller.
    """

    radii: FloatArray
    fold_costs: FloatArray
    fold_weights: FloatArray
    radius: float

    @property
    def mean_costs(self) -> FloatArray:
        """Cross-validated cost of each radius."""
        return np.asarray(self.fold_weights @ self.fold_costs / self.fold_weights.sum())

    def times(self, factor: float) -> "RadiusPath":
        """Return the path with all radii multiplied."""
        return replace(self, radii=self.radii * factor, radius=self.radius * factor)

    def __repr__(self) -> str:
        """Print the choice and what it was chosen from."""
        return (
            f"RadiusPath(radius={self.radius:.4g}, {len(self.radii)} radii from "
            f"{self.radii[-1]:.4g} to {self.radii[0]:.4g}, {len(self.fold_costs)} folds)"
        )


def fold_rows(n: int, seed: int) -> list[IntArray]:
    """Return the held-out rows of each fold."""
    return np.array_split(rng_for(seed, "folds").permutation(n), min(N_FOLDS, n))


def choose_radius(question: Question, solver: Solver, seed: int) -> RadiusPath:
    """Choose a radius for a question by cross-validated cost.

    Folds are made of distinct rows, so a repeated row never stands on both sides. Rows in order of time
    are held out block by block, and only what came before a block is learned from. A correction of a
    forecast starts at the largest useful radius, at which nothing is added to the forecast but a
    constant; another radius takes its place only if it is better by more than a standard error of the
    difference, row by row (half of that from a hundred rows on).
    """
    problem, rows = question.rehearsal, question.rehearsal.nominal
    if not isinstance(rows, Empirical):
        raise InvalidInputError(
            "radius must be a number where the nominal has no rows of its own to cross-validate on, "
            "got 'auto'."
        )
    radii, n = radius_grid(problem), len(rows.weights)
    if not question.corrects:
        if len(radii) == 1 or n < 2:
            return _only(radii)
        return _cross_validated(problem, solver, radii, seed, times=question.times)
    largest = float(radius_grid(question.problem)[0])
    if radii[0] == 0.0 or n < CORRECTION_LEAST:
        return _only(np.array([largest]))
    path = _cross_validated(problem, solver, radii[0] * np.array(CORRECTION_SHARES), seed, careful=True)
    # Radii were tried as shares of the largest useful one, which smoothing the errors moves a bit.
    return path.times(largest / float(path.radii[0]))


def _only(radii: FloatArray) -> RadiusPath:
    """Return the path where there is nothing to choose from."""
    return RadiusPath(radii[:1], np.zeros((1, 1)), np.ones(1), float(radii[0]))


def _cross_validated(
    problem: Problem,
    solver: Solver,
    radii: FloatArray,
    seed: int,
    *,
    careful: bool = False,
    times: IntArray | None = None,
) -> RadiusPath:
    rows = problem.nominal
    assert isinstance(rows, Empirical)  # asked before
    fitted = fitted_problem(problem)
    if careful and len(rows.weights) > CORRECTION_ROWS:
        kept = rng_for(seed, "correction").choice(len(rows.weights), CORRECTION_ROWS, replace=False)
        rows = rows.take(np.sort(kept))
    weights, later = rows.weights, [] if times is None else later_blocks(times, rows.masses)
    parts = later or fold_rows(len(weights), seed)
    costs = held_out_costs(fitted, rows, solver, radii, parts, seed, bool(later))
    mean = sum(weights[part] @ costs[part] for part in parts)
    best = int(np.argmin(mean))
    if careful:
        gains = costs[:, 0] - costs[:, best]
        gain = float(weights @ gains)
        error = float(np.sqrt(weights**2 @ (gains - gain) ** 2))
        clear = gain > (error if len(weights) < CORRECTION_TRUSTED else 0.5 * error)
        best = best if clear else 0
    fold_weights = np.array([weights[part].sum() for part in parts])
    sums = np.array([weights[part] @ costs[part] for part in parts])
    return RadiusPath(radii, sums / fold_weights[:, None], fold_weights, float(radii[best]))


def held_out_costs(
    problem: Problem,
    rows: Empirical,
    solver: Solver,
    radii: FloatArray,
    parts: list[IntArray],
    seed: int,
    past: bool = False,
) -> FloatArray:
    """Return what each row cost when it was held out, shape (rows, radii), summed over products.

    Learned from is everything else, or with ``past`` the rows before a part; the cost of a row that was
    never held out is not a number.
    A cost with variables of its own, such as a value at risk, has them chosen on the held-out
    decisions of all folds together: a tail needs more rows than one fold has.
    """
    everyone, held = np.arange(len(rows.weights)), np.concatenate(parts)
    others = [np.arange(part[0]) if past else np.setdiff1d(everyone, part) for part in parts]
    training = [problem.around(rows.take(other)) for other in others]
    paths = solver.roughly(len(rows.weights)).solve_paths(training, radii.tolist(), seed)
    cost = problem.cost
    costs = np.full((len(rows.weights), len(radii)), np.nan)
    for k in range(len(radii)):
        decisions = np.empty((len(rows.weights), cost.n_decisions(rows.n_products)))
        for part, path in zip(parts, paths, strict=True):
            offsets = None if rows.offsets is None else rows.offsets[part]
            decisions[part] = problem.policy.decide(path[k], rows.contexts[part], offsets)
        made, outcomes = decisions[held], rows.outcomes[held]
        if isinstance(cost, AuxiliaryCost):
            weights = rows.weights[held] / rows.weights[held].sum()
            best = cost.best_auxiliary(made, outcomes, weights)
            costs[held, k] = cost.evaluate_at(made, best, outcomes)
        else:
            costs[held, k] = cost.evaluate(made, outcomes)
    return costs
