"""Choose the radius of any policy by cross-validation: all folds and radii side by side."""

from dataclasses import replace

import numpy as np

from surefoot.estimators.selection import RadiusPath, fold_rows
from surefoot.exceptions import InvalidInputError
from surefoot.problem import GeneralProblem
from surefoot.solvers.general_run import BLOCK, GeneralRun, GeneralSettings
from surefoot.typing import FloatArray

# Radii in units of the columns' spread: beyond one, standard deviations lose their meaning.
RADII = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)
# Folds take this share of the steps of a fit: costs on held-out rows are noisier than the rest.
STEP_SHARE = 0.25


def choose_general_radius(problem: GeneralProblem, settings: GeneralSettings, seed: int) -> RadiusPath:
    """Cross-validate the radius; every fold and radius is one problem of a single batch."""
    if not problem.exact_rows:
        raise InvalidInputError(
            "radius must be a number where the nominal has no rows of its own to cross-validate on, "
            "got 'auto'."
        )
    if not problem.movable.any():
        return RadiusPath(np.zeros(1), np.zeros((1, 1)), np.ones(1), 0.0)
    # Columns measured in their own units may be far from one.
    unit = float(np.sqrt(np.mean((problem.units.spread / problem.scale)[problem.movable] ** 2)))
    radii = unit * np.array(RADII)
    problem = problem.subset(np.flatnonzero(problem.weights > 0.0))
    rows = np.arange(len(problem.weights))
    parts = fold_rows(len(rows), seed)
    cells = [
        problem.subset(np.setdiff1d(rows, part)).at_radius(float(radius))
        for part in parts
        for radius in radii
    ]
    shorter = replace(settings, max_steps=max(BLOCK, int(STEP_SHARE * settings.max_steps)))
    run = GeneralRun(cells, shorter, [seed] * len(cells))
    blocks = -(-shorter.max_steps // BLOCK)
    for block in range(blocks):
        if run.advance() is not None:
            break
        if block == blocks // 2:
            run.restart_average()
    costs = _held_out_costs(problem, run, [np.sort(part) for part in parts for _ in radii])
    fold_costs = costs.reshape(len(parts), len(radii))
    fold_weights = np.array([problem.weights[part].sum() for part in parts])
    mean = fold_weights @ fold_costs
    return RadiusPath(radii, fold_costs, fold_weights, float(radii[int(np.argmin(mean))]))


def _held_out_costs(problem: GeneralProblem, run: GeneralRun, held_out: list[FloatArray]) -> FloatArray:
    """Return the mean cost of each cell's policy on the rows that it did not see."""
    costs = []
    for number, rows in enumerate(held_out):
        tree = run.policy_of(number)
        decisions = problem.decisions(tree["policy"], problem.contexts[rows])
        weights = problem.weights[rows] / problem.weights[rows].sum()
        costs.append(problem.cost.mean(decisions, problem.outcomes[rows], weights))
    return np.array(costs)
