"""What a model file says about the table it was learned from, so that later files are read alike."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.estimators.guarantees import Guarantee
from surefoot.estimators.loading import from_parts
from surefoot.estimators.preparation import PreparedPolicy
from surefoot.exceptions import InvalidInputError, ModelFileError
from surefoot.io import FileColumn, TableFile, pack, read_archive, register, unpack, write_archive
from surefoot.io.table_columns import NUMBER
from surefoot.typing import FloatArray

_SECTION = "table"
# What the first bytes of a table of policies say.
_MAGIC = b"PAR1"

register(FileColumn)
register(Guarantee)


@register
@dataclass(frozen=True)
class ModelTable:
    """The table of a fit.

    Attributes
    ----------
    outcome, time
        Names of the columns; ``time`` is empty if none was named.
    columns
        The columns that the model looks at, and how they are written.
    source, rows, period
        The file, how many rows it had, and the first and last day (empty without dates).
    economics
        The sentence about what a unit short and a unit left over cost.
    constant
        The order that would have cost least on these rows, whatever the context.
    cost, constant_cost
        Mean cost a row on these rows, of the model and of the constant order.
    effects
        By column: how far the order moves on average if the value of another row is put in.
    fingerprint
        Of the rows learned from, by which a report knows them again; empty in older files.
    cost_columns
        Columns with the costs of each row, by "backorder" and "holding"; empty where costs are numbers.
    guarantee
        What is stated about new rows, if anything; the file does not hold the rows that it follows
        from.
    """

    outcome: str
    time: str
    columns: tuple[FileColumn, ...]
    source: str
    rows: int
    period: tuple[str, ...]
    economics: str
    constant: float
    cost: float
    constant_cost: float
    effects: dict[str, float]
    fingerprint: str = ""
    guarantee: Guarantee | None = None
    cost_columns: dict[str, str] = field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        """Return what was learned from and what came out of it, for machines."""
        return {
            "outcome": self.outcome, "rows": self.rows, "period": list(self.period),
            "cost": self.cost, "constant_order": self.constant, "constant_cost": self.constant_cost,
            "effects": self.effects,
        }  # fmt: skip


def save_model(policy: PreparedPolicy, table: ModelTable, path: Path) -> None:
    """Write a fitted policy and its table to one file, whole or not at all."""
    header, arrays = policy.parts()
    write_archive(path, {**header, _SECTION: pack(_SECTION, table, arrays)}, arrays)


def is_panel(path: Path) -> bool:
    """Whether a file holds a policy for each of many series."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False  # whoever reads it says what is wrong


def load_model(path: Path, *, by_row: bool = False) -> tuple[Any, ModelTable | None]:
    """Return the fitted model of a file, and its table; a model saved from Python has none.

    ``by_row`` says that the caller can ask for costs of each row.
    """
    if is_panel(path):
        raise InvalidInputError(
            f"{path} must be one model, got a policy for each of many series: take decide or evaluate."
        )
    header, arrays = read_archive(path)
    model, section = from_parts(path, header, arrays), header.get(_SECTION)
    if hasattr(robust_part(model), "levels_") and not (by_row and section is not None):
        raise InvalidInputError(
            f"{path} must be a model with one pair of costs, got one that learned from costs of each "
            "row: take decide or evaluate if surefoot fit made it, and surefoot.load in Python if not."
        )
    if section is None:
        return model, None
    table = unpack(section, arrays)
    if not isinstance(table, ModelTable):
        raise ModelFileError(
            f"{path} must say how its table was read, got a file of an older Surefoot: fit it again."
        )
    return model, table


def needed_columns(model: Any, table: ModelTable | None, path: Path) -> tuple[FileColumn, ...]:
    """Return the columns that a model looks at, in its order."""
    if table is not None:
        return tuple(
            FileColumn(column.name, column.kind, "as in the fit", column.date_format)
            for column in table.columns
        )
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise InvalidInputError(
            f"{path} must be a model of named columns, got one that was fitted on an array: fit it on "
            "a data frame, or with surefoot fit."
        )
    kinds = model.plan_.kinds if isinstance(model, PreparedPolicy) else ["number"] * len(names)
    return tuple(
        FileColumn(str(name), kind, "as in the fit") for name, kind in zip(names, kinds, strict=True)
    )


def cost_columns(table: ModelTable | None) -> tuple[FileColumn, ...]:
    """Return the columns with costs of each row that a decision needs; mostly there are none."""
    names = () if table is None else table.cost_columns.values()
    return tuple(FileColumn(name, NUMBER, "a cost") for name in names)


def costs_of(table: TableFile, columns: dict[str, str]) -> dict[str, FloatArray]:
    """Return the costs of each row; name the first line with one that cannot be."""
    costs = {}
    for cost, name in columns.items():
        values = costs[cost] = table.outcomes(name, f"The {cost} cost")
        wrong = np.flatnonzero(~((values > 0.0) & np.isfinite(values)))
        if len(wrong):
            row = int(wrong[0])
            raise InvalidInputError(
                f"The {cost} cost must be > 0, got {values[row]:g} in {table.place(row)}, column "
                f"{name!r}."
            )
    return costs


def robust_part(model: Any) -> Any:
    """Return the robust model inside of a prepared one."""
    return model.model_ if isinstance(model, PreparedPolicy) else model
