"""Sentences about numbers that deserve a look, by the names and in the units of whoever wrote them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from surefoot.forecasts import Suspect
from surefoot.typing import BoolArray, FloatArray

# Numbers and columns that a warning names one by one.
SHOWN = 3


class ColumnLabel(NamedTuple):
    """What a column is called, and the unit that its numbers were divided by."""

    name: str
    unit: float = 1.0


def plain_labels(count: int, names: Sequence[str] | None) -> tuple[ColumnLabel, ...]:
    """Return labels of columns as they came: by name, or by position where there is none."""
    if names is None:
        return tuple(ColumnLabel(f"column {j}") for j in range(count))
    return tuple(ColumnLabel(repr(str(name))) for name in names)


def labelled(
    suspects: Sequence[Suspect], before: Sequence[ColumnLabel], after: Sequence[ColumnLabel]
) -> tuple[Suspect, ...]:
    """Return suspects with other labels of their columns; outcomes stay as they are.

    >>> found = labelled([Suspect(3, "column 0", 50.0, 2.0)], plain_labels(1, None),
    ...                  [ColumnLabel("'wind'", 2.0)])
    >>> print(found[0])
    row 3, 'wind': 100 (expected about 4)
    """
    by_name = {old.name: new for old, new in zip(before, after, strict=True)}
    return tuple(
        suspect
        if (label := by_name.get(suspect.column)) is None
        else Suspect(suspect.row, label.name, label.unit * suspect.value, label.unit * suspect.expected)
        for suspect in suspects
    )


def suspects_sentence(suspects: Sequence[Suspect]) -> str:
    """Return which numbers look like errors."""
    shown = "; ".join(str(suspect) for suspect in suspects[:SHOWN])
    more = f"; and {len(suspects) - SHOWN} more" if len(suspects) > SHOWN else ""
    return f"Numbers that look like errors were not followed ({shown}{more}): see suspects_."


def far_sentence(far: BoolArray, contexts: FloatArray, labels: Sequence[ColumnLabel]) -> str:
    """Return which columns hold contexts far outside those seen, and the first such number of each."""
    columns = np.flatnonzero(far.any(axis=0))
    shown = []
    for j in columns[:SHOWN]:
        row = int(np.argmax(far[:, j]))
        shown.append(f"{labels[j].name} is {labels[j].unit * contexts[row, j]:g} in row {row}")
    more = f"; and {len(columns) - SHOWN} more columns" if len(columns) > SHOWN else ""
    return (
        f"{int(far.any(axis=1).sum())} of {len(contexts)} rows have contexts far outside those seen "
        f"({'; '.join(shown)}{more}): only the outcome's own past, and lines that hardly err "
        "or go into long tails, are followed there, for a while; others are taken as the nearest seen."
    )
