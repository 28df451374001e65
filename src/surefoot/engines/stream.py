"""What both engines offer a stream: learn rows, decide, start afresh, be saved."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from surefoot.ambiguity import AmbiguitySet, WassersteinBall
from surefoot.costs import Cost
from surefoot.engines.step_rules import DecayingRadius, StepRule
from surefoot.engines.stream_kernels import COLUMN, CUT_SPREADS, RULES
from surefoot.exceptions import InvalidInputError, UnsupportedProblemError
from surefoot.nominals import Empirical
from surefoot.nominals.empirical import column_spread
from surefoot.policies import Policy
from surefoot.problem import Problem
from surefoot.typing import BoolArray, FloatArray

# Learning starts with so many samples; before that, decisions are the best constant one.
START_ROWS = 16
# After a restart, steps are as long as after this many rows.
RESTART_ROWS = 30.0
# The median of absolute deviations of a normal distribution is this share of its standard deviation.
MAD_SHARE = 0.6745


def why_no_stream(ball: AmbiguitySet) -> str | None:
    """Return why a stream cannot follow an ambiguity set, or None."""
    if not isinstance(ball, WassersteinBall):
        return f"A stream needs a WassersteinBall, got {type(ball).__name__}: call fit."
    if not isinstance(ball.scale, bool):
        return (
            "A stream measures moves in running standard deviations (scale=True) or in units of the "
            "columns (scale=False), got numbers: divide the columns by them."
        )
    return None


@dataclass(frozen=True)
class StreamOptions:
    """What a stream was told before its first row.

    ``window`` is how many rows to look back, zero for all.
    """

    cost: Cost
    policy: Policy
    ball: WassersteinBall
    radius: DecayingRadius | None
    step: StepRule
    window: float
    random_state: int

    def __post_init__(self) -> None:
        """Refuse what no stream can follow."""
        reason = why_no_stream(self.ball)
        if reason is not None:
            raise UnsupportedProblemError(reason)

    def problem(self, features: Any, outcomes: Any, offsets: Any = None) -> Problem:
        """Return the question on some rows of features; which columns move is settled elsewhere."""
        policy, ball = replace(self.policy, features=None), replace(self.ball, frozen=())
        return Problem(self.cost, policy, Empirical(features, outcomes, offsets=offsets), ball)

    def without_features(self) -> "StreamOptions":
        """Return the options of a stream that is handed features."""
        return replace(self, policy=replace(self.policy, features=None))

    def radius_at(self, time: float) -> float:
        """Return the radius at row ``time``."""
        return self.ball.size if self.radius is None else self.radius.at(self.ball.size, time)

    def rules(self) -> Any:
        """Return the rules as the kernels read them."""
        rules = np.zeros(1, RULES)
        rules["radius"] = self.ball.size
        rules["radius_rows"] = 0.0 if self.radius is None else self.radius.rows
        rules["scaled"] = float(bool(self.ball.scale))
        rules["step_rule"], rules["step_size"] = self.step.coded()
        rules["averaging"], rules["window"] = float(self.step.averages), self.window
        support = self.ball.support
        rules["low_y"], rules["high_y"] = (-np.inf, np.inf) if support is None else support.outcome
        return rules


class Stream(ABC):
    """A policy that learns row by row; NaN in a row stands for a missing entry.

    ``offsets`` are what the policy's fixed part says of each row; None asks the policy.
    """

    options: StreamOptions
    widens: ClassVar[bool] = False
    """Whether new columns can be taken after the start."""

    @property
    @abstractmethod
    def block(self) -> int:
        """How many rows are taken between two looks at drift; the answer does not depend on it."""

    @property
    @abstractmethod
    def columns(self) -> Any:
        """What is known of each column of the contexts, as records of ``COLUMN``."""

    @property
    def feature_columns(self) -> Any:
        """What is known of each column that has a parameter: of features, if the policy has any."""
        return self.columns

    @abstractmethod
    def learn(
        self, rows: FloatArray, outcomes: FloatArray, offsets: FloatArray | None = None
    ) -> FloatArray:
        """Take one update for each row, in order; outcomes have shape (rows, products).

        Return the decision for each row before it was learned, shape (rows, decisions).
        """

    @abstractmethod
    def decide(self, rows: FloatArray, offsets: FloatArray | None = None) -> FloatArray:
        """Return decisions, shape (rows, decisions)."""

    @abstractmethod
    def parameters(self) -> Any:
        """Return the policy that decides, in the user's units."""

    def realised(self, decisions: FloatArray, outcomes: FloatArray) -> FloatArray:
        """Return what decisions have cost, shape (rows,)."""
        return self.options.cost.evaluate(decisions, outcomes)

    @abstractmethod
    def restart(self) -> None:
        """Take large steps again."""

    def widen(self, columns: Any) -> None:
        """Add columns, given as records of ``COLUMN``; parameters start at zero."""
        raise AssertionError("only a stream that widens is asked to")

    @abstractmethod
    def put(self, arrays: Mapping[str, FloatArray]) -> None:
        """Go back to what ``arrays`` describes, taken from this stream with as many columns."""

    @abstractmethod
    def arrays(self) -> dict[str, FloatArray]:
        """Return all that the next update needs."""


