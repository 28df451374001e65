"""Columns of contexts: how far they spread, in which units they are measured, which may move."""

import math
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical, Nominal, RowBatches
from surefoot.nominals.empirical import CONSTANT_COLUMN, column_spread
from surefoot.nominals.row_batches import Moments
from surefoot.policies import Policy
from surefoot.problem.problem import Problem, check_problem
from surefoot.random import rng_for
from surefoot.typing import BoolArray, FloatArray

# Rows drawn from a nominal that has no rows of its own: they fix units and judge policies.
JUDGING_ROWS = 2_000


class ColumnUnits(NamedTuple):
    """The unit of each column, their common part beyond the ambiguity set's own, and what may move."""

    scale: FloatArray
    common: float
    movable: BoolArray
    spread: FloatArray


def spread_units(problem: Problem, names: tuple[str, ...] | None, spread: FloatArray) -> ColumnUnits:
    """Return the units in which columns (features) of some spread are measured, and which may move.

    Beyond the ambiguity set's own units, all columns are divided by one common power of two, so that
    the shape of the set stays as it is and numbers are of the size of one.
    """
    if problem.policy.features is not None:
        names = None
        named = [column for column in problem.ball.frozen if isinstance(column, str)]
        if named:
            raise InvalidInputError(
                "frozen must hold positions of features when the policy has a feature map, "
                f"got {named[0]!r}."
            )
    scale = problem.ball.column_scale(spread)
    movable = problem.ball.movable(spread, names)
    lengths = (spread / scale)[movable & (spread > 0.0)]
    size = (
        math.sqrt(float(np.mean((lengths / lengths.max()) ** 2))) * lengths.max()
        if len(lengths)
        else 1.0
    )
    common = 2.0 ** round(math.log2(size))
    return ColumnUnits(scale * common, common, movable, spread)


def fitted_problem(problem: Problem) -> Problem:
    """Return the problem with the units and the columns of its ambiguity set as its rows have them."""
    check_problem(problem)
    nominal, policy = problem.nominal, problem.policy
    if isinstance(nominal, RowBatches):
        units = spread_units(problem, nominal.names, moments_spread(batch_moments(policy, nominal)))
    else:
        if not isinstance(nominal, Empirical):
            nominal = sampled_rows(nominal)
        units = spread_units(problem, nominal.names, feature_spread(policy, nominal))
    return replace(problem, ball=problem.ball.fitted(units.scale / units.common, units.movable))


def feature_spread(policy: Policy, nominal: Empirical) -> FloatArray:
    """Return the spread of each column (feature); the order of rows changes no digit of it."""
    if policy.features is None:
        return nominal.spread
    rows = nominal.distinct()
    return column_spread(policy.transform(rows.contexts), rows.weights)


def sampled_rows(nominal: Nominal, seed: int = 0) -> Empirical:
    """Return rows that stand for a nominal without rows of its own, or with more than fit."""
    if isinstance(nominal, RowBatches):
        return some_rows(nominal, rng_for(seed, "judging rows"), JUDGING_ROWS)
    drawn = nominal.sample(rng_for(seed, "judging rows"), JUDGING_ROWS)
    return Empirical(*drawn, names=nominal.names)


def some_rows(nominal: RowBatches, rng: np.random.Generator, size: int) -> Empirical:
    """Return so many of the rows that are kept from all batches, or all of them, in random order."""
    kept = nominal.survey.sample
    return kept.take(rng.permutation(len(kept.contexts))[:size])


def batch_moments(policy: Policy, nominal: RowBatches) -> Moments:
    """Return the moments of all rows' features, by a pass of its own if there is a feature map."""
    if policy.features is None:
        return nominal.survey.contexts
    parts = (Moments.of(policy.transform(contexts)) for contexts, _ in nominal.batches())
    return reduce(Moments.joined, parts)


def moments_spread(moments: Moments) -> FloatArray:
    """Return the standard deviation of each column, zero where it is only rounding."""
    size = np.maximum(np.abs(moments.least), np.abs(moments.most))
    return np.where(moments.spread > CONSTANT_COLUMN * size, moments.spread, 0.0)


def check_support(problem: Problem, features: FloatArray, outcomes: FloatArray) -> None:
    """Refuse a nominal outside the support of the ambiguity set."""
    box = problem.ball.support
    if box is None:
        return
    lower, upper = box.arrays(features.shape[1])
    outside = (features < lower) | (features > upper)
    if outside.any():
        column = int(np.argwhere(outside)[0, 1])
        raise InvalidInputError(
            f"support must contain every context, got column {column} with values in "
            f"[{features[:, column].min():g}, {features[:, column].max():g}] and a box "
            f"[{lower[column]:g}, {upper[column]:g}]."
        )
    if math.isfinite(problem.ball.outcome_cost):
        low, high = box.outcome
        if outcomes.min() < low or outcomes.max() > high:
            raise InvalidInputError(
                f"support must contain every outcome, got values in [{outcomes.min():g}, "
                f"{outcomes.max():g}] and bounds [{low:g}, {high:g}]."
            )
