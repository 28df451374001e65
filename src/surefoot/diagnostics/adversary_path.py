"""What the adversary did while the policy was learning."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot.diagnostics.fitted_model import checked_model, rows_of, solver_of
from surefoot.estimators import RobustEstimator
from surefoot.estimators.augmentation import Augmentation, augment
from surefoot.exceptions import ConvergenceWarning, InvalidInputError, UnsupportedProblemError
from surefoot.policies import Linear
from surefoot.problem import Problem
from surefoot.solvers import DASGD, Exact, PrimalDual, Progress, Solution
from surefoot.solvers.base import Callback
from surefoot.text_table import text_table
from surefoot.typing import FloatArray
from surefoot.validation import check_integer


@dataclass(frozen=True, eq=False)
class AdversaryPath:
    """The adversarial samples of the policies that a run went through.

    Attributes
    ----------
    steps
        Steps that the run had taken at each checkpoint; of the product with the most, if there are
        several.
    augmentations
        What the adversary does to the policy that the run would have returned there.
    history
        Every check of the whole run: bounds, gap and time; of the first product.
    """

    steps: tuple[int, ...]
    augmentations: tuple[Augmentation, ...]
    history: tuple[Progress, ...]

    @property
    def worst_cases(self) -> FloatArray:
        """Worst-case expected cost at each checkpoint."""
        return np.array([one.worst_case for one in self.augmentations])

    @property
    def multipliers(self) -> FloatArray:
        """The optimal gamma at each checkpoint, shape (checkpoints, adversaries)."""
        return np.array([one.multiplier for one in self.augmentations])

    @property
    def column_shares(self) -> FloatArray:
        """Share of the transport cost on each column, shape (checkpoints, columns)."""
        return np.array([one.column_shares for one in self.augmentations])

    def __str__(self) -> str:
        """Print one line for each checkpoint."""
        lines = [
            (
                f"{steps:,}", f"{one.cost_before:.5g}", f"{one.worst_case:.5g}",
                f"{float(one.multiplier.mean()):.4g}", f"{100 * one.share_moved:.1f} %",
                ", ".join(column.name for column in one.most_used(3)) or "none",
            )
            for steps, one in zip(self.steps, self.augmentations, strict=True)
        ]  # fmt: skip
        head = ("steps", "data", "worst case", "multiplier", "moved", "columns")
        return text_table(head, lines, right=len(head))


def adversary_path(
    model: Any, X: Any, y: Any, *, checkpoints: int = 6, sample_weight: Any = None
) -> AdversaryPath:
    """Learn the model's policy anew and look at its adversary on the way.

    The run is that of ``fit`` on the same data: same solver, seed and radius. It is repeated up to
    each checkpoint, where it is stopped as Ctrl-C would stop it, so that the policy of a checkpoint
    is the one that an interrupted ``fit`` returns. That costs a few times the time of one fit.

    Parameters
    ----------
    model
        A fitted RobustPolicy or RobustNewsvendor whose solver is ``DASGD``, ``PrimalDual`` or
        ``Exact``.
    X, y, sample_weight
        What it was fitted to.
    checkpoints
        Most checkpoints, the first and the last check of the run among them.

    Examples
    --------
    >>> from surefoot import RobustNewsvendor
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=60, s=5, noise_variance=0.1, seed=0)
    >>> model = RobustNewsvendor(1.0, 0.2, radius=0.05).fit(data.X, data.y)
    >>> path = adversary_path(model, data.X, data.y, checkpoints=4)
    >>> path.steps[0], bool((np.diff(path.worst_cases) <= 0.0).all())
    (0, True)
    """
    check_integer("checkpoints", checkpoints, at_least=2)
    fitted = checked_model(model)
    problem = _trained_problem(fitted, X, y, sample_weight)
    solver = solver_of(fitted, problem)
    if not isinstance(solver, DASGD | PrimalDual | Exact):
        raise UnsupportedProblemError(
            "adversary_path needs a solver that can be watched (DASGD, PrimalDual or Exact), got "
            f"{type(solver).__name__}: fit with one of them, such as solver=PrimalDual()."
        )
    seen: list[Progress] = []
    seed = fitted.seed_
    whole = _run(solver, problem, seed, seen.append)
    chosen = _spread_out(sorted({progress.steps for progress in seen}), checkpoints)
    solutions = [_run(solver, problem, seed, _stop_at(steps)) for steps in chosen[:-1]] + [whole]
    return AdversaryPath(
        steps=tuple(chosen),
        augmentations=tuple(augment(problem, solution.parameters) for solution in solutions),
        history=whole.history,
    )


def _trained_problem(model: RobustEstimator, X: Any, y: Any, sample_weight: Any) -> Problem:
    """Return what a fit to these data solves; honest forecasts of the rows are those of the fit."""
    rows = rows_of(model, X, y, sample_weight)
    policy = model.problem_.policy
    if not isinstance(policy, Linear) or policy.offset is None:
        return model.problem_.around(rows)
    if not hasattr(model, "nominal_"):
        raise InvalidInputError(
            "model must come from fit itself where it starts from a forecast, got one from a file."
        )
    return model.problem_.around(model.nominal_)


def _spread_out(steps: Sequence[int], count: int) -> list[int]:
    """Return the first, the last and some in between, evenly spread over the checks."""
    places = np.unique(np.linspace(0, len(steps) - 1, count).round().astype(int))
    return [steps[place] for place in places]


def _stop_at(steps: int) -> Callback:
    """Return a callback that ends a run at a check; solvers then return the best policy so far."""

    def callback(progress: Progress) -> None:
        if progress.steps >= steps:
            raise KeyboardInterrupt

    return callback


def _run(solver: Any, problem: Problem, seed: int, callback: Callback) -> Solution:
    # Stopping early is the point.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        solution: Solution = replace(solver, callback=callback).solve(problem, seed)
    return solution
