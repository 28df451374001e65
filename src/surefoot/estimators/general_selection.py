"""Choose the radius of any policy by cross-validation: all folds and radii side by side."""

from dataclasses import replace

import numpy as np

from surefoot.costs import AuxiliaryCost
from surefoot.estimators.selection import RadiusPath, fold_rows
from surefoot.exceptions import InvalidInputError
from surefoot.problem import GeneralProblem
from surefoot.solvers.general_run import BLOCK, GeneralRun, GeneralSettings
from surefoot.typing import FloatArray, IntArray

# Radii in units of the columns' spread: beyond one, standard deviations lose their meaning.
RADII = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)
# Folds take this share of the steps of a fit: costs on held-out rows are noisier than the rest.
STEP_SHARE = 0.5


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
    fold_costs = np.column_stack(
        [
            _held_out_costs(problem, run, parts, [k + fold * len(radii) for fold in range(len(parts))])
            for k in range(len(radii))
        ]
    )
    fold_weights = np.array([problem.weights[part].sum() for part in parts])
    mean = fold_weights @ fold_costs
    return RadiusPath(radii, fold_costs, fold_weights, float(radii[int(np.argmin(mean))]))


def _held_out_costs(
    problem: GeneralProblem, run: GeneralRun, parts: list[IntArray], cells: list[int]
) -> FloatArray:
    """Return the mean cost of each fold's policy on the rows that it did not see.

    A cost with variables of its own, such as a value at risk, has them chosen on the held-out
    decisions of all folds together: a tail needs more rows than one fold has.
    """
    decisions = np.empty((len(problem.weights), problem.n_decisions))
    for part, cell in zip(parts, cells, strict=True):
        decisions[part] = problem.decisions(run.policy_of(cell)["policy"], problem.contexts[part])
    cost = problem.cost
    if isinstance(cost, AuxiliaryCost):
        best = cost.best_auxiliary(decisions, problem.outcomes, problem.weights)
        rows = cost.evaluate_at(decisions, best, problem.outcomes)
    else:
        rows = cost.evaluate(decisions, problem.outcomes)
    weights = problem.weights
    return np.array([weights[part] @ rows[part] / weights[part].sum() for part in parts])
