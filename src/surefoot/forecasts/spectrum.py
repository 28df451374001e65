r"""Ridge regression for a whole grid of strengths at once, with honest errors and evidence.

The model is y = t + g(x)'beta + noise with beta ~ N(0, sigma^2 (a I + b 1 1')) and a flat prior on t.
``a`` is how much each coefficient may differ, ``b`` how much they may have in common. One
decomposition of the features serves every (a, b). For each of them:

- the posterior mean of the coefficients (ridge regression with strength 1/a when b = 0);
- the error that each row has when it is left out,
  :math:`e_i = [C^{-1}(y - t)]_i / [C^{-1}]_{ii}` with the constant projected out, exactly as if the
  model had been learned without that row;
- the logarithm of the evidence (restricted likelihood), with the noise variance profiled out.

References
----------
Rasmussen and Williams (2006), sections 2.7 and 5.4; Harville (1974).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from surefoot.forecasts.rows import Rows
from surefoot.typing import FloatArray

# Directions whose squared singular value is a smaller share of the largest carry rounding only.
RANK_TOL = 1e-9


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Features of rows, centred, weighted and decomposed as U S V'.

    Attributes
    ----------
    left, singular, right
        U (n, r), S (r,) and V (features, r).
    outcome
        The centred, weighted outcomes, shape (n,).
    root
        Square roots of the masses.
    left_out
        The mass that is left out with a row: all of it, or one unit.
    count
        How many observations there are.
    shared, common
        S V'u and u: the direction in which coefficients are equal, those of features that have
        something in common.
    """

    left: FloatArray
    singular: FloatArray
    right: FloatArray
    outcome: FloatArray
    root: FloatArray
    left_out: FloatArray
    count: float
    shared: FloatArray
    common: FloatArray

    @classmethod
    def of(cls, features: FloatArray, rows: Rows, common: FloatArray | None = None) -> "Spectrum":
        """Decompose features of shape (n, features) by the smaller of their two Gram matrices.

        ``common`` is one for features whose coefficients may have something in common; None is all.
        """
        root = np.sqrt(rows.masses)
        share = rows.masses / rows.masses.sum()
        centred = (features - share @ features) * root[:, None]
        tall = len(centred) > centred.shape[1]
        gram = centred.T @ centred if tall else centred @ centred.T
        squares, vectors = np.linalg.eigh(gram)
        kept = squares > RANK_TOL * max(float(squares[-1]), 1e-300)
        singular, vectors = np.sqrt(squares[kept]), vectors[:, kept]
        other = (centred if tall else centred.T) @ vectors / singular
        left, right = (other, vectors) if tall else (vectors, other)
        outcome = (rows.outcomes - rows.average) * root
        left_out = np.ones(len(root)) if rows.units else rows.masses
        common = np.ones(features.shape[1]) if common is None else common
        shared = singular * (common @ right)
        return cls(left, singular, right, outcome, root, left_out, rows.count, shared, common)

    def of_outcomes(self, rows: Rows) -> "Spectrum":
        """Return the same features with the outcomes of other rows, alike in contexts and masses."""
        return replace(self, outcome=(rows.outcomes - rows.average) * self.root)

    def evidence(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the logarithm of the evidence of strengths, up to a constant.

        ``a`` has shape (k,), and ``b``, one row for each or one for all of them, shape (k, m) or (m,);
        the answer has shape (k, m).
        """
        projected = self.left.T @ self.outcome
        outside = self.outcome - self.left @ projected
        raised = a[:, None] * self.singular**2
        keep = 1.0 / (1.0 + raised)
        shrunk = keep * self.shared
        overlap = (shrunk @ self.shared)[:, None]
        along = (shrunk @ projected)[:, None]
        square = float(outside @ outside) + (keep @ projected**2)[:, None]
        square = square - b / (1.0 + b * overlap) * along**2
        logs = -0.5 * np.log1p(raised).sum(axis=1)[:, None] - 0.5 * np.log1p(b * overlap)
        return np.asarray(logs - 0.5 * (self.count - 1) * np.log(np.maximum(square, 1e-300)))

    def solve(self, a: FloatArray, b: FloatArray, evidence: FloatArray | None = None) -> "Paths":
        """Return coefficients, honest errors and evidence, if it is not known, of pairs (a_k, b_k)."""
        evidence = self.evidence(a, b[:, None])[:, 0] if evidence is None else evidence
        projected = self.left.T @ self.outcome
        keep = 1.0 / (1.0 + a[:, None] * self.singular**2)  # (k, r)
        shrunk = keep * self.shared
        share = b / (1.0 + b * (shrunk @ self.shared))
        weights = keep * projected - (share * (shrunk @ projected))[:, None] * shrunk
        return Paths(self, a, b, keep, shrunk, share, weights, evidence)


@dataclass(frozen=True, eq=False)
class Paths:
    """One answer for each strength.

    Attributes
    ----------
    spectrum, a, b
        What was asked.
    keep, shrunk, share
        Parts of C^-1 along U, shapes (k, r), (k, r) and (k,).
    weights
        C^-1 (y - t) along U, shape (k, r).
    evidence
        Its logarithm, shape (k,).
    """

    spectrum: Spectrum
    a: FloatArray
    b: FloatArray
    keep: FloatArray
    shrunk: FloatArray
    share: FloatArray
    weights: FloatArray
    evidence: FloatArray

    @cached_property
    def coefficients(self) -> FloatArray:
        """Posterior means, shape (k, features)."""
        known, inner = self.spectrum, self.weights * self.spectrum.singular
        coefficients = (self.a[:, None] * inner) @ known.right.T
        coefficients += (self.b * (self.weights @ known.shared))[:, None] * known.common
        return np.asarray(coefficients)

    @cached_property
    def errors(self) -> FloatArray:
        """Errors of rows that are left out, shape (k, n)."""
        known = self.spectrum
        outside = known.outcome - known.left @ (known.left.T @ known.outcome)
        dual = outside + self.weights @ known.left.T  # C^-1 (y - t), shape (k, n)
        diagonal = 1.0 - known.root**2 / float(known.root @ known.root)
        diagonal = diagonal - (1.0 - self.keep) @ (known.left**2).T
        diagonal -= self.share[:, None] * (self.shrunk @ known.left.T) ** 2
        # What leaves with a row takes its share of the row's leverage along. A row that no other row
        # resembles keeps all of its outcome; never divide by rounding.
        staying = 1.0 - (1.0 - diagonal) * known.left_out / known.root**2
        return np.asarray(dual / (np.maximum(staying, 1e-10) * known.root))

    def by_evidence(self) -> FloatArray:
        """Posterior probability of each strength."""
        weights = np.exp(self.evidence - self.evidence.max())
        return np.asarray(weights / weights.sum())


def log_mean(evidence: FloatArray) -> float:
    """Return the logarithm of the mean of exp(evidence): all strengths are as likely beforehand."""
    top = float(evidence.max())
    return top + float(np.log(np.exp(evidence - top).mean()))
