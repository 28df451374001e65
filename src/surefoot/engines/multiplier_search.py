"""Which rows the autodiff engine judges, and at which multiplier."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.exceptions import UnboundedProblemError
from surefoot.problem import GeneralForm
from surefoot.random import rng_for
from surefoot.typing import BoolArray, FloatArray

# Ascent steps of a judgement; rows that it looks at in one go (one compiled piece of code serves any
# number of rows), rows of a check during the run, and rows on which policies are compared at its end.
JUDGE_STEPS, CHUNK, CHECK_ROWS, LAST_ROWS = 20, 128, 128, 1_024
# The multiplier's bracket grows by this factor, is halved so often, and gives up after so many.
BRACKET, CHECK_HALVINGS, LAST_HALVINGS, MOST_BRACKETS = 4.0, 4, 12, 60
# Beyond LAST_ROWS, the multiplier that suits so many is tried on all rows, and steps by this factor
# until so many looks were taken: near its best value, it hardly matters.
WHOLE_STEP, WHOLE_LOOKS = 1.1, 3
# A multiplier this many brackets below the first guess is as good as zero.
MOST_SHRINKS = 20


@dataclass(frozen=True, eq=False)
class Judged:
    """What the adversary can do to each of several policies, one problem after another.

    Attributes
    ----------
    value
        Estimated worst-case expected cost, one for each problem.
    multiplier
        The gamma at which it was found.
    verdict
        What happens to each row; arrays have shape (problems, rows, ...).
    beyond
        The same at a multiplier a little smaller, at which more than the budget is spent.
    weights, contexts, outcomes
        The rows, shape (problems, rows, ...); weights are zero for rows that only fill up.
    """

    value: FloatArray
    multiplier: FloatArray
    verdict: Any
    beyond: Any
    weights: FloatArray
    contexts: FloatArray
    outcomes: FloatArray


def judged_rows(form: GeneralForm, most: int | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return all rows of a form, or so many draws that stand for all: by weight, evenly spread."""
    rows = len(form.weights)
    if most is None or rows <= most:
        return form.contexts, form.outcomes, form.weights
    rng = rng_for(0, "judged rows", rows, most)
    shuffled = form.canonical[rng.permutation(rows)]
    places = (rng.uniform() + np.arange(most)) / most
    covered = np.cumsum(form.weights[shuffled])
    chosen = shuffled[np.minimum(np.searchsorted(covered, places * covered[-1]), rows - 1)]
    return form.contexts[chosen], form.outcomes[chosen], np.full(most, 1.0 / most)


def padded(arrays: list[FloatArray]) -> FloatArray:
    """Stack arrays of different lengths; the first row (with weight zero) fills them up to chunks."""
    rows = -(-max(len(array) for array in arrays) // CHUNK) * CHUNK
    filled = []
    for array in arrays:
        missing = rows - len(array)
        filler = np.zeros(missing) if array.ndim == 1 else np.repeat(array[:1], missing, axis=0)
        filled.append(np.concatenate([array, filler]))
    return np.stack(filled)


def weighted_mean(weights: FloatArray, values: Any) -> FloatArray:
    """Return the mean of each problem's rows; those that only fill up may hold anything."""
    return np.asarray((weights * np.where(weights > 0.0, values, 0.0)).sum(axis=1))


def finite_or_worse(values: FloatArray) -> FloatArray:
    """Return judged values with infinity for NaN, so that a policy that ran away is never the best."""
    return np.where(np.isnan(values), np.inf, values)


def relative_changes(judged: Judged, last: Judged | None) -> FloatArray:
    """Return how much each problem's worst case changed since the last check.

    It is relative to the worst case or, where that is near zero (a profit that may be a loss), to
    the spread of the costs of single rows.
    """
    if last is None:
        return np.full(len(judged.value), np.inf)
    costs = np.asarray(judged.verdict.cost)
    mean = (judged.weights * costs).sum(axis=1, keepdims=True)
    spread = np.sqrt((judged.weights * (costs - mean) ** 2).sum(axis=1))
    size = np.maximum(np.abs(judged.value), spread)
    return np.abs(judged.value - last.value) / np.where(size > 0.0, size, 1.0)


def best_multiplier(
    look: Any, gamma: FloatArray, budgets: FloatArray, weights: FloatArray, halvings: int
) -> tuple[FloatArray, Any, Any]:
    """Minimise gamma * budget + E[value] over gamma, one for each problem.

    The slope in gamma is the budget minus the mean distance. The answer is the upper end of a
    bracket, where the adversary keeps to the budget, with what it does there and at the lower end.
    """
    still = budgets == 0.0
    gamma = np.where(still, 1.0, gamma)

    def keeps(verdict: Any) -> Any:
        return still | (weighted_mean(weights, verdict.distance) <= budgets)

    low, high = np.zeros_like(gamma), gamma.copy()
    for _ in range(MOST_BRACKETS):
        verdict = look(high)
        held = keeps(verdict)
        if held.all():
            break
        low, high = np.where(held, low, high), np.where(held, high, BRACKET * high)
    else:
        if not np.isfinite(np.asarray(verdict.value)).all():
            return high, verdict, verdict  # it is the policy that ran away, and not the adversary
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
    ends = (look(np.where(still, 1.0, end)) for end in (high, low))
    return np.where(still, 0.0, high), *ends


def whole_multiplier(
    look: Any, gamma: FloatArray, budgets: FloatArray, weights: FloatArray
) -> tuple[FloatArray, Any, Any]:
    """Return the best of a few multipliers around one that suits a sample of the rows.

    Every multiplier bounds the worst case from above, so the least of what they say counts.
    """
    still = budgets == 0.0
    best, least = gamma, np.full(len(gamma), np.inf)
    best_verdict, beyond, most = None, None, np.full(len(gamma), -np.inf)
    low, high, probe = np.zeros_like(gamma), np.full(len(gamma), np.inf), gamma.copy()
    for _ in range(WHOLE_LOOKS):
        verdict = look(np.where(still, 1.0, probe))
        spent = weighted_mean(weights, verdict.distance)
        value = probe * budgets + weighted_mean(weights, verdict.value)
        better = (value < least) | ~np.isfinite(least)
        best, least = np.where(better, probe, best), np.where(better, value, least)
        best_verdict = verdict if best_verdict is None else _pick(better, verdict, best_verdict)
        further = spent > most
        beyond = verdict if beyond is None else _pick(further, verdict, beyond)
        most = np.where(further, spent, most)
        over = spent > budgets
        low, high = np.where(over, probe, low), np.where(over, high, probe)
        known = (low > 0.0) & np.isfinite(high)
        step = np.where(over, probe * WHOLE_STEP, probe / WHOLE_STEP)
        probe = np.where(known, np.sqrt(low * np.where(known, high, 1.0)), step)
    return np.where(still, 0.0, best), best_verdict, beyond


def _pick(chosen: BoolArray, new: Any, old: Any) -> Any:
    """Return a verdict with the chosen problems from the new one."""
    return type(new)(
        *(
            np.where(chosen.reshape(-1, *[1] * (np.ndim(a) - 1)), np.asarray(a), np.asarray(b))
            for a, b in zip(new, old, strict=True)
        )
    )
