"""What the stream study leaves behind, as tables that read back as they were written."""

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from surefoot.exceptions import InvalidInputError


@dataclass(frozen=True)
class RegretPoint:
    """Regret of the online policy on one stationary stream up to one time.

    Attributes
    ----------
    radius
        "fixed" or "falling".
    coefficients, seed, time
        Which stream, and how many rows.
    plain
        Realised cost less that of the oracle, summed.
    robust
        The paper's regret of the robust objective; None with a falling radius, whose optimum moves.
    """

    radius: str
    coefficients: str
    seed: int
    time: int
    plain: float
    robust: float | None


@dataclass(frozen=True)
class StreamResult:
    """One method on one synthetic stream.

    Attributes
    ----------
    cost, oracle_cost
        Sums of realised cost, of the method and of the oracle, over all rows.
    late_cost, late_oracle_cost
        The same over the last quarter of the rows.
    recovery
        Rows after the change until the cost was back within 10 % of the oracle's, or None.
    """

    stream: str
    coefficients: str
    seed: int
    method: str
    rows: int
    cost: float
    oracle_cost: float
    late_cost: float
    late_oracle_cost: float
    recovery: int | None
    seconds: float


@dataclass(frozen=True)
class CurvePoint:
    """Mean cost of a method around one row, over seeds and a run of rows."""

    stream: str
    coefficients: str
    method: str
    row: int
    cost: float
    oracle_cost: float


@dataclass(frozen=True)
class RestaurantResult:
    """One method on one product of the restaurant, in date order; costs of the days that count."""

    product: str
    method: str
    days: int
    cost: float
    seconds: float


@dataclass(frozen=True)
class StreamFindings:
    """All tables of a study, and the settings and the machine behind them."""

    regret: tuple[RegretPoint, ...] = ()
    results: tuple[StreamResult, ...] = ()
    curves: tuple[CurvePoint, ...] = ()
    restaurant: tuple[RestaurantResult, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)


TABLES: dict[str, type] = {
    "regret": RegretPoint,
    "results": StreamResult,
    "curves": CurvePoint,
    "restaurant": RestaurantResult,
}
_KINDS: dict[str, Any] = {"str": str, "int": int, "float": float}


def write_table(folder: Path, name: str, rows: Sequence[Any]) -> None:
    """Write NAME.csv; floats are written to the last bit, None as nothing."""
    names = [one.name for one in fields(TABLES[name])]
    with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(["" if v is None else v for v in asdict(row).values()] for row in rows)


def merge_table(folder: Path, name: str, rows: Sequence[Any]) -> None:
    """Write NAME.csv anew with these rows; those of methods that were not run now stay as they are."""
    run = {row.method for row in rows}
    kept = [row for row in _read_table(folder / f"{name}.csv", TABLES[name]) if row.method not in run]
    write_table(folder, name, [*kept, *rows])


def write_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Add settings to settings.json; those of parts run earlier stay."""
    path = folder / "settings.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    text = json.dumps(known | settings, indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_findings(folder: Path) -> StreamFindings:
    """Read what a study wrote; a part that was not run is empty."""
    tables: dict[str, Any] = {
        name: _read_table(folder / f"{name}.csv", kind) for name, kind in TABLES.items()
    }
    if not any(tables.values()):
        raise InvalidInputError(f"--out must be a folder with results of a study, got {folder}.")
    path = folder / "settings.json"
    settings = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return StreamFindings(**tables, settings=settings)


def _read_table(path: Path, kind: Any) -> tuple[Any, ...]:
    if not path.exists():
        return ()
    columns = {one.name: str(getattr(one.type, "__name__", one.type)) for one in fields(kind)}
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if list(reader.fieldnames or ()) != list(columns):
            raise InvalidInputError(
                f"{path} must have the columns {', '.join(columns)}, got {reader.fieldnames}."
            )
        return tuple(
            kind(**{name: _read_value(columns[name], text) for name, text in row.items()})
            for row in reader
        )


def _read_value(kind: str, text: str) -> Any:
    if not text and "None" in kind:
        return None
    return _KINDS[kind.split(" | ")[0]](text)


def mean_and_half(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and half the width of its 95 % interval (normal, over seeds).

    >>> mean_and_half([1.0, 2.0, 3.0])[0]
    2.0
    """
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, math.nan
    square = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, 1.96 * math.sqrt(square / len(values))
