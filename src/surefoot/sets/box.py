"""A box: the support that an adversary may not leave, or limits of each decision."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError
from surefoot.io import register
from surefoot.sets.base import DecisionSet
from surefoot.typing import ArrayNamespace, FloatArray, IntArray
from surefoot.validation import real_array


def _bounds(name: str, value: Any) -> float | tuple[float, ...]:
    array = real_array(name, value)
    if array.ndim > 1 or array.size == 0:
        raise InvalidInputError(
            f"{name} must be a number or one number per column, got shape {array.shape}."
        )
    if np.isnan(array).any():
        raise InvalidInputError(f"{name} must not be NaN, got {value!r}.")
    return float(array) if array.ndim == 0 else tuple(array.tolist())


@register
@dataclass(frozen=True)
class Box(DecisionSet):
    """All points between ``lower`` and ``upper``, column by column, in the user's units.

    As ``support`` of a ball it holds moved contexts (and outcomes); as ``decisions`` of a policy it
    cuts each decision to its limits.

    Parameters
    ----------
    lower, upper
        One number, or one for each column (or decision); infinities are allowed.
    outcome
        Bounds (lower, upper) on the outcome, for balls in which outcomes move too.

    Examples
    --------
    >>> Box(0, (1, 2)).arrays(2)
    (array([0., 0.]), array([1., 2.]))
    """

    lower: float | tuple[float, ...]
    upper: float | tuple[float, ...]
    outcome: tuple[float, float] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        """Check that the box is not empty."""
        object.__setattr__(self, "lower", _bounds("lower", self.lower))
        object.__setattr__(self, "upper", _bounds("upper", self.upper))
        outcome = _bounds("outcome", self.outcome)
        if not isinstance(outcome, tuple) or len(outcome) != 2:
            raise InvalidInputError(f"outcome must be (lower, upper), got {self.outcome!r}.")
        object.__setattr__(self, "outcome", outcome)
        sizes = {len(b) for b in (self.lower, self.upper) if isinstance(b, tuple)}
        if len(sizes) > 1:
            raise InvalidInputError(f"lower and upper must have the same length, got {sorted(sizes)}.")
        empty = (np.asarray(self.lower) > np.asarray(self.upper)).any() or outcome[0] > outcome[1]
        if empty:
            raise InvalidInputError(f"lower must be <= upper in every column, got {self!r}.")

    def why_not(self, n_decisions: int) -> str | None:
        """Return why the bounds do not fit so many decisions, or None."""
        if self.outcome != (-np.inf, np.inf):
            return f"outcome must be left out of the decisions' Box, got {self.outcome}"
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            if isinstance(bound, tuple) and len(bound) != n_decisions:
                return (
                    f"{name} of the decisions' Box must be one number or one per decision "
                    f"({n_decisions}), got {len(bound)} numbers"
                )
        return None

    def on_columns(self, kept: IntArray) -> "Box":
        """Return the box on some of the columns."""
        lower, upper = (
            tuple(np.asarray(bound)[kept].tolist()) if isinstance(bound, tuple) else bound
            for bound in (self.lower, self.upper)
        )
        return Box(lower, upper, self.outcome)

    def map_into(self, decisions: FloatArray, xp: ArrayNamespace = np) -> FloatArray:
        """Return decisions cut to the box."""
        lower, upper = xp.asarray(self.lower), xp.asarray(self.upper)
        cut: FloatArray = xp.minimum(xp.maximum(decisions, lower), upper)
        return cut

    def contains(self, decisions: FloatArray, slack: float = 1e-9) -> bool:
        """Whether every decision lies between its bounds."""
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        sizes = [np.where(np.isfinite(bound), np.abs(bound), 0.0) for bound in (lower, upper)]
        room = slack * np.maximum(*sizes)
        with np.errstate(over="ignore"):  # beyond the largest number there is room enough
            return bool(((decisions >= lower - room) & (decisions <= upper + room)).all())

    def farthest(self, directions: FloatArray) -> FloatArray:
        """Return the upper bound where a direction is positive, else the lower one."""
        lower, upper = self.arrays(directions.shape[1])
        return np.where(directions > 0.0, upper, lower)

    def arrays(self, n_columns: int) -> tuple[FloatArray, FloatArray]:
        """Return both bounds with one entry for each column."""
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            if isinstance(bound, tuple) and len(bound) != n_columns:
                raise InvalidInputError(
                    f"{name} must be one number or one per column ({n_columns}), "
                    f"got {len(bound)} numbers."
                )
        lower, upper = (
            np.broadcast_to(np.asarray(b, dtype=np.float64), n_columns).copy()
            for b in (self.lower, self.upper)
        )
        return lower, upper
