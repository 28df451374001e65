"""Eigenvectors of a small symmetric matrix, for the loop over problems on all cores.

LAPACK asks for a lock in each of its products: on sixteen cores it is twice as quick as on one. This is
the textbook's way (Golub and Van Loan, Matrix Computations, section 8.3): mirrors make the matrix
tridiagonal, rotations make that diagonal.
"""

import math

import numpy as np

from surefoot.engines.compiling import kernel

# Up to this side; beyond it LAPACK's blocks gain more than its locks cost.
SMALL_SIDE = 64
# An entry beside the diagonal that is a smaller share of its neighbours is rounding.
ROUNDING = float(np.finfo(np.float64).eps)
# An eigenvalue takes two or three; whoever stops early has orthogonal axes all the same.
MOST_SWEEPS = 60


@kernel(reassociate=True)
def _tridiagonal(matrix):
    """Return the diagonal and what is beside it of T = Q A Q', and Q."""
    n = len(matrix)
    left, turned = matrix.copy(), np.zeros((n, n))
    values, beside, mirror, image = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    for i in range(n):
        turned[i, i] = 1.0
    for k in range(n - 2):
        square = 0.0
        for i in range(k + 2, n):
            square += left[k, i] ** 2
            mirror[i] = left[k, i]
        beside[k] = left[k, k + 1]
        if square == 0.0:
            continue
        # Of two mirrors, the one without a difference.
        beside[k] = -math.copysign(math.sqrt(square + left[k, k + 1] ** 2), left[k, k + 1])
        mirror[k + 1] = left[k, k + 1] - beside[k]
        share, along = 2.0 / (mirror[k + 1] ** 2 + square), 0.0
        for i in range(k + 1, n):
            total = 0.0
            for j in range(k + 1, n):
                total += left[i, j] * mirror[j]
            image[i] = share * total
            along += 0.5 * share * image[i] * mirror[i]
        for i in range(k + 1, n):
            image[i] -= along * mirror[i]
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                left[i, j] -= mirror[i] * image[j] + image[i] * mirror[j]
        for j in range(n):
            image[j] = 0.0
        for i in range(k + 1, n):
            for j in range(n):
                image[j] += mirror[i] * turned[i, j]
        for i in range(k + 1, n):
            for j in range(n):
                turned[i, j] -= share * mirror[i] * image[j]
    for i in range(n):
        values[i] = left[i, i]
    if n > 1:
        beside[n - 2] = left[n - 2, n - 1]
    return values, beside, turned


@kernel(reassociate=True)
def _sweep(values, beside, vectors, first, last):
    """Chase one shifted rotation from the last row of a block to its first, in place."""
    slope = (values[first + 1] - values[first]) / (2.0 * beside[first])
    root = math.copysign(math.sqrt(slope**2 + 1.0), slope)
    ahead = values[last] - values[first] + beside[first] / (slope + root)
    sine, cosine, moved = 1.0, 1.0, 0.0
    for i in range(last - 1, first - 1, -1):
        down, across = sine * beside[i], cosine * beside[i]
        beside[i + 1] = math.sqrt(down**2 + ahead**2)
        if beside[i + 1] == 0.0:  # the block falls apart here
            values[i + 1] -= moved
            beside[last] = 0.0
            return
        sine, cosine = down / beside[i + 1], ahead / beside[i + 1]
        rest = values[i + 1] - moved
        twist = (values[i] - rest) * sine + 2.0 * cosine * across
        moved = sine * twist
        values[i + 1] = rest + moved
        ahead = cosine * twist - across
        for k in range(vectors.shape[1]):
            lower = vectors[i + 1, k]
            vectors[i + 1, k] = sine * vectors[i, k] + cosine * lower
            vectors[i, k] = cosine * vectors[i, k] - sine * lower
    values[first] -= moved
    beside[first], beside[last] = ahead, 0.0


@kernel()
def symmetric_eigenvectors(matrix):
    """Return eigenvalues in ascending order and their vectors, one a row."""
    n = len(matrix)
    eigenvalues, ordered = np.empty(n), np.empty((n, n))
    if n > SMALL_SIDE:
        eigenvalues, columns = np.linalg.eigh(matrix)
        for k in range(n):
            for j in range(n):
                ordered[k, j] = columns[j, k]
        return eigenvalues, ordered
    values, beside, vectors = _tridiagonal(matrix)
    for first in range(n):
        for _ in range(MOST_SWEEPS):
            last = first
            while last < n - 1 and abs(beside[last]) > ROUNDING * (
                abs(values[last]) + abs(values[last + 1])
            ):
                last += 1
            if last == first:
                break
            _sweep(values, beside, vectors, first, last)
    order = np.argsort(values)
    for k in range(n):
        eigenvalues[k] = values[order[k]]
        for j in range(n):
            ordered[k, j] = vectors[order[k], j]
    return eigenvalues, ordered
