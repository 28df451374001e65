"""``--by``: one policy for each series of a table, such as each product in each shop."""

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.cli.economics import Economics
from surefoot.cli.model_table import needed_columns
from surefoot.cli.options import Roles
from surefoot.cli.screen import Screen, show_economics, show_table
from surefoot.estimators import RobustNewsvendor
from surefoot.exceptions import DataWarning, InvalidInputError
from surefoot.io.table_columns import CATEGORY, OUTCOME, FileColumn
from surefoot.io.table_file import Reading, TableFile, read_file
from surefoot.io.writing import check_target
from surefoot.panels import PolicyTable, fit_many
from surefoot.panels.fitting import SeriesEvaluation
from surefoot.panels.records import FAILED, FITTED, median_saving, saving_words
from surefoot.panels.running import check_workers
from surefoot.tracing import load_arrow
from surefoot.typing import FloatArray

SUFFIXES = (".parquet",)
# Series without a policy that are named with their reason.
NAMED = 5
# Series between two lines of progress; joblib itself joins tasks that are small for its workers.
PROGRESS_SERIES = 1


def fit(
    table: TableFile,
    out: Path,
    *,
    roles: Roles,
    economics: Economics,
    radius: float | str,
    seed: int,
    jobs: int | None,
    screen: Screen,
) -> None:
    """Fit one policy for each series, save them, and say what was done.

    A series that cannot be fitted is named with its reason, and the others go on.
    """
    backorder, holding = economics.costs()
    table.numbers(roles.outcome)
    for name in roles.by:
        gaps = table.frame[name].is_null()
        if gaps.any():
            place = table.place(int(gaps.arg_max() or 0))
            raise InvalidInputError(f"--by must have a value in every row, got a gap in {place}.")
    show_table(screen, table)
    show_economics(screen, economics)
    dropped = [column.name for column in table.columns if column.kind == "ignored"]
    frame = table.frame.drop(dropped, strict=False)
    # What single series warn of is in the summary.
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        policies = fit_many(
            frame, list(roles.by), roles.outcome, time=roles.time, random_state=seed,
            model=RobustNewsvendor(backorder, holding, radius=radius),
            progress=not screen.as_json, task_size=PROGRESS_SERIES, n_jobs=jobs,
        )  # fmt: skip
    fitted = [record for record in policies.records if record.status == FITTED]
    if not fitted:
        raise InvalidInputError(
            f"--by must name series of which one can be fitted, got {len(policies):,} of which none "
            f"can: {policies.records[0].reason}"
        )
    policies.save(out)
    _show(policies, len(fitted), out, screen)
    summary = {record.key: record for record in policies.records}
    screen.result({
        "model": str(out), "by": list(roles.by), "series": len(policies), "fitted": len(fitted),
        "median_saving": median_saving(policies.records),
        "failed": {", ".join(key): r.reason for key, r in summary.items() if r.status == FAILED},
    })  # fmt: skip


def _show(policies: PolicyTable, fitted: int, out: Path, screen: Screen) -> None:
    count = "1 policy" if fitted == 1 else f"{fitted:,} policies"
    saving = median_saving(policies.records)
    beside = "" if math.isnan(saving) else f"; {saving_words(saving)}, by rows held out"
    screen.say(f"Wrote {out}: {count}, one for each {' and '.join(policies.columns.by)}{beside}.")
    failed = [record for record in policies.records if record.status == FAILED]
    for record in failed[:NAMED]:
        screen.note(f"{', '.join(record.key)} has no policy: {record.reason}")
    if len(failed) > NAMED:
        screen.note(f"And {len(failed) - NAMED:,} more have none.")
    screen.say(f"Next: surefoot decide {out} NEW_ROWS.csv")


def load(path: Path) -> tuple[PolicyTable, tuple[FileColumn, ...]]:
    """Return the policies of a file, and the columns that deciding needs, keys first."""
    policies = PolicyTable.load(path)
    fitted = next((record.key for record in policies.records if record.status == FITTED), None)
    if fitted is None:
        raise InvalidInputError(f"{path} must hold a fitted policy, got none.")
    keys = tuple(FileColumn(name, CATEGORY, "names the series") for name in policies.columns.by)
    return policies, (*keys, *needed_columns(policies[fitted], None, path))


