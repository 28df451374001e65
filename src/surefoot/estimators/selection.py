"""Choose the radius by cross-validation: all folds in one threaded pass, each a warm-started path."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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
        The chosen radius: the smallest mean cost, and of equal ones the largest radius.
    """

    radii: FloatArray
    fold_costs: FloatArray
    fold_weights: FloatArray
    radius: float

    @property
    def mean_costs(self) -> FloatArray:
        """Cross-validated cost of each radius."""
        return np.asarray(self.fold_weights @ self.fold_costs / self.fold_weights.sum())

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
    """Cross-validate the radius on the rows of the problems.

    Folds are made of distinct rows, so a repeated row never stands on both sides.
    """
    radii = radius_grid(problems)
    n = len(problems[0].outcomes)
    weights = problems[0].weights
    if len(radii) == 1 or n < 2:
        return RadiusPath(radii[:1], np.zeros((1, 1)), np.ones(1), float(radii[0]))
    parts = fold_rows(n, seed)
    tasks = [(j, k) for k in range(len(parts)) for j in range(len(problems))]

    def work(task: tuple[int, int]) -> FloatArray:
        product, fold = task
        held_out = np.sort(parts[fold])
        kept = np.setdiff1d(np.arange(n), held_out)
        rng = rng_for(seed, "path", product, fold)
        return _path_costs(problems[product], kept, held_out, radii, rng)

    with ThreadPoolExecutor(max_workers=min(len(tasks), os.cpu_count() or 1)) as pool:
        costs = np.array(list(pool.map(work, tasks)))
    fold_costs = costs.reshape(len(parts), len(problems), len(radii)).sum(axis=1)
    fold_weights = np.array([weights[part].sum() for part in parts])
    mean = fold_weights @ fold_costs
    return RadiusPath(radii, fold_costs, fold_weights, float(radii[int(np.argmin(mean))]))


def _path_costs(
    problem: AffineProblem,
    kept: IntArray,
    held_out: IntArray,
    radii: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Solve for every radius on the kept rows, each from the last one; cost on the held-out rows."""
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
        costs.append(float(test.weights @ test.pieces.evaluate(residuals)))
    return np.array(costs)
