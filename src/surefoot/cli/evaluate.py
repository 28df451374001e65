"""``surefoot evaluate``: what a model's orders would have cost on a table with known outcomes."""

import importlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.cli.decide import read_known
from surefoot.cli.model_table import (
    ModelTable,
    cost_columns,
    costs_of,
    is_panel,
    load_model,
    needed_columns,
    robust_part,
)
from surefoot.cli.screen import Screen, show_table
from surefoot.comparison import paired_interval
from surefoot.costs import Newsvendor
from surefoot.estimators.row_costs import RowCosts
from surefoot.exceptions import InvalidInputError
from surefoot.io.table_columns import OUTCOME, FileColumn
from surefoot.io.table_file import Reading
from surefoot.typing import FloatArray

# Fewer rows say too little for an interval: three of them may even agree by accident.
INTERVAL_ROWS = 10


def run(
    model: Path, data: str, *, outcome: str | None = None, reading: Reading, screen: Screen
) -> None:
    """Load, read, decide, and set the orders against what happened."""
    if is_panel(model):
        # Not at the top: most models are one policy, and panels load much.
        panel = importlib.import_module("surefoot.cli.panel")
        panel.evaluate(model, data, outcome=outcome, reading=reading, screen=screen)
        return
    policy, about = load_model(model, by_row=True)
    usual = _usual_costs(policy, model)
    needed, by_row = needed_columns(policy, about, model), cost_columns(about)
    name = outcome_name(outcome, about, model, [*needed, *by_row])
    known = [*by_row, FileColumn(name, OUTCOME, "the outcome")]
    table = read_known(data, needed, reading, known)
    y, X = table.outcomes(name), table.frame.select(column.name for column in needed)
    costs = {} if about is None else costs_of(table, about.cost_columns)
    paid = RowCosts.of(costs.get("backorder"), costs.get("holding"), usual, len(y))
    with screen.working("Evaluating ...", table.place):
        orders = np.maximum(policy.predict(X, **costs), 0.0)  # as decide writes them
        # Of a policy for each cost ratio there is no worst case as a whole.
        worst = None if costs else float(policy.worst_case(X, y).value)
    figures = _figures(paid, orders, y, about, worst)
    show_table(screen, table, columns=False)
    _show(figures, about, len(y), screen)
    screen.result({"model": str(model), "rows": len(y), "outcome": name, **figures})


def outcome_name(
    given: str | None, about: ModelTable | None, path: Path, needed: Sequence[FileColumn]
) -> str:
    """Return which column is the outcome, as told or as in the fit: none of those that are needed."""
    if given is None and about is None:
        raise InvalidInputError(
            f"--outcome must be given, as {path} does not say which column it was, got none."
        )
    name = about.outcome if given is None and about is not None else str(given)
    if name in [column.name for column in needed]:
        raise InvalidInputError(
            f"--outcome must be a column that the model does not look at, got {name!r}."
        )
    return name


def _usual_costs(policy: Any, path: Path) -> tuple[Any, Any]:
    """Return what a unit short and a unit left over cost where rows have no costs of their own."""
    robust = robust_part(policy)
    if hasattr(robust, "levels_"):
        return robust.backorder, robust.holding
    cost = robust.problem_.cost
    if not isinstance(cost, Newsvendor) or robust.n_outcomes != 1:
        raise InvalidInputError(
            f"{path} must order one product with a newsvendor cost, got {type(cost).__name__}."
        )
    pieces = cost.pieces(1)[0]
    return pieces.down, pieces.up


def _figures(
    paid: RowCosts, orders: FloatArray, y: FloatArray, about: ModelTable | None, worst: float | None
) -> dict[str, Any]:
    hindsight = paid.best_constant(y)
    costs = paid.evaluate(orders, y)
    figures: dict[str, Any] = {
        "cost": float(costs.mean()), "worst_case": worst,
        "enough": float((orders >= y).mean()), "planned": float(paid.ratios.mean()),
        "short": float(np.maximum(y - orders, 0.0).mean()),
        "left_over": float(np.maximum(orders - y, 0.0).mean()),
        "hindsight_order": hindsight,
        "hindsight_cost": float(paid.evaluate(np.full(len(y), hindsight), y).mean()),
    }  # fmt: skip
    if about is not None:
        constant = paid.evaluate(np.full(len(y), about.constant), y)
        figures |= {"constant_order": about.constant, "constant_cost": float(constant.mean())}
        figures["difference"] = float((costs - constant).mean())
        figures["interval"] = _interval(costs - constant)
    return figures


def _interval(differences: FloatArray) -> list[float] | None:
    """Return the ends of a 95 % interval, or None where there is too little to say."""
    if len(differences) < INTERVAL_ROWS:
        return None
    error = float(differences.std(ddof=1)) / math.sqrt(len(differences))
    return list(paired_interval(differences, error, 0.95)) if error > 0 else None


def _show(figures: dict[str, Any], about: ModelTable | None, rows: int, screen: Screen) -> None:
    lines = [("these orders", f"{figures['cost']:.4g}")]
    if about is not None:
        lines.append((f"always {about.constant:g} (from the fit)", f"{figures['constant_cost']:.4g}"))
    hindsight = f"always {figures['hindsight_order']:g} (best in hindsight)"
    lines.append((hindsight, f"{figures['hindsight_cost']:.4g}"))
    worst = figures["worst_case"]
    # Orders that look at a forecast alone cannot be hurt.
    if worst is not None and worst > 1.001 * figures["cost"]:
        lines.append(("these orders, at worst within the radius", f"{worst:.4g}"))
    screen.table(["", "cost a row"], lines, right=1)
    planned = f"{100 * figures['planned']:.0f}" + (" on average" if worst is None else "")
    screen.say(
        f"Enough on {100 * figures['enough']:.0f} of 100 rows (planned: {planned}); "
        f"{figures['short']:.3g} short and {figures['left_over']:.3g} left over a row."
    )
    if about is None:
        return
    if figures["interval"] is None:
        few = f"{rows} rows say too little for an interval"
        screen.say(f"Beside the constant order of the fit: {figures['difference']:+.3g} a row ({few}).")
    else:
        low, high = figures["interval"]
        screen.say(
            f"Beside the constant order of the fit: {figures['difference']:+.3g} a row, 95 % interval "
            f"{low:+.3g} to {high:+.3g} if rows are independent."
        )
