"""Costs that differ by row: ``surefoot fit --backorder-column``, and what is made of such models."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from surefoot.cli.decide import read_known
from surefoot.cli.economics import Economics
from surefoot.cli.fit import (
    FEWEST_ROWS,
    chosen_radius,
    contexts_and_outcomes,
    is_flag,
    moments_of,
    read_for_outcome,
)
from surefoot.cli.model_table import ModelTable, needed_columns, save_model
from surefoot.cli.options import Roles
from surefoot.cli.screen import Screen, show_table
from surefoot.estimators import RobustNewsvendor
from surefoot.estimators.preparation import PreparedPolicy
from surefoot.estimators.row_costs import RowCosts
from surefoot.exceptions import InvalidInputError
from surefoot.io.table_columns import NUMBER, OUTCOME, FileColumn
from surefoot.io.table_file import Reading, TableFile
from surefoot.io.writing import check_target, refuse_inputs
from surefoot.typing import FloatArray
from surefoot.validation import check_integer

COSTS = ("backorder", "holding")


def fit(
    data: str,
    out: Path,
    *,
    roles: Roles,
    economics: Economics,
    columns: dict[str, str],
    radius: str,
    seed: int,
    reading: Reading,
    report: Path | None,
    screen: Screen,
) -> None:
    """Read, fit a policy for each cost ratio, save, and say what was done."""
    numbers = _numbers(economics, columns)
    _refuse_roles(roles, columns, report)
    chosen = chosen_radius(radius)
    check_integer("--seed", seed, at_least=0)
    check_target(out)
    refuse_inputs(out, [data])
    table = read_for_outcome(data, roles, reading, screen)
    costs = _costs_of(table, columns)
    X, y = contexts_and_outcomes(table, roles)
    X = X.drop(list(columns.values()), strict=False)
    if X.width == 0 or len(table) < FEWEST_ROWS:
        raise InvalidInputError(
            f"{table.name} must have {FEWEST_ROWS} rows and a column beside outcome and costs, got "
            f"{len(table)} rows and {X.width} columns."
        )
    show_table(screen, table)
    frozen = [name for name in X.columns if is_flag(X[name])]
    model = RobustNewsvendor(radius=chosen, frozen=frozen, random_state=seed).set_params(**numbers)
    policy = PreparedPolicy(model)
    with screen.working("Fitting ..."):
        policy.fit(X, y, time=moments_of(table, roles), **costs)
    about = _about(policy, table, X, y, roles, columns, costs)
    screen.say(about.economics)
    save_model(policy, about, out)
    _say(about, out, screen)
    screen.result({
        "model": str(out), "rows": about.rows, "outcome": about.outcome,
        "cost_columns": about.cost_columns, "cost_ratios": policy.model_.cost_levels_.tolist(),
        "cost": about.cost, "constant_order": about.constant, "constant_cost": about.constant_cost,
        "seconds": screen.seconds,
    })  # fmt: skip


def _numbers(economics: Economics, columns: dict[str, str]) -> dict[str, float]:
    """Return the cost that all rows share, if one is a number; each is a number or a column."""
    for name in ("price", "cost", "salvage", "goodwill"):
        if getattr(economics, name) is not None:
            raise InvalidInputError(
                f"--{next(iter(columns))}-column must come with --backorder or --holding alone, "
                f"got --{name}."
            )
    numbers = {}
    for name in COSTS:
        number = getattr(economics, name)
        if (number is None) == (name not in columns):
            got = "neither" if number is None else "both"
            raise InvalidInputError(f"Give --{name} or --{name}-column, got {got}.")
        if number is not None:
            if not 0.0 < number < float("inf"):
                raise InvalidInputError(f"--{name} must be > 0 and finite, got {number:g}.")
            numbers[name] = number
    return numbers


def _refuse_roles(roles: Roles, columns: dict[str, str], report: Path | None) -> None:
    option = f"--{next(iter(columns))}-column"
    if roles.by or report is not None:
        other = "--by" if roles.by else "--report"
        raise InvalidInputError(f"{other} must be left out beside {option}, got both.")
    taken = {roles.outcome: "--outcome", **dict.fromkeys(roles.ignore, "--ignore")}
    if roles.time is not None:
        taken[roles.time] = "--time"
    for cost, name in columns.items():
        if name in taken:
            raise InvalidInputError(
                f"--{cost}-column must name another column than {taken[name]}, got {name!r} for both."
            )
        taken[name] = f"--{cost}-column"


def _costs_of(table: TableFile, columns: dict[str, str]) -> dict[str, FloatArray]:
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


def _row_costs(policy: PreparedPolicy, costs: dict[str, FloatArray], rows: int) -> RowCosts:
    usual = policy.model.backorder, policy.model.holding
    return RowCosts.of(costs.get("backorder"), costs.get("holding"), usual, rows)


def _about(
    policy: PreparedPolicy, table: TableFile, X: pl.DataFrame, y: FloatArray, roles: Roles,
    columns: dict[str, str], costs: dict[str, FloatArray],
) -> ModelTable:  # fmt: skip
    paid, shares = _row_costs(policy, costs, len(y)), np.full(len(y), 1.0 / len(y))
    constant = paid.best_constant(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these rows were learned from: all is said about them
        cost = policy.cost(X, y, **costs)
    return ModelTable(
        outcome=roles.outcome, time=roles.time or "",
        columns=tuple(c for c in table.columns if c.name in X.columns),
        source=Path(table.name).name, rows=len(table), period=(),
        economics=_sentence(paid, columns), constant=constant, cost=cost,
        constant_cost=paid.mean(np.full(len(y), constant), y, shares), effects={},
        cost_columns=columns,
    )  # fmt: skip


def _sentence(costs: RowCosts, columns: dict[str, str]) -> str:
    def told(name: str, values: FloatArray) -> str:
        column = columns.get(name)
        return (
            f"{values[0]:g}" if column is None else f"{values.min():g} to {values.max():g} ({column})"
        )

    low, high = 100 * costs.ratios.min(), 100 * costs.ratios.max()
    return (
        f"A unit short costs {told('backorder', costs.backorder)}, a unit left over "
        f"{told('holding', costs.holding)}. So an order should be enough in {low:.0f} to {high:.0f} of "
        "100 cases, by the costs of its row."
    )


def _say(about: ModelTable, out: Path, screen: Screen) -> None:
    screen.say(
        f"Cost a row on these rows: {about.cost:.4g}; {about.constant_cost:.4g} if the order were "
        f"always {about.constant:g}. surefoot evaluate says how it does on new ones."
    )
    screen.say(f"Model: {out}, in {screen.seconds:.1f} s. Next: surefoot decide {out} NEW-DATA")


def needed(about: ModelTable) -> tuple[FileColumn, ...]:
    """Return the columns that a decision needs: those that the model looks at, and the costs."""
    costs = (FileColumn(name, NUMBER, "a cost") for name in about.cost_columns.values())
    return (*needed_columns(None, about, Path()), *costs)


def orders(policy: PreparedPolicy, about: ModelTable, table: TableFile) -> FloatArray:
    """Return the order for each row at its own costs."""
    costs = _costs_of(table, about.cost_columns)
    return policy.predict(table.frame.select(column.name for column in about.columns), **costs)


def evaluate(
    path: Path, policy: PreparedPolicy, about: ModelTable, data: str, outcome: str | None,
    reading: Reading, screen: Screen,
) -> None:  # fmt: skip
    """Say what the orders of a model would have cost on rows with known outcomes, each at its costs."""
    name, known = about.outcome if outcome is None else outcome, needed(about)
    if name in [column.name for column in known]:
        raise InvalidInputError(
            f"--outcome must be a column that the model does not look at, got {name!r}."
        )
    table = read_known(data, known, reading, [FileColumn(name, OUTCOME, "the outcome")])
    y, costs = table.outcomes(name), _costs_of(table, about.cost_columns)
    with screen.working("Evaluating ...", table.place):
        made = np.maximum(orders(policy, about, table), 0.0)  # as decide writes them
    paid, shares = _row_costs(policy, costs, len(y)), np.full(len(y), 1.0 / len(y))
    hindsight = paid.best_constant(y)
    figures: dict[str, Any] = {
        "cost": paid.mean(made, y, shares), "constant_order": about.constant,
        "constant_cost": paid.mean(np.full(len(y), about.constant), y, shares),
        "hindsight_order": hindsight,
        "hindsight_cost": paid.mean(np.full(len(y), hindsight), y, shares),
        "enough": float((made >= y).mean()), "planned": float(paid.ratios.mean()),
    }  # fmt: skip
    show_table(screen, table, columns=False)
    lines = [
        ("these orders", f"{figures['cost']:.4g}"),
        (f"always {about.constant:g} (from the fit)", f"{figures['constant_cost']:.4g}"),
        (f"always {hindsight:g} (best in hindsight)", f"{figures['hindsight_cost']:.4g}"),
    ]
    screen.table(["", "cost a row"], lines, right=1)
    screen.say(
        f"Enough on {100 * figures['enough']:.0f} of 100 rows (planned: {100 * figures['planned']:.0f} "
        "on average)."
    )
    screen.result({"model": str(path), "rows": len(y), "outcome": name, **figures})
