"""The Wasserstein ball: which distributions the policy must withstand."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.sets import Box
from surefoot.typing import BoolArray
from surefoot.validation import check_choice, check_flag, check_instance, check_number

# Ways to have the radius chosen from data; ``estimators.radius_rules`` says what each one means.
RADIUS_RULES = ("auto", "paper", "profile")


def _columns(frozen: Any) -> tuple[str | int, ...]:
    """Names and positions as plain text and integers; anything else is left to ``frozen_mask``."""
    if isinstance(frozen, str):
        raise InvalidInputError(
            f"frozen must be a sequence of columns such as ({frozen!r},), got the text {frozen!r}."
        )
    if not isinstance(frozen, Iterable):
        raise InvalidTypeError(
            f"frozen must be a sequence of columns such as (0, 'holiday'), got {frozen!r}."
        )
    # NumPy's own integers and text would print as np.int64(0), and no longer read back.
    return tuple(column.item() if isinstance(column, np.generic) else column for column in frozen)


@dataclass(frozen=True)
class WassersteinBall:
    r"""All distributions P with W_p(P, Q) <= radius.

    Moving (x, y) to (x', y') costs

    .. math:: d_1 = \|x' - x\|_2 + \kappa |y' - y|, \qquad
              d_2 = \|x' - x\|_2^2 + \kappa |y' - y|^2

    and the budget is radius^p: the radius is always a distance.

    With several products each product faces an adversary of its own with this radius, so the
    worst case of the total is the sum of the products' worst cases.

    Parameters
    ----------
    radius
        A number >= 0, or the name of a rule by which an estimator chooses it: "auto" is
        cross-validation, "profile" a quantile of the score at the best policy (95 % coverage,
        shrinking like 1/sqrt(rows)), "paper" the paper's Corollary, which does not hold.
    order
        p, 1 or 2.
    outcome_cost
        kappa > 0, the price of moving the outcome by one unit. Infinite: only contexts move.
    support
        A ``Box`` that moved samples may not leave; None is all of space.
    frozen
        Columns (names or positions) that never move: categories, calendar flags.
    scale
        True: distances are measured in standard deviations of each column, so that one radius
        means the same for every column. False: in the user's own units.

    Examples
    --------
    >>> WassersteinBall(0.3)
    WassersteinBall(radius=0.3, order=2, outcome_cost=inf, support=None, frozen=(), scale=True)
    >>> WassersteinBall(-1.0)
    Traceback (most recent call last):
    surefoot.exceptions.InvalidInputError: radius must be >= 0, got -1.0.
    """

    radius: float | str
    order: int = 2
    outcome_cost: float = math.inf
    support: Box | None = None
    frozen: Sequence[str | int] = ()
    scale: bool = True

    def __post_init__(self) -> None:
        """Check every option by name."""
        if isinstance(self.radius, str):
            if self.radius not in RADIUS_RULES:
                raise InvalidInputError(
                    f"radius must be a number >= 0, 'auto', 'paper' or 'profile', got {self.radius!r}."
                )
        else:
            object.__setattr__(self, "radius", check_number("radius", self.radius, at_least=0))
        object.__setattr__(self, "order", int(check_choice("order", self.order, (1, 2))))
        object.__setattr__(
            self,
            "outcome_cost",
            check_number("outcome_cost", self.outcome_cost, above=0, finite=False),
        )
        if self.support is not None:
            check_instance("support", self.support, Box, "a Box or None")
        object.__setattr__(self, "frozen", _columns(self.frozen))
        object.__setattr__(self, "scale", check_flag("scale", self.scale))

    def frozen_mask(self, n_columns: int, names: Sequence[str] | None = None) -> BoolArray:
        """Return which columns never move, resolving names and positions."""
        mask = np.zeros(n_columns, dtype=bool)
        for column in self.frozen:
            if isinstance(column, str):
                if names is None:
                    raise InvalidInputError(
                        f"frozen names the column {column!r}, but X has no column names: "
                        "pass a data frame, or positions."
                    )
                if column not in names:
                    raise InvalidInputError(
                        f"frozen must name columns of X ({', '.join(names)}), got {column!r}."
                    )
                mask |= np.array([name == column for name in names])
            elif type(column) is int and -n_columns <= column < n_columns:  # True is no position
                mask[column] = True
            else:
                raise InvalidInputError(
                    f"frozen must hold column names or positions below {n_columns}, got {column!r}."
                )
        return mask