def evaluate(path: Path, data: str, *, outcome: str | None, reading: Reading, screen: Screen) -> None:
    """Say what the orders of all series would have cost on rows with known outcomes."""
    policies, needed = load(path)
    name = policies.columns.outcome
    if outcome not in (None, name):
        raise InvalidInputError(f"--outcome must be {name!r}, as in the fit, got {outcome!r}.")
    known = [*needed, FileColumn(name, OUTCOME, "the outcome")]
    table = read_file(data, reading, known=known, only=[column.name for column in known])
    table.numbers(name)
    with screen.working("Evaluating ...", table.place):
        judged = policies.judge(table.frame)
    if not judged:
        raise InvalidInputError(f"{table.name} must have rows of a series with a policy, got none.")
    show_table(screen, table, columns=False)
    figures = _figures(judged)
    _show_figures(figures, len(policies), screen)
    screen.result({"model": str(path), "rows": len(table), "outcome": name, **figures})


def _figures(judged: Sequence[SeriesEvaluation]) -> dict[str, Any]:
    """Return what all series cost, beside their constant orders of the fit, and which did worst."""
    rows = np.array([one.rows for one in judged], dtype=np.float64)
    costs = np.array([one.cost for one in judged])
    constants = np.array([one.constant_cost for one in judged])
    known = np.isfinite(constants)  # a series that only borrows has no constant order
    # Worst is who loses most a row against the constant order; who costs most, where there is none.
    order = np.argsort(-np.where(known, costs - constants, -np.inf if known.any() else costs))
    return {
        "cost": float(rows @ costs / rows.sum()), "series": len(judged), "judged": int(rows.sum()),
        "constant_cost": _mean(constants[known], rows[known]),
        "cost_beside_constant": _mean(costs[known], rows[known]),
        "with_constant": int(known.sum()), "cheaper": int((costs < constants).sum()),
        "worst": [
            {
                "series": list(judged[k].key), "rows": judged[k].rows, "cost": float(costs[k]),
                "constant_cost": float(constants[k]) if known[k] else None,
            }
            for k in order[:NAMED]
        ],
    }  # fmt: skip


def _mean(values: FloatArray, weights: FloatArray) -> float | None:
    return float(values @ weights / weights.sum()) if len(values) else None


def _show_figures(figures: dict[str, Any], series: int, screen: Screen) -> None:
    screen.say(
        f"{figures['series']:,} of the {series:,} series of the model judged, on {figures['judged']:,} "
        f"rows: orders would have cost {figures['cost']:.4g} a row."
    )
    if figures["with_constant"]:
        before, now = figures["constant_cost"], figures["cost_beside_constant"]
        word = "less" if now <= before else "more"
        saved = f" ({100 * abs(1 - now / before):.0f} % {word})" if before > 0 else ""
        some = "" if figures["with_constant"] == figures["series"] else " where there is one"
        screen.say(
            f"Always the best constant order of the fit: {before:.4g} a row against {now:.4g}{saved}"
            f"{some}; cheaper in {figures['cheaper']:,} of {figures['with_constant']:,} series."
        )
    lines = [
        (
            ", ".join(one["series"]), str(one["rows"]), f"{one['cost']:.4g}",
            "-" if one["constant_cost"] is None else f"{one['constant_cost']:.4g}",
        )
        for one in figures["worst"]
    ]  # fmt: skip
    screen.table(["worst series", "rows", "cost a row", "constant order"], lines, right=3)


def check_by(by: Sequence[str], out: Path, report: Any, jobs: int | None) -> None:
    """Refuse what goes together with no table of policies."""
    check_workers(jobs, "--jobs")
    load_arrow("pyarrow.parquet")  # or ten thousand series would be fitted before it is missed
    check_target(out)
    if out.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(
            f"--out must end in {' or '.join(SUFFIXES)} beside --by, for a policy of each series, got "
            f"{out}."
        )
    if report is not None:
        raise InvalidInputError(
            "--report must be left out beside --by, got both: it is about one model."
        )
    if len(set(by)) < len(by):
        raise InvalidInputError(f"--by must name each column once, got {', '.join(by)}.")
