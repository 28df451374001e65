"""What the adversary did while the policy was learning."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot.diagnostics.fitted import FittedParts, corrected_nominal, fitted_parts, trained_nominal
from surefoot.estimators.augmentation import Augmentation, augment
from surefoot.estimators.learning import learner_after
from surefoot.exceptions import ConvergenceWarning, UnsupportedProblemError
from surefoot.nominals import Empirical, Nominal
from surefoot.solvers import DASGD, Exact, Solution
from surefoot.solvers.base import Callback, Progress
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
        return np.array([found.worst_case for found in self.augmentations])

    @property
    def multipliers(self) -> FloatArray:
        """The optimal gamma at each checkpoint, shape (checkpoints, adversaries)."""
        return np.array([found.multiplier for found in self.augmentations])

    @property
    def column_shares(self) -> FloatArray:
        """Share of the transport cost on each column, shape (checkpoints, columns)."""
        return np.array([found.column_shares for found in self.augmentations])

    def __str__(self) -> str:
        """Print one line for each checkpoint."""
        lines = [f"{'steps':>10}{'data':>12}{'worst case':>12}{'multiplier':>12}{'moved':>8}  columns"]
        for steps, found in zip(self.steps, self.augmentations, strict=True):
            names = ", ".join(column.name for column in found.most_used(3)) or "none"
            lines.append(
                f"{steps:10,}{found.cost_before:12.5g}{found.worst_case:12.5g}"
                f"{float(found.multiplier.mean()):12.4g}{100 * found.share_moved:6.1f} %  {names}"
            )
        return "\n".join(lines)


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
        A fitted RobustPolicy or RobustNewsvendor whose solver is ``DASGD`` or ``Exact``.
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
    parts = fitted_parts(model)
    if not isinstance(parts.recipe.solver, DASGD | Exact):
        raise UnsupportedProblemError(
            "adversary_path needs a solver that can be watched (DASGD or Exact), got "
            f"{type(parts.recipe.solver).__name__}."
        )
    nominal = trained_nominal(model, X, y, sample_weight)
    seen: list[Progress] = []
    learned_from = nominal
    if isinstance(nominal, Empirical):
        learned_from = corrected_nominal(parts, nominal)
    whole = _run(parts, learned_from, seen.append)
    chosen = _spread_out(sorted({progress.steps for progress in seen}), checkpoints)
    found = [_run(parts, learned_from, _stop_at(steps)) for steps in chosen[:-1]] + [whole]
    return AdversaryPath(
        steps=tuple(chosen),
        augmentations=tuple(_augmented(parts, nominal, solution) for solution in found),
        history=whole.history,
    )


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


def _run(parts: FittedParts, nominal: Nominal, callback: Callback) -> Solution:
    solver: Any = parts.recipe.solver
    problem = parts.recipe.problem(nominal, parts.radius)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is the point
        solution: Solution = replace(solver, callback=callback).solve(problem, parts.seed)
    return solution


def _augmented(parts: FittedParts, nominal: Nominal, solution: Solution) -> Augmentation:
    learner = learner_after(parts.recipe, parts.radius, solution)
    return augment(parts.recipe, learner, nominal, parts.radius, centre=parts.centre)
