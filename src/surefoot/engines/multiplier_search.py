"""Which rows the autodiff engine judges, and at which multiplier."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.exceptions import UnboundedProblemError
from surefoot.problem import GeneralForm
from surefoot.random import rng_for
from surefoot.typing import FloatArray

# Ascent steps of a judgement; rows that it looks at in one go (one compiled piece of code serves any
# number of rows) and most rows of a check during the run and of the last one.
JUDGE_STEPS, CHUNK, CHECK_ROWS, LAST_ROWS = 20, 128, 128, 1_024
# The multiplier's bracket grows by this factor, is halved so often, and gives up after so many.
BRACKET, CHECK_HALVINGS, LAST_HALVINGS, MOST_BRACKETS = 4.0, 4, 12, 60
# A multiplier this many brackets below the first guess is as good as zero.
MOST_SHRINKS = 20


@dataclass(frozen=True, eq=False)
class Judgement:
    """What the adversary can do to each of several policies, one problem after another.

    Attributes
    ----------
    value
        Estimated worst-case expected cost, one for each problem.
    multiplier
        The gamma at which it was found.
    verdict
        What happens to each row; arrays have shape (problems, rows, ...).
    weights, contexts, outcomes
        The rows, shape (problems, rows, ...); weights are zero for rows that only fill up.
    """

    value: FloatArray
    multiplier: FloatArray
    verdict: Any
    weights: FloatArray
    contexts: FloatArray
    outcomes: FloatArray


def judged_rows(form: GeneralForm, most: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return all rows of a form, or so many of them as stand for all."""
    rows = len(form.weights)
    if rows <= most:
        return form.contexts, form.outcomes, form.weights
    chosen = np.sort(rng_for(0, "judged rows", rows, most).choice(rows, most, replace=False))
    weights = form.weights[chosen]
    return form.contexts[chosen], form.outcomes[chosen], weights / weights.sum()


def padded(arrays: list[FloatArray]) -> FloatArray:
    """Stack arrays of different lengths; the first row (with weight zero) fills them up to chunks."""
    rows = -(-max(len(array) for array in arrays) // CHUNK) * CHUNK
    filled = []
    for array in arrays:
        missing = rows - len(array)
        filler = np.zeros(missing) if array.ndim == 1 else np.repeat(array[:1], missing, axis=0)
        filled.append(np.concatenate([array, filler]))
    return np.stack(filled)


def best_multiplier(
    look: Any, gamma: FloatArray, budgets: FloatArray, weights: FloatArray, halvings: int
) -> tuple[FloatArray, Any]:
    """Minimise gamma * budget + E[value] over gamma, one for each problem.

    The slope in gamma is the budget minus the mean distance. The answer is the upper end of a
    bracket, where the adversary keeps to the budget: below, ascents may not have run their course.
    """
    still = budgets == 0.0
    gamma = np.where(still, 1.0, gamma)

    def keeps(verdict: Any) -> Any:
        return still | ((weights * np.asarray(verdict.distance)).sum(axis=1) <= budgets)

    low, high = np.zeros_like(gamma), gamma.copy()
    for _ in range(MOST_BRACKETS):
        verdict = look(high)
        held = keeps(verdict)
        if held.all():
            break
        low, high = np.where(held, low, high), np.where(held, high, BRACKET * high)
    else:
        if not np.isfinite(np.asarray(verdict.value)).all():
            return high, verdict  # it is the policy that ran away, and not the adversary
        raise UnboundedProblemError(
            "The worst case is unbounded: however dear transport is, the adversary gains by moving "
            "further. Use order=2, give the ball a support, or bound the decisions."
        )
    for _ in range(MOST_SHRINKS):
        probe = np.where(low > 0.0, low, high / BRACKET)
        held = keeps(look(probe)) & (low == 0.0) & ~still
        if not held.any():
            break
        high = np.where(held, probe, high)
    low = np.where(low > 0.0, low, high / BRACKET)  # where nothing can move, any multiplier will do
    for _ in range(halvings):
        middle = np.sqrt(low * high)
        held = keeps(look(middle))
        low, high = np.where(held, low, middle), np.where(held, middle, high)
    return np.where(still, 0.0, high), look(np.where(still, 1.0, high))
