"""What a decision costs once the outcome is known."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from surefoot.costs.pieces import Pieces
from surefoot.costs.quantiles import outcome_spread
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.sets import DecisionSet
from surefoot.typing import ArrayNamespace, FloatArray, IntArray


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


def check_arrays(decisions: Any, outcomes: Any) -> None:
    """Refuse what is no array, of NumPy or of JAX."""
    for name, given in (("decisions", decisions), ("outcomes", outcomes)):
        if not hasattr(given, "shape"):
            raise InvalidTypeError(f"{name} must be an array (rows, {name}), got {given!r}.")


def check_one_shape(decisions: FloatArray, outcomes: FloatArray) -> None:
    """Refuse shapes that differ: a matrix minus a vector would broadcast to every pair of rows."""
    check_arrays(decisions, outcomes)
    if decisions.shape != outcomes.shape:
        raise InvalidInputError(
            "decisions and outcomes must have one shape, (rows, products), "
            f"got {decisions.shape} and {outcomes.shape}."
        )


def check_same_rows(decisions: FloatArray, outcomes: FloatArray) -> None:
    """Refuse rows that differ in number, of a cost with decisions of another kind than outcomes."""
    check_arrays(decisions, outcomes)
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
        check_arrays(decisions, outcomes)
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
