"""The coordinates in which the compiled update steps: movable columns first, centred, and few.

Where an intercept is free, centring changes nothing but the intercept. Where nothing stops a move, the
penalty of the movable parameters is their Euclidean norm, so movable columns may be rotated: with fewer
rows than columns, as many coordinates as rows hold all there is to know.
"""

from dataclasses import dataclass, replace

import numpy as np

from surefoot.ambiguity import AffineForm
from surefoot.engines.canonical import orthonormal_map
from surefoot.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Where each column of a form went.

    Attributes
    ----------
    order
        The columns in the order of the coordinates, before any rotation.
    mean
        What was subtracted from each column.
    n_movable
        How many leading coordinates may move.
    rotation
        Shape (movable columns, movable coordinates), orthonormal unless nothing moves; None where
        nothing was rotated.
    """

    order: IntArray
    mean: FloatArray
    n_movable: int
    rotation: FloatArray | None = None

    @classmethod
    def of(
        cls, form: AffineForm, movable: BoolArray, *, rotate: bool, unpenalised: bool = False
    ) -> "Arrangement":
        """Arrange the columns of a form; those without a penalty, as at radius zero, in a basis."""
        order = np.argsort(~movable, kind="stable")
        mean = form.weights @ form.contexts if form.intercept else np.zeros(len(order))
        plain = cls(order, mean, int(movable.sum()))
        if rotate and unpenalised:
            basis = orthonormal_map(plain.rows(form.contexts), form.weights)
            return replace(plain, n_movable=basis.shape[1], rotation=basis)
        if not rotate or len(form.outcomes) >= plain.n_movable:
            return plain
        rows = plain.rows(form.contexts)[:, : plain.n_movable]
        return replace(plain, n_movable=len(rows), rotation=np.linalg.qr(rows.T)[0])

    def rows(self, contexts: FloatArray) -> FloatArray:
        """Return contexts of the form in these coordinates."""
        arranged = (contexts - self.mean)[:, self.order]
        if self.rotation is not None:
            count = len(self.rotation)
            arranged = np.hstack([arranged[:, :count] @ self.rotation, arranged[:, count:]])
        return np.ascontiguousarray(arranged)

    def bounds(self, values: FloatArray) -> FloatArray:
        """Return bounds on columns in these coordinates; rotated ones have none."""
        if self.rotation is not None:
            free = np.full(self.n_movable, np.inf)
            return np.concatenate(
                [np.copysign(free, values[self.order[0]]), values[self.order][len(self.rotation) :]]
            )
        return np.ascontiguousarray((values - self.mean)[self.order])

    def original(self, theta: FloatArray, intercept: float) -> tuple[FloatArray, float]:
        """Return a policy of these coordinates in the columns of the form."""
        if self.rotation is not None:
            theta = np.concatenate([self.rotation @ theta[: self.n_movable], theta[self.n_movable :]])
        restored = np.empty_like(theta)
        restored[self.order] = theta
        return restored, float(intercept - self.mean @ restored)
