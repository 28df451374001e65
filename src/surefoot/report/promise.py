"""What is stated about new rows, what a shift of the data would cost, and what the adversary does."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.ambiguity import WassersteinBall
from surefoot.diagnostics import price_of_robustness
from surefoot.estimators import RobustEstimator
from surefoot.estimators.guarantees import SHIFT, SHIFTS, Guarantee, decides, guarantee_of
from surefoot.estimators.preparation import PreparedPolicy
from surefoot.exceptions import InvalidInputError, SurefootError
from surefoot.report.rows import Origin, ReportRows

DRAWS = (
    "The bound takes new rows as draws like those learned from. Rows in order of time, with seasons, "
    "trends and changes, are not, and then it may fail."
)
BLOCKS = (
    "The bound takes the rows to come to vary as past blocks of rows did, each decided from the rows "
    "before it. Nothing proves that they will."
)
# Columns that the adversary uses most.
SHOWN_COLUMNS = 8


@dataclass(frozen=True)
class Promise:
    """What is stated about the cost on new rows.

    Attributes
    ----------
    sentence
        In one sentence for whoever plans.
    bound
        What the expected cost is at most; None where nothing is stated.
    shifts, costs
        For shifts of the data, what the cost then is at most; both empty where that is not known.
    of_what
        What shifts: the label of the axis.
    why_above
        Why a cost may lie above the bound all the same.
    proved
        Whether the costs are bounds, or what was found.
    title
        What the sentence is: a guarantee under its assumptions, or a prediction.
    """

    sentence: str
    bound: float | None
    shifts: tuple[float, ...] = ()
    costs: tuple[float, ...] = ()
    of_what: str = ""
    why_above: str = ""
    proved: bool = True
    title: str = "What is guaranteed"


# By column, its share of the transport, the largest first.
Shares = tuple[tuple[str, float], ...]


def robust_part(model: Any) -> RobustEstimator:
    """Return the robust model inside of a prepared one."""
    robust: RobustEstimator = model.model_ if isinstance(model, PreparedPolicy) else model
    return robust


def promise_of(model: Any, rows: ReportRows, origin: Origin) -> Promise:
    """Return what is stated about new rows."""
    robust = robust_part(model)
    if decides(robust):
        guarantee = origin.guarantee
        if guarantee is None:
            try:
                guarantee = guarantee_of(robust, SHIFTS)
            except InvalidInputError:
                return Promise(
                    "Nothing is stated about new rows: a model from a file does not hold the rows of "
                    "its fit. Report on the model as it was fitted, or fit it with surefoot fit.", None,
                )  # fmt: skip
        return _of_guarantee(guarantee)
    return _of_certificate(model, robust, rows)


def _of_guarantee(given: Guarantee) -> Promise:
    shift = SHIFT if SHIFT in given.shifted else next(iter(given.shifted), SHIFT)
    return Promise(
        given.sentence(shift), given.bound, tuple(given.shifted), tuple(given.shifted.values()),
        "shift of outcomes, in standard deviations", BLOCKS if given.blocks else DRAWS,
        title="What is to be expected" if given.blocks else "What is guaranteed",
    )  # fmt: skip


def _of_certificate(model: Any, robust: RobustEstimator, rows: ReportRows) -> Promise:
    """Return what a certificate proves: a worst case around the rows learned from."""
    certificate, radius = robust.certificate_, robust.radius_
    shifts, costs = _worst_cases(model, robust, rows)
    label = "shift of contexts, in standard deviations"
    if certificate.kind == "estimate":
        told = f"Nothing is proved: {certificate.message}"
        return Promise(told, None, shifts, costs, label, proved=False)
    if radius == 0.0:
        told = (
            "Nothing is proved about new rows: at radius 0 the policy is the best for the rows learned "
            "from, and takes new ones to be the same."
        )
        return Promise(told, None, shifts, costs, label)
    wasserstein = isinstance(robust.problem_.ball, WassersteinBall)
    unit = " standard deviations of the columns" if wasserstein else f" ({robust.problem_.ball!r})"
    told = (
        f"As long as the data stay within radius {radius:.3g}{unit} of the rows learned from, the "
        f"expected cost is at most {certificate.upper:.4g}. That is proved; that new rows stay as near "
        "is an assumption."
    )
    return Promise(told, certificate.upper, shifts, costs, label, (
        f"The bound is for data within radius {radius:.3g} of the rows learned from, and those judged "
        "here are farther away: a larger radius prepares for more."
    ))  # fmt: skip


def _worst_cases(
    model: Any, robust: RobustEstimator, rows: ReportRows
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return worst cases of the policy as it stands around the rows, at several radii."""
    if not isinstance(robust.problem_.ball, WassersteinBall):
        return (), ()
    y = rows.y[:, 0] if robust.single and rows.y.shape[1] == 1 else rows.y
    with warnings.catch_warnings(action="ignore"):
        try:
            X = model.prepare(rows.X) if isinstance(model, PreparedPolicy) else rows.X
            curve = price_of_robustness(robust, X, y, np.array(SHIFTS), refit=False)
        except SurefootError:  # not every set has a worst case at every radius
            return (), ()
    costs = curve.fixed.worst_case
    return (SHIFTS, tuple(costs.tolist())) if np.isfinite(costs).all() else ((), ())


def adversary_of_columns(model: Any, rows: ReportRows) -> tuple[Shares, str]:
    """Return which columns the worst case moves around these rows, and what this means.

    Where nothing is known there are no shares, and the sentence says why.
    """
    robust = robust_part(model)
    if decides(robust):
        return (), (
            "The worst case of the ensemble moves outcomes alone: columns are taken as they come, and "
            "the bound says nothing about errors in them. What such errors would cost is measured "
            "instead."
        )
    y = rows.y[:, 0] if robust.single and rows.y.shape[1] == 1 else rows.y
    with warnings.catch_warnings(action="ignore"):
        try:
            moves = model.augmentation(rows.X, y)
        except SurefootError as error:
            return (), f"What the adversary moves is not known: {error}"
    names = dict(zip(moves.columns, _column_names(moves.columns, rows), strict=True))
    used = tuple((names[one.name], one.share) for one in moves.most_used(SHOWN_COLUMNS))
    if not used and moves.outcome_share == 0.0:
        return (), "At this radius the adversary moves nothing."
    told = (
        f"Within radius {moves.radius:.3g} the adversary raises the expected cost on these rows from "
        f"{moves.cost_before:.4g} to {moves.worst_case:.4g}; it moves {100 * moves.share_moved:.0f} % "
        "of the rows, along the columns on which decisions lean most."
    )
    return used, told


def _column_names(columns: Sequence[str], rows: ReportRows) -> tuple[str, ...]:
    """Return what the report calls columns: as the user does, or by position."""
    return tuple(columns) if rows.table.named else tuple(f"column {j}" for j in range(len(columns)))
