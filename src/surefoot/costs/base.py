"""What a decision costs once the outcome is known."""

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from surefoot.costs.quantiles import LEVEL_TOL, outcome_spread, weighted_quantile
from surefoot.exceptions import InvalidInputError
from surefoot.sets import DecisionSet
from surefoot.typing import ArrayNamespace, FloatArray, IntArray
from surefoot.validation import check_number, numeric_array


class Cost(ABC):
    """A cost c(z, y) of decision z under outcome y.

    Formulas are written against an array namespace ``xp`` (``numpy`` or ``jax.numpy``), so one
    definition serves the readable twin, the compiled engines and the certificate.
    """

    @abstractmethod
    def evaluate(
        self, decisions: FloatArray, outcomes: FloatArray, xp: ArrayNamespace = np
    ) -> FloatArray:
        """Return c(z, y) per row: (..., decisions) and (..., outcomes) give an array of shape (...)."""

    def mean(self, decisions: FloatArray, outcomes: FloatArray, weights: FloatArray) -> float:
        """Return the weighted mean cost of decisions (rows, decisions); weights sum to one."""
        return float(weights @ self.evaluate(decisions, outcomes))

    def n_decisions(self, n_outcomes: int) -> int:
        """How many numbers a decision has when an outcome has so many."""
        return n_outcomes

    def typical(self, outcomes: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a reasonable constant decision and the unit in which decisions vary.

        Learning starts at the first and measures its steps in the second; both have shape
        (decisions,). The default is the mean and the standard deviation of the outcomes, or zero
        and one where decisions are not of the outcomes' kind.
        """
        count = self.n_decisions(outcomes.shape[1])
        if count != outcomes.shape[1]:
            return np.zeros(count), np.ones(count)
        return weights @ outcomes, outcome_spread(outcomes, weights)

    def growth(self) -> float:
        """Return the power with which the cost can grow in the decision, infinite if unknown."""
        return np.inf

    def curvature(self) -> float:
        """Return a bound on the second derivative in the decision, infinite if there is none."""
        return np.inf

    def curvatures(self, n_decisions: int) -> FloatArray:
        """Return bounds on the second derivatives of a cost that is a sum over decisions, one for each.

        Of another cost, ``curvature`` for each: the second derivative is at most so many times one.
        """
        return np.full(n_decisions, self.curvature())

    def convex(self) -> bool:
        """Whether the cost is known to be convex in the decision (and in variables of its own).

        >>> from surefoot.costs import Pricing, Quadratic
        >>> Quadratic().convex(), Pricing().convex()
        (True, False)
        """
        return False

    def floor(self, n_products: int = 1) -> float:
        """Return a cost that no decision and outcome can undercut, minus infinity if unknown."""
        del n_products
        return -np.inf

    def affine_floor(self, design: FloatArray, outcomes: FloatArray, weights: FloatArray) -> float:
        """Return a mean cost that no affine policy z = design @ theta can undercut on weighted rows.

        It must rest on a proof, not on a solver's word. The default is ``floor``.
        """
        del design, weights
        return self.floor(outcomes.shape[1])

    def limited_floor(
        self, limits: DecisionSet, groups: IntArray, outcomes: FloatArray, weights: FloatArray
    ) -> float:
        """Return a mean cost that no decisions within limits can undercut, one for each group of rows.

        ``groups`` numbers the rows from zero: those with one number share a decision. It must rest on a
        proof, as ``affine_floor`` does. The default is ``floor``.

        >>> from surefoot.costs import MeanCVaR
        >>> from surefoot.sets import Simplex
        >>> returns, months = np.array([[0.1, 0.0], [-0.2, 0.1]]), np.array([0.5, 0.5])
        >>> together, apart = np.array([0, 0]), np.array([0, 1])
        >>> [round(MeanCVaR(1.0, 0.5).limited_floor(Simplex(), groups, returns, months), 3)
        ...  for groups in (together, apart)]
        [-0.05, -0.2]
        """
        del limits, groups, weights
        return self.floor(outcomes.shape[1])

    def why_not(self, n_products: int) -> str | None:
        """Return why this cost cannot be used with so many products, or None if it can."""
        del n_products
        return None

    def why_unlimited(self) -> str | None:
        """Return why decisions must have limits (``decisions=`` of the policy), or None."""
        return None


def check_one_shape(decisions: FloatArray, outcomes: FloatArray) -> None:
    """Refuse shapes that differ: a matrix minus a vector would broadcast to every pair of rows."""
    if decisions.shape != outcomes.shape:
        raise InvalidInputError(
            "decisions and outcomes must have one shape, (rows, products), "
            f"got {decisions.shape} and {outcomes.shape}."
        )


def check_same_rows(decisions: FloatArray, outcomes: FloatArray) -> None:
    """Refuse rows that differ in number, of a cost with decisions of another kind than outcomes."""
    if decisions.ndim == 0 or decisions.shape[:-1] != outcomes.shape[:-1]:
        raise InvalidInputError(
            "decisions and outcomes must have the same rows, (rows, decisions) and (rows, outcomes), "
            f"got {decisions.shape} and {outcomes.shape}."
        )


class AuxiliaryCost(Cost):
    """A cost with variables of its own that are chosen together with the policy: c(z, a, y).

    The value at risk of a portfolio is one. It does not depend on the context.
    """

    @abstractmethod
    def evaluate_at(
        self,
        decisions: FloatArray,
        auxiliary: FloatArray,
        outcomes: FloatArray,
        xp: ArrayNamespace = np,
    ) -> FloatArray:
        """Return c(z, a, y) per row; ``auxiliary`` has shape (variables,)."""

    @abstractmethod
    def best_auxiliary(
        self, decisions: FloatArray, outcomes: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return the variables that minimise the mean cost of given decisions."""

    @abstractmethod
    def typical_auxiliary(
        self, outcomes: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return where the variables start and the unit in which they vary."""

    def evaluate(
        self, decisions: FloatArray, outcomes: FloatArray, xp: ArrayNamespace = np
    ) -> FloatArray:
        """Return the cost of each row with the variables that suit these rows best."""
        rows = math.prod(decisions.shape[:-1])
        best = self.best_auxiliary(
            np.asarray(decisions).reshape(rows, -1),
            np.asarray(outcomes).reshape(rows, -1),
            np.full(rows, 1.0 / rows),
        )
        return self.evaluate_at(decisions, best, outcomes, xp)

    def mean(self, decisions: FloatArray, outcomes: FloatArray, weights: FloatArray) -> float:
        """Return the smallest weighted mean cost over the variables."""
        best = self.best_auxiliary(decisions, outcomes, weights)
        return float(weights @ self.evaluate_at(decisions, best, outcomes))


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


class ConvexPiecewiseCost(Cost):
    """A cost that is a sum over products of convex piecewise linear costs psi_j(z_j - y_j).

    Closed forms and the compiled engine ask for this class, never for a cost by name.
    """

    @abstractmethod
    def pieces(self, n_products: int) -> tuple[Pieces, ...]:
        """Return the lines of each product's cost."""

    def typical(self, outcomes: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the best constant decision of each product and the spread of its outcome."""
        centre = [
            piece.best_constant(outcomes[:, j], weights)
            for j, piece in enumerate(product_lines(self, outcomes.shape[1]))
        ]
        return np.array(centre), outcome_spread(outcomes, weights)

    def growth(self) -> float:
        """Return one: both arms are straight lines."""
        return 1.0

    def convex(self) -> bool:
        """Return True."""
        return True

    def floor(self, n_products: int = 1) -> float:
        """Return the least cost of each product, summed."""
        return sum(piece.least for piece in product_lines(self, n_products))

    def evaluate(
        self, decisions: FloatArray, outcomes: FloatArray, xp: ArrayNamespace = np
    ) -> FloatArray:
        """Return the cost summed over products, one number per row."""
        check_one_shape(decisions, outcomes)
        residuals = decisions - outcomes
        columns = [
            piece.evaluate(residuals[..., j], xp)
            for j, piece in enumerate(product_lines(self, residuals.shape[-1]))
        ]
        return sum(columns[1:], start=columns[0])


def product_lines(cost: ConvexPiecewiseCost, n_products: int) -> tuple[Pieces, ...]:
    """Return the lines of each product, or refuse a cost that has others than were asked for.

    Of a cost that answers for one product alone, all others would cost nothing.
    """
    lines = cost.pieces(n_products)
    each = isinstance(lines, tuple | list) and all(isinstance(one, Pieces) for one in lines)
    if not each or len(lines) != n_products:
        got = f"{len(lines)} for {n_products}" if each else repr(lines)
        name = f"{type(cost).__name__}.pieces(n_products)"
        raise InvalidInputError(f"{name} must return one Pieces for each product, got {got}.")
    return tuple(lines)
