"""The rows of a report: as handed in, in order of time where there is one, and where they come from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.comparison.splits import taken
from surefoot.estimators.guarantees import Guarantee
from surefoot.estimators.preparation import Table, read_table
from surefoot.estimators.preparation.table import DATE, NUMBER
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.random import rng_for
from surefoot.typing import FloatArray, IntArray
from surefoot.validation import outcome_matrix

# With fewer rows a fold holds one or two of them, and intervals mean nothing.
FEWEST_ROWS = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Origin:
    """What is known about a file beyond the rows that were read from it.

    Attributes
    ----------
    source, checksum
        The file's name and its SHA-256.
    lines, unit
        For each row the line (or the row of the sheet) that it came from, and which of them it is.
    notes
        What reading it gave reason to say.
    command
        What was typed, to be repeated.
    economics
        What a unit short and a unit left over cost, in the words of whoever sells it.
    guarantee, fingerprint
        Of a model from a file, which does not hold the rows of its fit: what was stated then, and the
        checksum of those rows.
    """

    source: str = ""
    checksum: str = ""
    lines: IntArray | None = None
    unit: str = "line"
    notes: tuple[str, ...] = ()
    command: str = ""
    economics: str = ""
    guarantee: Guarantee | None = None
    fingerprint: str = ""

    def place(self, row: int) -> str:
        """Return where a row stands.

        >>> Origin().place(3)
        'row 3'
        """
        return f"row {row}" if self.lines is None else f"{self.unit} {self.lines[row]}"


@dataclass(frozen=True, eq=False)
class ReportRows:
    """Contexts and outcomes.

    Attributes
    ----------
    X
        Contexts as they came: a frame, an array or a table.
    table
        The same, column by column.
    y
        Shape (rows, products).
    days
        The day of each row, or None.
    ordered
        Whether rows are in order of time because the user said which time.
    places
        For each row, its place among the rows handed in.
    """

    X: Any
    table: Table
    y: FloatArray
    days: NDArray[Any] | None
    ordered: bool
    places: IntArray

    @classmethod
    def of(cls, X: Any, y: Any, time: Any = None) -> "ReportRows":
        """Check rows and put them in order of time, if one is named."""
        if y is None:
            raise InvalidTypeError("y must be the outcomes, one for each row of X, got None.")
        table = read_table(X)
        if len(table) < FEWEST_ROWS:
            raise InvalidInputError(
                f"X must have at least {FEWEST_ROWS} rows to report on, got {len(table)}."
            )
        if not isinstance(X, np.ndarray | Table) and not hasattr(X, "columns"):
            X = np.asarray(X, dtype=np.float64) if table.plain else table
        rows = cls(
            X, table, outcome_matrix("y", y, len(table)), _dates(table), False, np.arange(len(table))
        )
        if time is None:
            return rows
        moments = _moments(table, time)
        ordered = rows.take(np.argsort(moments, kind="stable"))
        days = np.sort(moments) if moments.dtype.kind == "M" else None
        return cls(ordered.X, ordered.table, ordered.y, days, True, ordered.places)

    def __len__(self) -> int:
        """How many rows."""
        return len(self.y)

    def take(self, rows: IntArray) -> "ReportRows":
        """Return some rows, in the order asked for."""
        days = None if self.days is None else self.days[rows]
        return ReportRows(
            taken(self.X, rows), self.table.take(rows), self.y[rows], days, self.ordered,
            self.places[rows],
        )  # fmt: skip

    def shuffled(self, column: int, seed: int) -> Any:
        """Return contexts with one column in another order, as if it were not known."""
        order = rng_for(seed, "report", "shuffle", column).permutation(len(self))
        return _with_column(self.X, column, _column_of(self.X, column)[order])

    def moved(self, shift: float, spread: FloatArray, seed: int, column: int | None = None) -> Any:
        """Return contexts whose numbers are off by ``shift`` spreads, up or down by chance.

        ``column`` moves that one alone. A spread of zero (text, dates, 0/1 columns) stays put.
        """
        X = self.X
        for j in range(len(self.table.columns)) if column is None else [column]:
            if spread[j] > 0.0:
                signs = rng_for(seed, "report", "move", j).choice([-1.0, 1.0], len(self))
                X = _with_column(X, j, self.table.columns[j].values + shift * spread[j] * signs)
        return X

    @property
    def names(self) -> tuple[str, ...]:
        """What columns are called: by position where they have no names."""
        if self.table.named:
            return self.table.names
        return tuple(f"column {j}" for j in range(len(self.table.columns)))

    @property
    def spread(self) -> FloatArray:
        """Standard deviation of each column of numbers; zero for text, dates and 0/1 columns."""
        deviations = np.zeros(len(self.table.columns))
        for j, column in enumerate(self.table.columns):
            if column.kind == NUMBER:
                values = column.values[~column.gaps]
                flag = bool(np.isin(values, [0.0, 1.0]).all())
                deviations[j] = 0.0 if flag or len(values) == 0 else float(values.std())
        return deviations


def _dates(table: Table) -> NDArray[Any] | None:
    """Return the one column of dates, if there is one alone and rows follow it."""
    dated = [column for column in table.columns if column.kind == DATE and not column.gaps.any()]
    if len(dated) != 1:
        return None
    days = dated[0].values
    return days if bool((days[1:] >= days[:-1]).all()) else None


def _moments(table: Table, time: Any) -> NDArray[Any]:
    """Return when each row was: a column of X, or what was handed in."""
    if isinstance(time, str):
        if time not in table.names:
            raise InvalidInputError(
                f"time must be a column of X ({', '.join(table.names)}) or one moment for each row, "
                f"got {time!r}."
            )
        column = table.columns[table.names.index(time)]
        if column.kind not in (DATE, NUMBER):
            raise InvalidInputError(f"time must be days or numbers, got the {column.kind} {time!r}.")
        moments = column.values
    else:
        moments = np.asarray(time)
        if moments.dtype.kind == "O":
            moments = moments.astype("datetime64[D]")
        if moments.shape != (len(table),) or moments.dtype.kind not in "Mfiu":
            raise InvalidInputError(
                f"time must be one day or number for each row of X ({len(table)}), got shape "
                f"{moments.shape} of {moments.dtype}."
            )
    gaps = np.isnat(moments) if moments.dtype.kind == "M" else np.isnan(moments.astype(np.float64))
    if gaps.any():
        raise InvalidInputError(
            f"time must be known in every row, got a gap in row {int(np.argmax(gaps))}."
        )
    return moments


def _column_of(X: Any, column: int) -> Any:
    if isinstance(X, Table):
        return X.columns[column].values
    if hasattr(X, "iloc"):
        return X.iloc[:, column].array
    return X[X.columns[column]] if hasattr(X, "columns") else X[:, column]


def _with_column(X: Any, column: int, values: Any) -> Any:
    """Return a copy of contexts with other values in one column."""
    if isinstance(X, Table):
        one = type(X.columns[column])(X.columns[column].name, X.columns[column].kind, values)
        return Table((*X.columns[:column], one, *X.columns[column + 1 :]), X.named, X.rows)
    if hasattr(X, "iloc"):
        copy = X.copy()
        copy.isetitem(column, values)
        return copy
    if hasattr(X, "with_columns"):
        name = X.columns[column]
        return X.with_columns(X[name].__class__(name, values))
    copy = np.array(X, dtype=np.float64 if X.dtype.kind in "iufb" else X.dtype)
    copy[:, column] = values
    return copy
