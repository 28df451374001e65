"""The lines of a piecewise linear cost."""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from surefoot.costs.quantiles import LEVEL_TOL, weighted_quantile
from surefoot.exceptions import InvalidInputError
from surefoot.typing import ArrayNamespace, FloatArray
from surefoot.validation import check_number, numeric_array


@dataclass(frozen=True)
class Pieces:
    r"""The lines of a convex piecewise linear cost of r = z - y, for one product.

    .. math:: \psi(r) = \max_k (w_k r + v_k)

    A newsvendor has two, -b r and h r: ``Pieces.kinked(up=h, down=b)``.

    Attributes
    ----------
    slopes
        w_k, increasing, in units of cost per unit of r; the first is negative, the last positive.
    intercepts
        v_k. Every line must be the largest somewhere.
    smoothing
        Half-width of the parabola that rounds the kink; only for two lines that meet at zero.

    Examples
    --------
    >>> Pieces((-3.0, -1.0, 0.5), (-4.0, 0.0, 0.0)).evaluate(np.array([-4.0, -1.0, 2.0]))
    array([8., 1., 1.])
    """

    slopes: tuple[float, ...]
    intercepts: tuple[float, ...]
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        """Check that the lines are the pieces of a cost that has a minimum."""
        names = ("slopes", "intercepts")
        sizes = [numeric_array(name, getattr(self, name)).shape for name in names]
        if sizes[0] != sizes[1] or len(sizes[0]) != 1 or sizes[0][0] < 2:
            got = " and ".join(str(*size) if len(size) == 1 else f"shape {size}" for size in sizes)
            raise InvalidInputError(
                f"slopes and intercepts must have the same length, at least 2, got {got}."
            )
        check_number("smoothing", self.smoothing, at_least=0)
        ordered = all(a < b for a, b in itertools.pairwise(self.slopes))
        crossing = ordered and self.slopes[0] < 0.0 < self.slopes[-1]
        if not crossing or (np.diff(self.kinks) <= 0.0).any():
            raise InvalidInputError(
                "slopes must increase from below to above zero with every line the largest somewhere, "
                f"got slopes {self.slopes} and intercepts {self.intercepts}."
            )
        if self.smoothing > 0.0 and not self.two:
            raise InvalidInputError(
                f"smoothing must be 0 unless two lines meet at zero, got {self.smoothing}."
            )

    @classmethod
    def kinked(cls, up: float, down: float, smoothing: float = 0.0) -> "Pieces":
        """Return max(up r, -down r), rounded within ``smoothing``."""
        return _checked_once((-down, up), (0.0, 0.0), smoothing)

    @property
    def up(self) -> float:
        """The steepest slope upwards, of the last line."""
        return self.slopes[-1]

    @property
    def down(self) -> float:
        """The steepest slope downwards, of the first line, as a positive number."""
        return -self.slopes[0]

    @property
    def two(self) -> bool:
        """Whether there are just two lines, which meet at zero."""
        return len(self.slopes) == 2 and not any(self.intercepts)

    def levels_at(self, slopes: FloatArray) -> FloatArray:
        r"""Return v of the line w r + v that touches the cost from below, for each slope w.

        Of the parabola that rounds a kink it is :math:`\delta (h - w)(b + w) / (b + h)`.

        >>> Pieces.kinked(up=1.0, down=3.0, smoothing=2.0).levels_at(np.array([-3.0, -1.0, 1.0]))
        array([0., 2., 0.])
        """
        if self.smoothing == 0.0:
            return np.interp(slopes, self.slopes, self.intercepts)
        return self.smoothing * (self.up - slopes) * (self.down + slopes) / (self.up + self.down)

    @cached_property
    def kinks(self) -> FloatArray:
        """Where neighbouring lines meet, shape (lines - 1,)."""
        return np.asarray(-np.diff(self.intercepts) / np.diff(self.slopes))

    @cached_property
    def least(self) -> float:
        """The smallest cost there is."""
        if self.smoothing > 0.0:
            return self.smoothing * self.up * self.down / (self.up + self.down)
        return float(self.evaluate(self.kinks).min())

    @property
    def steepest(self) -> float:
        """The Lipschitz constant G, the largest absolute slope."""
        return max(self.up, self.down)

    @property
    def geometric(self) -> float:
        """The slope constant of order 2 at zero mean slope, sqrt(up down)."""
        return math.sqrt(self.up * self.down)

    @property
    def quantile(self) -> float:
        """The fraction of outcomes that the best constant decision covers, of two lines."""
        return self.down / (self.up + self.down)

    def scaled(self, cost: float, length: float) -> "Pieces":
        """Return the pieces with costs in units of ``cost * length`` and r in units of ``length``."""
        slopes = tuple(w / cost for w in self.slopes)
        levels = tuple(v / (cost * length) for v in self.intercepts)
        return _checked_once(slopes, levels, self.smoothing / length)

    def best_constant(self, outcomes: FloatArray, weights: FloatArray) -> float:
        """Return the smallest decision of least mean cost; for two lines it is a quantile."""
        if self.two:
            return weighted_quantile(outcomes, weights, self.quantile)
        places = (outcomes[:, None] + self.kinks).ravel()
        jumps = (weights[:, None] / weights.sum() * np.diff(self.slopes)).ravel()
        order = np.argsort(places, kind="stable")
        slopes = self.slopes[0] + np.cumsum(jumps[order])
        return float(places[order[int(np.argmax(slopes >= -LEVEL_TOL * self.steepest))]])

    def slope_at(self, residuals: FloatArray) -> FloatArray:
        """Return the slope of the line at each residual, at a kink the upper one."""
        return np.asarray(self.slopes)[np.searchsorted(self.kinks, residuals, side="right")]

    def derivative_at(self, residuals: FloatArray) -> FloatArray:
        """Return the derivative of psi, of a rounded kink, too; at a sharp one the upper slope."""
        if self.smoothing == 0.0:
            return self.slope_at(residuals)
        curvature = (self.up + self.down) / (2.0 * self.smoothing)
        return np.clip(0.5 * (self.up - self.down) + curvature * residuals, -self.down, self.up)

    def evaluate(self, residuals: FloatArray, xp: ArrayNamespace = np) -> FloatArray:
        """Return psi(r), elementwise."""
        if not self.two:
            lines = [w * residuals + v for w, v in zip(self.slopes, self.intercepts, strict=True)]
            # From the last line down, so that of two equal ones the steeper has the derivative.
            most = lines[-1]
            for line in lines[-2::-1]:
                most = xp.where(most >= line, most, line)
            return most
        # Written with >= so that the derivative at the kink is the upper slope in every engine.
        kinked: FloatArray = xp.where(residuals >= 0.0, self.up * residuals, -self.down * residuals)
        if self.smoothing == 0.0:
            return kinked
        # Equation 22 of the paper, in r = z - y: a parabola that meets both lines with their slopes.
        curvature = (self.up + self.down) / (2.0 * self.smoothing)
        rounded = (
            0.5 * curvature * residuals**2
            + 0.5 * (self.up - self.down) * residuals
            + 0.25 * (self.up + self.down) * self.smoothing
        )
        smoothed: FloatArray = xp.where(xp.abs(residuals) < self.smoothing, rounded, kinked)
        return smoothed


@lru_cache(maxsize=1_000, typed=True)
def _checked_once(slopes: tuple[float, ...], intercepts: tuple[float, ...], smoothing: float) -> Pieces:
    """Return pieces, which are asked for at every turn, in the same few units."""
    return Pieces(slopes, intercepts, smoothing)