def column_records(
    rows: FloatArray,
    frozen: BoolArray,
    bounds: tuple[FloatArray, FloatArray],
    zeros: FloatArray | None = None,
    *,
    cut: bool = True,
) -> Any:
    """Return what is known of columns from the first rows of a stream.

    A value far from its column's median is taken as the nearest that is not, so that a slip of the pen
    among the first rows does not set the scale of all that follow.

    Parameters
    ----------
    rows
        Shape (rows, columns), NaN where nothing was seen.
    frozen, bounds
        Which columns never move, and the support.
    zeros
        Rows before these in which the column was zero: a category that had not occurred.
    cut
        Whether far values are cut; features need not be, whose contexts were.
    """
    zeros = np.zeros(rows.shape[1]) if zeros is None else zeros
    seen = ~np.isnan(rows)
    kept = without_outliers(rows) if cut else rows
    count = zeros + seen.sum(axis=0)
    mean = np.where(seen, kept, 0.0).sum(axis=0) / np.maximum(count, 1.0)
    away = np.where(seen, kept - mean, 0.0)
    records = np.zeros(rows.shape[1], COLUMN)
    records["frozen"], records["lower"], records["upper"] = frozen, *bounds
    records["count"], records["mean"] = count, mean
    records["deviations"] = (away**2).sum(axis=0) + zeros * mean**2
    records["low"] = kept.min(axis=0, initial=np.inf, where=seen)
    records["high"] = kept.max(axis=0, initial=-np.inf, where=seen)
    records["low"][zeros > 0] = np.minimum(records["low"], 0.0)[zeros > 0]
    records["high"][zeros > 0] = np.maximum(records["high"], 0.0)[zeros > 0]
    records["cut"] = (seen & (kept != rows)).sum(axis=0)
    return records


def check_columns(name: str, columns: Any, count: int) -> None:
    """Refuse what is not ``count`` records of columns with numbers that make sense."""
    if not isinstance(columns, np.ndarray) or columns.dtype != COLUMN or columns.shape != (count,):
        raise InvalidInputError(f"{name} of the state must hold {count} columns, got others.")
    finite = all(np.isfinite(columns[key]).all() for key in ("mean", "deviations", "count", "cut"))
    whole = not any(np.isnan(columns[key]).any() for key in COLUMN.fields or ())
    if not (finite and whole) or min(columns[key].min() for key in ("count", "deviations")) < 0.0:
        raise InvalidInputError(f"{name} of the state must hold counts and spreads, got others.")


def without_outliers(values: FloatArray) -> FloatArray:
    """Return values with those far from their column's median taken as the nearest that are not.

    The yardstick is the median of absolute deviations; where more than half of the values are equal
    there is none, and all stay. NaN stands for nothing and stays.

    >>> without_outliers(np.array([1.0, 2.0, 3.0, 4.0, 999.0]))
    array([ 1.        ,  2.        ,  3.        ,  4.        , 11.89547813])
    """
    middle = _medians(values)
    spread = _medians(np.abs(values - middle)) / MAD_SHARE
    far = np.where(spread > 0.0, CUT_SPREADS * spread, np.inf)
    return np.clip(values, middle - far, middle + far)


def _medians(values: FloatArray) -> Any:
    """Return the median of each column without its gaps; of a column of gaps it is one."""
    if not len(values):
        return np.full(values.shape[1:], np.nan)
    count = (~np.isnan(values)).sum(axis=0)
    in_order = np.sort(values, axis=0)  # gaps come last
    places = np.maximum(count - 1, 0) // 2, count // 2
    low, high = (np.take_along_axis(in_order, np.expand_dims(k, 0), axis=0)[0] for k in places)
    return (low + high) / 2.0


def fitted_records(
    features: FloatArray,
    weights: FloatArray,
    count: float,
    frozen: BoolArray,
    bounds: tuple[FloatArray, FloatArray],
    *,
    cut: bool = True,
) -> Any:
    """Return what a fit on rows knew of each column; the rows count as ``count``."""
    records = np.zeros(features.shape[1], COLUMN)
    records["mean"], records["count"] = weights @ features, count
    records["deviations"] = column_spread(features, weights) ** 2 * count
    records["low"], records["high"] = features.min(axis=0), features.max(axis=0)
    records["frozen"], records["lower"], records["upper"] = frozen, *bounds
    records["uncut"] = float(not cut)
    return records


def running_ball(ball: WassersteinBall, columns: Any) -> WassersteinBall:
    """Return a ball in standard deviations in those that a stream has found so far."""
    spread = np.sqrt(columns["deviations"] / np.maximum(columns["count"], 1.0))
    return ball.fitted(np.where(spread > 0.0, spread, 1.0), (columns["frozen"] == 0.0) & (spread > 0.0))


def support_of(ball: WassersteinBall, n_columns: int) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of a ball's support, infinite where it has none."""
    if ball.support is None:
        return np.full(n_columns, -np.inf), np.full(n_columns, np.inf)
    return ball.support.arrays(n_columns)
