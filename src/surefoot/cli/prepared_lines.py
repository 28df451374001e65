"""Lines for a model of ``surefoot fit``: contexts as people write them, prepared as in the fit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from surefoot.estimators.preparation import PreparedPolicy
from surefoot.estimators.preparation.table import CATEGORY, DATE, NUMBER, Column, Table
from surefoot.exceptions import DataWarning, InvalidInputError, warn_user
from surefoot.io.table_columns import FileColumn
from surefoot.io.table_dates import read_days
from surefoot.online.messages import Context, Fields

# How dates are written in JSON, and wherever the model's own table does not say.
ISO = "%Y-%m-%d"


class PreparedLines:
    """What the columns of a line are to a model that prepares them.

    The preparation stays as the fit learned it: a level that the fit never saw counts as the average of
    those known, a gap as the fit has settled.

    Parameters
    ----------
    policy
        The fitted policy.
    columns
        The columns that it looks at, in its order, with the form of their dates.
    """

    def __init__(self, policy: PreparedPolicy, columns: Sequence[FileColumn]) -> None:
        self._policy, self._columns = policy, tuple(columns)
        # As the stream behind it calls the prepared columns.
        self._names = [f"x{j}" for j in range(policy.model_.n_features_in_)]

    def fields(self, given: Fields) -> Fields:
        """Return which names of a line are texts: the model knows its own, and needs none told."""
        if given.text:
            raise InvalidInputError(
                "--text must be left out beside a model that prepares its columns, "
                f"got {given.text[0]!r}."
            )
        names = {column.name for column in self._columns}
        for role, name in (("--outcome", given.outcome), ("--id", given.id)):
            if name in names:
                raise InvalidInputError(
                    f"{role} must be a column that the model does not look at, got {name!r}."
                )
        ignored = sorted(names & set(given.ignore))
        if ignored:
            raise InvalidInputError(
                f"--ignore must leave the model the columns of its fit, got {ignored[0]!r}."
            )
        texts = tuple(column.name for column in self._columns if column.kind != NUMBER)
        return replace(given, text=texts)

    def __call__(self, context: Context) -> Context:
        """Return a context as the numbers that the model sees; names new to it are refused."""
        known = {column.name for column in self._columns}
        for name in context:
            if name not in known:
                raise InvalidInputError(
                    f"a context must have the columns of the model ({', '.join(sorted(known))}), got "
                    f"{name!r}: leave it out with --ignore."
                )
        cells = tuple(_cell(column, context.get(column.name)) for column in self._columns)
        row = self._policy.prepare(Table(cells, named=True, rows=1))[0]
        return dict(zip(self._names, row.tolist(), strict=True))


def name_gaps(names: Sequence[str], context: Context) -> Context:
    """Say which columns of a model a line lacks; the stream behind it puts their running mean there."""
    missing = [name for name in names if name not in context]
    if missing:
        warn_user(
            f"A line has no value for {', '.join(map(repr, missing))}, from which the model was "
            "learned: the running mean counts.",
            DataWarning,
        )
    return context


def _cell(column: FileColumn, value: Any) -> Column:
    """Return one value as a column of one row; a gap where there is none."""
    if column.kind == NUMBER:
        return Column(column.name, NUMBER, np.array([np.nan if value is None else value]))
    if column.kind == DATE:
        day = None if value is None else _day(column, value)
        return Column(column.name, DATE, np.array(["NaT" if day is None else day], "datetime64[D]"))
    return Column(column.name, CATEGORY, np.array([value], dtype=object))


def _day(column: FileColumn, text: str) -> Any:
    """Return the day that a text says, in the form of the fit or as JSON writes it."""
    cell = pl.Series(column.name, [text])
    forms = list(dict.fromkeys((column.date_format or ISO, ISO)))
    for form in forms:
        days = read_days(cell, form)
        if days is not None and days.values[0] is not None:
            return days.values[0]
    raise InvalidInputError(f"{column.name} must be a date written {' or '.join(forms)}, got {text!r}.")
