"""The square system behind a vertex of a quantile regression: its inverse, kept up to date."""

import numpy as np
from scipy.linalg.blas import dger

from surefoot.typing import FloatArray, IntArray


class Basis:
    """Rows fitted exactly, columns in use, and the inverse B of the matrix where they cross.

    Exchanges cost O(k^2) for k rows. The rows and columns in use are also kept side by side in
    blocks of their own, so that products with them are plain BLAS calls that touch nothing else.

    Examples
    --------
    >>> basis = Basis(np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 5.0]]))
    >>> basis.grow(0, 0)
    >>> basis.grow(2, 1)
    >>> basis.inverse @ np.array([3.0, 6.0])  # the line through (2, 3) and (5, 6)
    array([1., 1.])
    """

    def __init__(self, matrix: FloatArray) -> None:
        n, m = matrix.shape
        self.matrix = matrix
        self.by_columns = np.asfortranarray(matrix)
        largest = min(n, m)
        self._rows, self._columns = np.zeros(largest, np.int64), np.zeros(largest, np.int64)
        self._row_block = np.empty((largest, m))
        self._column_block = np.empty((n, largest), order="F")
        self.size = 0
        self.inverse: FloatArray = np.zeros((0, 0), order="F")

    @property
    def rows(self) -> IntArray:
        """Rows fitted exactly, by position."""
        return self._rows[: self.size]

    @property
    def columns(self) -> IntArray:
        """Columns in use, by position."""
        return self._columns[: self.size]

    @property
    def row_block(self) -> FloatArray:
        """The rows in use, shape (size, all columns)."""
        return self._row_block[: self.size]

    @property
    def column_block(self) -> FloatArray:
        """The columns in use, shape (all rows, size)."""
        return self._column_block[:, : self.size]

    def _place_row(self, place: int, row: int) -> None:
        self._rows[place] = row
        self._row_block[place] = self.matrix[row]

    def _place_column(self, place: int, column: int) -> None:
        self._columns[place] = column
        self._column_block[:, place] = self.by_columns[:, column]

    def _add_outer(self, left: FloatArray, right: FloatArray) -> None:
        """Add left right' to the inverse, in place."""
        self.inverse = dger(1.0, left, right, a=self.inverse, overwrite_a=1)

    def swap_row(self, place: int, row: int) -> None:
        """Put ``row`` in the place of the row there."""
        across = self._column_block[row, : self.size] @ self.inverse
        scaled = self.inverse[:, place] / -across[place]
        across[place] -= 1.0
        self._add_outer(scaled, across)
        self._place_row(place, row)

    def combination(self, column: int) -> FloatArray:
        """Return how the columns in use combine to ``column`` on the rows in use."""
        return np.asarray(self.inverse @ self.by_columns[self.rows, column])

    def swap_column(self, place: int, column: int, across: FloatArray | None = None) -> None:
        """Put ``column`` in the place of the column there; ``across`` is its combination, if known."""
        across = self.combination(column) if across is None else across.copy()
        scaled = self.inverse[place] / -across[place]
        across[place] -= 1.0
        self._add_outer(across, scaled)
        self._place_column(place, column)

    def grow(self, row: int, column: int, down: FloatArray | None = None) -> None:
        """Add a row and a column; ``down`` is the combination of the column, if known."""
        k = self.size
        down = self.combination(column) if down is None else down
        right = self._column_block[row, :k] @ self.inverse
        corner = self.matrix[row, column] - self._column_block[row, :k] @ down
        if k:
            self._add_outer(down, right / corner)
        larger = np.empty((k + 1, k + 1), order="F")
        larger[:k, :k] = self.inverse
        larger[:k, k] = -down / corner
        larger[k, :k] = -right / corner
        larger[k, k] = 1.0 / corner
        self.inverse = larger
        self._place_row(k, row)
        self._place_column(k, column)
        self.size = k + 1

    def shrink(self, row_place: int, column_place: int) -> None:
        """Take a row and a column out; the last ones move into their places."""
        k = self.size - 1
        pivot = self.inverse[column_place, row_place]
        self._add_outer(self.inverse[:, row_place] / -pivot, self.inverse[column_place].copy())
        self.inverse[column_place] = self.inverse[k]
        self.inverse[:, row_place] = self.inverse[:, k]
        self.inverse = np.asfortranarray(self.inverse[:k, :k])
        self._place_row(row_place, int(self._rows[k]))
        self._place_column(column_place, int(self._columns[k]))
        self.size = k

    def refresh(self) -> None:
        """Invert afresh, which takes away the rounding of earlier exchanges."""
        if self.size:
            square = self._row_block[: self.size][:, self.columns]
            self.inverse = np.asfortranarray(np.linalg.inv(square))
