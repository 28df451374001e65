"""An average of members, which keeps to contexts and decisions like those seen, or follows a level."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.forecasts.extrapolation import level_outside, trust_of_each, trust_of_farthest
from surefoot.forecasts.members import Exponential, LeafQuantile, Level, Spreading
from surefoot.io import register
from surefoot.typing import BoolArray, FloatArray, IntArray
from surefoot.validation import check_array, check_instance, check_number

# Outside what was seen levels are followed as far as others bear witness, though not without end;
# straight lines without a level up to so many ranges.
MOST_RANGES, MOST_RANGES_OF_LINES = 1e6, 0.3

Member = Level | Exponential | Spreading | LeafQuantile


@register
@dataclass(frozen=True, eq=False)
class Trend:
    """What files of earlier versions hold in the place of columns: linear forecasts from parts of rows.

    Where their signs differ nothing was followed, as today; where they agree a model is to be fitted
    anew.
    """

    coefficients: FloatArray
    line: Level
    error: float

    def __post_init__(self) -> None:
        """Refuse what cannot be followed any more."""
        signs = np.sign(self.coefficients)
        if (np.abs(signs.sum(axis=0)) == len(signs)).any():
            raise InvalidInputError(
                "trend must name columns, got that of an earlier version: fit anew."
            )


@register
@dataclass(frozen=True, eq=False)
class SureLine:
    """A linear forecast that hardly errs and decides alone outside what was seen.

    Attributes
    ----------
    level
        What it decides.
    slopes
        What a unit beyond what was seen adds, shape (columns,): nothing in columns of two levels.
    """

    level: Level
    slopes: FloatArray

    def __post_init__(self) -> None:
        """Check that the parts fit."""
        check_instance("level", self.level, Level, "a Level")
        check_array("slopes", self.slopes, self.level.forecast.theta.shape)


@register
@dataclass(frozen=True, eq=False)
class Stack:
    """Decisions of one product: the weighted average of members.

    Attributes
    ----------
    members, weights
        Functions of contexts, and their shares.
    least, most
        Of each column: what was seen.
    margin
        Contexts further outside than this share of the range seen are taken as the nearest inside.
    far_margin
        Contexts further outside than this share are called far.
    lower, upper
        Of decisions inside.
    trend
        Columns that are followed outside, the outcome's own past. Where there are none linear forecasts
        go on for a while; None follows nothing. A lone far number may be an error and is taken as the
        nearest inside.
    shift
        What recent errors add to every decision.
    along
        How much each column changes with the level of the past; None is one for the past alone.
    lines
        For how many ranges below and above linear forecasts are known to go on in each column, shape
        (2, columns), zero where they are not; None is zero everywhere.
    line
        What decides alone outside what was seen, in the place of all that is followed there otherwise;
        None is none. Far numbers may be errors here, too, one by one.
    """

    members: tuple[Member, ...]
    weights: FloatArray
    least: FloatArray
    most: FloatArray
    margin: float
    far_margin: float
    lower: float
    upper: float
    trend: IntArray | None
    shift: float = 0.0
    along: FloatArray | None = None
    lines: FloatArray | None = None
    line: SureLine | None = None

    def __post_init__(self) -> None:
        """Check that the parts fit."""
        for member in self.members:
            check_instance("members", member, Member, "a member of an ensemble")
            if member.n_columns != len(self.least):
                raise InvalidInputError(
                    f"members must read {len(self.least)} columns, got {member.n_columns}."
                )
        check_array("weights", self.weights, (len(self.members),))
        for name in ("least", "most"):
            check_array(name, getattr(self, name), (len(self.least),))
        trend: Any = self.trend
        if isinstance(trend, Trend):
            object.__setattr__(self, "trend", None)
        if self.trend is not None:
            check_array("trend", self.trend, (len(self.trend),), int)
            if not np.isin(self.trend, np.arange(len(self.least))).all():
                raise InvalidInputError(f"trend must name columns, got {self.trend}.")
        if self.along is not None:
            check_array("along", self.along, self.least.shape)
        if self.lines is not None:
            check_array("lines", self.lines, (2, len(self.least)))
        if self.line is not None:
            check_instance("line", self.line, SureLine, "a SureLine")
            check_array("line", self.line.slopes, self.least.shape)
        for name in ("margin", "far_margin"):
            check_number(name, getattr(self, name), at_least=0)
        for name in ("lower", "upper", "shift"):
            check_number(name, getattr(self, name))
        if not (self.least <= self.most).all() or self.lower > self.upper:
            raise InvalidInputError("least and lower must be below most and upper, got others.")

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Return the decision of each row, shape (rows,)."""
        decided = self._inside(contexts)
        if self.line is not None:
            out = self.outside(contexts)
            decided[out] = self._on_line(self.line, contexts[out])
        elif self.trend is not None:
            if len(self.trend):
                self._follow(contexts, self.trend, decided)
            ranges = np.maximum(self._known, 0.0 if len(self.trend) else MOST_RANGES_OF_LINES)
            if ranges.any():
                decided += self._beyond(contexts, ranges) @ self.slopes
        return np.asarray(np.maximum(decided + self.shift, self.lowest))

    def _inside(self, contexts: FloatArray) -> FloatArray:
        """Return decisions at the nearest contexts inside."""
        inside = self._cut(contexts, self.margin)
        members = np.column_stack([member(inside) for member in self.members])
        return np.asarray(np.clip(members, self.lower, self.upper) @ self.weights)

    def _on_line(self, line: SureLine, contexts: FloatArray) -> FloatArray:
        """Return what a line decides, as far outside as each number is believed."""
        inside = self._cut(contexts, self.margin)
        past = np.zeros(0, dtype=np.int64) if self.trend is None else self.trend
        trusted = trust_of_each(self._outside(contexts) / self._far_from(contexts), past)
        beyond = trusted * (self._cut(contexts, MOST_RANGES) - inside)
        return np.asarray(line.level(inside) + beyond @ line.slopes)

    @property
    def slopes(self) -> FloatArray:
        """What decisions change with each column by the linear parts of forecasts, shape (columns,)."""
        if self.line is not None:
            return self.line.slopes
        slopes, total = np.zeros(len(self.least)), 0.0
        for weight, member in zip(self.weights, self.members, strict=True):
            if isinstance(member, Level | Spreading):
                slopes += weight * member.forecast.theta
                total += float(weight)
        # Where lines are known to go on, members without them have no say.
        return np.where(self._known.any(axis=0), slopes / (total or 1.0), slopes)

    @property
    def _known(self) -> FloatArray:
        """For how many ranges below and above lines are known to go on, shape (2, columns)."""
        return np.zeros((2, len(self.least))) if self.lines is None else self.lines

    def _beyond(self, contexts: FloatArray, most_ranges: float | FloatArray) -> FloatArray:
        """Return how far beyond the nearest contexts inside they lie, as far as that is believed."""
        most = self._cut(contexts, np.maximum(most_ranges, self.margin))
        moves = most - self._cut(contexts, self.margin)
        return moves * trust_of_farthest(self._outside(contexts) / self._far_from(contexts))

    def _far_from(self, contexts: FloatArray) -> FloatArray:
        """Return from how many ranges outside on each number may be an error.

        Where lines are known to go on, only what lies beyond them may be one.
        """
        below, above = self._known
        return np.asarray(np.maximum(np.where(contexts < self.least, below, above), self.far_margin))

    def _follow(self, contexts: FloatArray, past: IntArray, decided: FloatArray) -> None:
        """Take those decisions whose own past lies outside to its level."""
        believed = self._cut(contexts, self.margin) + self._beyond(contexts, MOST_RANGES)
        along = self.along
        if along is None:
            along = np.isin(np.arange(len(self.least)), past).astype(float)
        out, followed, _ = self.at_level(believed, past, along, self.least[past], self.most[past])
        decided[out] = followed

    def at_level(
        self,
        contexts: FloatArray,
        past: IntArray,
        along: FloatArray,
        least: FloatArray,
        most: FloatArray,
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Return which rows have their past outside, and decisions for them at its level and inside.

        Parameters
        ----------
        contexts
            Shape (rows, columns).
        past
            Columns of the own past.
        along
            How much each column changes with the level of the past.
        least, most
            Of each column of the past, what counts as inside.
        """
        move, factor = level_outside(contexts[:, past], least, most)
        out = move != 0.0
        move, factor, contexts = move[out], factor[out], contexts[out]
        if not out.any():
            return out, move, move
        nearest = self._inside(contexts - move[:, None] * along)
        followed = nearest + move
        if self.lower >= 0.0:  # numbers of both signs have no factor between them
            level = contexts[:, past].mean(axis=1)
            stretched = contexts - (level - level / factor)[:, None] * along
            stretched[:, past] = contexts[:, past] / factor[:, None]
            followed = 0.5 * (followed + factor * self._inside(stretched))
        return out, followed, nearest

    @property
    def lowest(self) -> float:
        """What decisions are at least: where outcomes were never negative, decisions are not."""
        return 0.0 if self.lower >= 0.0 else -np.inf

    def _cut(self, contexts: FloatArray, margin: float | FloatArray) -> FloatArray:
        """Return contexts cut to so many ranges outside what was seen, below and above or both."""
        below, above = np.broadcast_to(margin, (2, len(self.least))) * (self.most - self.least)
        return np.clip(contexts, self.least - below, self.most + above)

    def outside(self, contexts: FloatArray) -> BoolArray:
        """Return which rows have a number that is cut."""
        return np.asarray((self._outside(contexts) > self.margin).any(axis=1))

    def far(self, contexts: FloatArray) -> BoolArray:
        """Return which numbers are far outside, shape of the contexts; not of constant columns."""
        return self._outside(contexts) > self.far_margin

    def _outside(self, contexts: FloatArray) -> FloatArray:
        """Return how many ranges numbers lie outside what was seen; constant columns have none."""
        size = np.where(self.least < self.most, self.most - self.least, np.inf)
        return np.maximum(np.maximum(self.least - contexts, contexts - self.most), 0.0) / size
