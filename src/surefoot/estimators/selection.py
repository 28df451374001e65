"""Choose the radius by cross-validation: all folds in one threaded pass, each a warm-started path."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from surefoot.problem import AffineProblem
from surefoot.random import rng_for
from surefoot.solvers.adaptive import AdaptiveRun
from surefoot.solvers.loop import draw_blocks, run_until
from surefoot.solvers.memory import MemoryRun
from surefoot.typing import FloatArray, IntArray

# Useful radii lie between this share of the collapse radius and the collapse radius itself.
SMALLEST_SHARE = 0.003
N_RADII = 12
N_FOLDS = 5
# Folds need no proof to a per cent: costs on held-out rows are noisier than that.
FOLD_GAP = 0.04
FOLD_PASSES, FOLD_STEPS = 60, 4_000
# What is tried for the errors of a forecast, in shares of the collapse radius; on how many rows at
# most, and from how many on: with fewer, folds of a few rows only add noise.
CORRECTION_SHARES = (1.0, 0.6, 0.35, 0.2, 0.1, 0.03, 0.0)
CORRECTION_ROWS, CORRECTION_LEAST = 2_000, 30
# From this many rows on, half a standard error is clear enough.
CORRECTION_TRUSTED = 100


@dataclass(frozen=True, eq=False)
class RadiusPath:
    """What cross-validation saw.

    Attributes
    ----------
    radii
        The radii tried, from the collapse radius down to zero.
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


def radius_grid(problems: tuple[AffineProblem, ...]) -> FloatArray:
    """Return radii from the largest collapse radius of all products down, and zero."""
    largest = max(problem.collapse_radius() for problem in problems)
    if largest == 0.0:
        return np.zeros(1)
    return np.append(np.geomspace(largest, SMALLEST_SHARE * largest, N_RADII - 1), 0.0)


def fold_rows(n: int, seed: int) -> list[IntArray]:
    """Return the held-out rows of each fold."""
    return np.array_split(rng_for(seed, "folds").permutation(n), min(N_FOLDS, n))


def choose_radius(problems: tuple[AffineProblem, ...], seed: int) -> RadiusPath:
    """Choose the radius of least cross-validated cost on the rows of the problems.

    Folds are made of distinct rows, so a repeated row never stands on both sides.
    """
    radii = radius_grid(problems)
    n, weights = len(problems[0].outcomes), problems[0].weights
    if len(radii) == 1 or n < 2:
        return _only(radii)
    parts = fold_rows(n, seed)
    costs = _held_out_costs(problems, radii, parts, seed)
    fold_costs, fold_weights = _by_fold(costs, weights, parts)
    chosen = int(np.argmin(fold_weights @ fold_costs))
    return RadiusPath(radii, fold_costs, fold_weights, float(radii[chosen]))


def choose_correction(problems: tuple[AffineProblem, ...], seed: int) -> RadiusPath:
    """Choose the radius for the errors of a forecast: the collapse radius unless that clearly costs.

    At the collapse radius nothing is added to the forecast but a constant. The radius of least
    cross-validated cost takes its place only if it is better by more than a standard error of the
    difference, row by row (half of that from a hundred rows on).
    """
    largest = radius_grid(problems)[0]
    n, weights = len(problems[0].outcomes), problems[0].weights
    if largest == 0.0 or n < CORRECTION_LEAST:
        return _only(np.array([largest]))
    radii = largest * np.array(CORRECTION_SHARES)
    if n > CORRECTION_ROWS:
        kept = np.sort(rng_for(seed, "correction").choice(n, CORRECTION_ROWS, replace=False))
        problems = tuple(problem.subset(kept) for problem in problems)
        n, weights = CORRECTION_ROWS, problems[0].weights
    parts = fold_rows(n, seed)
    costs = _held_out_costs(problems, radii, parts, seed)
    mean = weights @ costs
    best = int(np.argmin(mean))
    gains = costs[:, 0] - costs[:, best]
    gain = float(weights @ gains)
    error = float(np.sqrt(weights**2 @ (gains - gain) ** 2))
    fold_costs, fold_weights = _by_fold(costs, weights, parts)
    clear = gain > (error if n < CORRECTION_TRUSTED else 0.5 * error)
    return RadiusPath(radii, fold_costs, fold_weights, float(radii[best if clear else 0]))


def _only(radii: FloatArray) -> RadiusPath:
    """Return the path where there is nothing to choose from."""
    return RadiusPath(radii[:1], np.zeros((1, 1)), np.ones(1), float(radii[0]))


def _by_fold(
    costs: FloatArray, weights: FloatArray, parts: list[IntArray]
) -> tuple[FloatArray, FloatArray]:
    """Return the mean cost (folds, radii) and the weight of each fold."""
    fold_weights = np.array([weights[part].sum() for part in parts])
    sums = np.array([weights[part] @ costs[part] for part in parts])
    return sums / fold_weights[:, None], fold_weights


def _held_out_costs(
    problems: tuple[AffineProblem, ...], radii: FloatArray, parts: list[IntArray], seed: int
) -> FloatArray:
    """Return what each row cost when it was held out, shape (rows, radii), summed over products."""
    n = len(problems[0].outcomes)
    tasks = [(j, k) for k in range(len(parts)) for j in range(len(problems))]

    def work(task: tuple[int, int]) -> FloatArray:
        product, fold = task
        kept = np.setdiff1d(np.arange(n), parts[fold])
        rng = rng_for(seed, "path", product, fold)
        return _path_costs(problems[product], kept, parts[fold], radii, rng)

    with ThreadPoolExecutor(max_workers=min(len(tasks), os.cpu_count() or 1)) as pool:
        found = list(pool.map(work, tasks))
    costs = np.zeros((n, len(radii)))
    for (_, fold), part in zip(tasks, found, strict=True):
        costs[parts[fold]] += part
    return costs


def _path_costs(
    problem: AffineProblem,
    kept: IntArray,
    held_out: IntArray,
    radii: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Solve for every radius on the kept rows, each from the last one; costs of the held-out rows."""
    training, test = problem.subset(kept), problem.subset(held_out)
    steps = max(FOLD_PASSES * len(kept), FOLD_STEPS)
    plain = training.boxed or training.pieces.smoothing > 0
    run = None if plain else MemoryRun.start(training)
    costs = []
    for radius in radii:
        at_radius = training.at_radius(float(radius))
        if run is None:
            stepping: AdaptiveRun | MemoryRun = AdaptiveRun(at_radius)
        else:
            run.move_to(float(radius))
            stepping = run
        blocks = draw_blocks(at_radius, rng, steps, growth=1.5)
        found = run_until(stepping, blocks, gap_tol=FOLD_GAP)
        residuals = test.residuals(found.theta, found.intercept)
        costs.append(test.pieces.evaluate(residuals))
    return np.column_stack(costs)
