"""``surefoot fit``: learn how much to order from a table, and keep it in a file."""

import importlib
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from surefoot.cli.economics import RowEconomics
from surefoot.cli.model_table import ModelTable, costs_of, save_model
from surefoot.cli.options import Roles
from surefoot.cli.screen import Screen, listed_columns, show_economics, show_table
from surefoot.estimators import RobustNewsvendor
from surefoot.estimators.guarantees import SHIFT, SHIFTS, decides, guarantee_of
from surefoot.estimators.preparation import PreparedPolicy
from surefoot.estimators.row_costs import RowCosts
from surefoot.exceptions import InvalidInputError
from surefoot.io.table_columns import CATEGORY, DATE, OUTCOME, TIME, FileColumn
from surefoot.io.table_doubts import doubts
from surefoot.io.table_file import Reading, TableFile, read_file
from surefoot.io.writing import check_target, refuse_inputs
from surefoot.random import rng_for
from surefoot.typing import FloatArray
from surefoot.validation import check_integer

# With fewer rows there is nothing that cross-validation could choose from.
FEWEST_ROWS = 10
# So many rows say which columns matter; all of them would take as long as the fit.
EFFECT_ROWS = 200
# Numbers that look like errors, named one by one.
SHOWN_SUSPECTS = 3


def run(
    data: str,
    out: Path,
    *,
    roles: Roles,
    economics: RowEconomics,
    radius: str = "auto",
    seed: int = 0,
    reading: Reading,
    report: Path | None = None,
    jobs: int | None = None,
    command: Sequence[str] = (),
    screen: Screen,
) -> None:
    """Read, fit, save, and say what was done; with ``report``, write that as a page, too."""
    numbers, chosen = economics.numbers(), chosen_radius(radius)
    check_integer("--seed", seed, at_least=0)
    _refuse_beside_costs(roles, report)
    # Not at the top: most fits are of one policy, and panels load much.
    panel = importlib.import_module("surefoot.cli.panel") if roles.by else None
    if panel is not None:
        panel.check_by(roles.by, out, report, jobs)
    _check_targets(data, out, report)
    table = read_for_outcome(data, roles, reading, screen)
    if panel is not None:
        panel.fit(
            table, out, roles=roles, economics=economics, radius=chosen, seed=seed, jobs=jobs,
            screen=screen,
        )  # fmt: skip
        return
    costs = costs_of(table, roles.costs)
    X, y = contexts_and_outcomes(table, roles)
    refuse_few(table, FEWEST_ROWS, "learn from")
    usual = numbers.get("backorder"), numbers.get("holding")
    paid = RowCosts.of(costs.get("backorder"), costs.get("holding"), usual, len(y))
    _show_data(table, y, roles, economics, paid, screen)
    frozen = [name for name in X.columns if is_flag(X[name])]
    model = RobustNewsvendor(radius=chosen, frozen=frozen, random_state=seed).set_params(**numbers)
    policy = PreparedPolicy(model)
    with screen.working("Fitting ..."), warnings.catch_warnings():
        # Named below, by the lines of the file.
        warnings.filterwarnings("ignore", "Numbers that look like errors")
        policy.fit(X, y, time=moments_of(table, roles), **costs)
    _name_suspects(policy, table, roles.outcome, screen)
    # These rows were learned from: all is said about them.
    with warnings.catch_warnings(action="ignore"):
        about = _about(policy, table, X, y, paid, costs, economics, roles)
    save_model(policy, about, out)
    _show(policy, about, out, screen)
    result = _summary(policy, about, out, table, screen)
    if report is not None:
        # Not at the top: most fits write no report.
        reporting = importlib.import_module("surefoot.cli.report")
        origin = reporting.origin_of(data, table, roles, economics=about.economics, command=command)
        result["report"] = reporting.write_and_say(
            policy, X, y, report, roles, origin, screen, moments=moments_of(table, roles)
        )
    screen.result(result)


def _refuse_beside_costs(roles: Roles, report: Path | None) -> None:
    """Refuse what needs one pair of costs for all rows."""
    if roles.costs and (roles.by or report is not None):
        other = "--by" if roles.by else "--report"
        raise InvalidInputError(
            f"{other} must be left out beside --{next(iter(roles.costs))}-column, got both."
        )


def _check_targets(data: str, out: Path, report: Path | None) -> None:
    """Refuse files that cannot be written, or that are read, before any work is done."""
    check_target(out)
    refuse_inputs(out, [data])
    if report is not None:
        check_target(report, (".html", ".htm"), "--report")
        refuse_inputs(report, [data, out], "--report")


def read_for_outcome(data: str, roles: Roles, reading: Reading, screen: Screen) -> TableFile:
    """Read a table to learn from: outcomes are numbers, and time runs forward if it is named."""
    time = [] if roles.time is None else [roles.time]
    costs = {f"--{cost}-column": [name] for cost, name in roles.costs.items()}
    _refuse_two_roles(
        {"--outcome": [roles.outcome], "--time": time, "--ignore": roles.ignore, "--by": roles.by}
        | costs,
        {"--outcome": [roles.outcome], "--categories": roles.categories, "--ignore": roles.ignore},
    )
    known = [FileColumn(name, CATEGORY, "as told") for name in roles.categories]
    known += [
        FileColumn(name, CATEGORY, "names the series")
        for name in roles.by
        if name not in roles.categories
    ]
    known.append(FileColumn(roles.outcome, OUTCOME, "the outcome"))
    known += [FileColumn(name, TIME, "the order of time") for name in time]
    table = read_file(data, reading, known=known, ignore=roles.ignore)
    for sentence in doubts(table, roles.outcome, roles.time):
        screen.note(sentence)
    # Series are put in order one by one, so that a day that is missing costs one series alone.
    return table if roles.time is None or roles.by else in_order(table, roles.time, screen)


def contexts_and_outcomes(table: TableFile, roles: Roles) -> tuple[pl.DataFrame, FloatArray]:
    """Return what is learned from. A time that is a number (day 1, 2, 3) orders rows and no more.

    A policy that looks at such a time would follow a trend beyond everything seen. Costs of each row
    say what it is to be learned for.
    """
    X, y = table.split(roles.outcome)
    apart = {name: f"the costs in {name!r} (--{cost}-column)" for cost, name in roles.costs.items()}
    if roles.time is not None and table.column(roles.time).kind != DATE:
        apart[roles.time] = f"the numbers in {roles.time!r} (--time), which order rows and no more"
    X = X.drop(list(apart), strict=False)
    if X.width == 0:
        raise InvalidInputError(
            f"{table.name} must have a column beside {roles.outcome!r} and "
            f"{' and '.join(apart.values())}, got none."
        )
    return X, y


def moments_of(table: TableFile, roles: Roles) -> NDArray[Any] | None:
    """Return when each row was, in days or as numbers; None where no column says so."""
    return None if roles.time is None else table.frame[roles.time].to_numpy()


def in_order(table: TableFile, time: str, screen: Screen) -> TableFile:
    """Return rows in order of time; a row without a time has no place in it."""
    moments = table.frame[time]
    known = moments.is_not_null() if moments.dtype == pl.Date else moments.is_finite().fill_null(False)
    if not known.all():
        row = int((~known).arg_max() or 0)
        got = "a gap" if moments[row] is None else f"{moments[row]:g}"
        raise InvalidInputError(
            f"--time must be a day or a finite number in every row, got {got} in {table.place(row)}."
        )
    count = moments.n_unique()
    if moments.dtype != pl.Date and 2 * count < len(table):
        screen.note(
            f"{time!r} has {count} values in {len(table)} rows, and rows that share one have no order: "
            "is it a time?"
        )
    if moments.is_sorted():
        return table
    screen.note(f"Rows were not in order of {time!r}: they are sorted by it.")
    return table.take(np.argsort(moments.to_numpy(), kind="stable"))


def _refuse_two_roles(*groups: dict[str, Sequence[str]]) -> None:
    for group in groups:
        seen: dict[str, str] = {}
        for option, names in group.items():
            for name in dict.fromkeys(names):
                if name in seen:
                    raise InvalidInputError(
                        f"{option} must name another column than {seen[name]}, got {name!r} for both."
                    )
                seen[name] = option


def chosen_radius(text: str) -> float | str:
    """Return the radius that an option says: "auto", or a number."""
    if text == "auto":
        return text
    try:
        radius = float(text.replace(",", "."))
    except ValueError as error:
        raise InvalidInputError(f"--radius must be auto or a number, got {text!r}.") from error
    if not (0 <= radius < float("inf")):
        raise InvalidInputError(f"--radius must be >= 0 and finite, got {text}.")
    return radius


def is_flag(column: pl.Series) -> bool:
    """Whether a column of numbers holds 0 and 1 alone: an adversary leaves it as it is."""
    return column.dtype == pl.Float64 and bool(column.drop_nulls().is_in([0.0, 1.0]).all())


def _costs_sentence(paid: RowCosts, columns: dict[str, str]) -> str:
    """Return what the costs of each row are, and what they mean for an order."""

    def told(name: str, values: FloatArray) -> str:
        column = columns.get(name)
        return (
            f"{values[0]:g}" if column is None else f"{values.min():g} to {values.max():g} ({column})"
        )

    low, high = 100 * paid.ratios.min(), 100 * paid.ratios.max()
    return (
        f"A unit short costs {told('backorder', paid.backorder)}, a unit left over "
        f"{told('holding', paid.holding)}. So an order should be enough in {low:.0f} to {high:.0f} of "
        "100 cases, by the costs of its row."
    )


def _about(
    policy: PreparedPolicy, table: TableFile, X: pl.DataFrame, y: FloatArray, paid: RowCosts,
    costs: dict[str, FloatArray], economics: RowEconomics, roles: Roles,
) -> ModelTable:  # fmt: skip
    constant = paid.best_constant(y)
    days = [column.name for column in table.columns if column.kind == DATE]
    day = roles.time if roles.time in days else next(iter(days), None)
    return ModelTable(
        outcome=roles.outcome, time=roles.time or "",
        columns=tuple(c for c in table.columns if c.name in X.columns),
        source=Path(table.name).name, rows=len(table),
        period=() if day is None else (str(X[day].min()), str(X[day].max())),
        economics=_costs_sentence(paid, roles.costs) if costs else economics.sentence(),
        constant=constant, cost=policy.cost(X, y, **costs),
        constant_cost=float(paid.evaluate(np.full(len(y), constant), y).mean()),
        effects=effects(policy, X, costs), cost_columns=roles.costs, **_learned(policy.model_, costs),
    )  # fmt: skip


def _learned(model: Any, costs: dict[str, FloatArray]) -> dict[str, Any]:
    """Return what is said of one policy alone, and not of one for each cost ratio."""
    if costs:
        return {}
    stated = guarantee_of(model, SHIFTS) if decides(model) else None
    return {"fingerprint": model.fingerprint_, "guarantee": stated}


def effects(policy: Any, X: pl.DataFrame, costs: dict[str, FloatArray]) -> dict[str, float]:
    """Return how far orders move on average if a column holds the value of another row."""
    rng = rng_for(0, "effects")
    if len(X) > EFFECT_ROWS:
        rows = np.sort(rng.choice(len(X), EFFECT_ROWS, replace=False))
        X, costs = X[rows], {cost: values[rows] for cost, values in costs.items()}
    orders = policy.predict(X, **costs)
    shuffled = rng.permutation(len(X))
    others = {name: X.with_columns(X[name][shuffled]) for name in X.columns}
    strengths = {
        name: float(np.mean(np.abs(policy.predict(other, **costs) - orders)))
        for name, other in others.items()
    }
    return dict(sorted(strengths.items(), key=lambda pair: -pair[1]))


def refuse_few(table: TableFile, least: int, purpose: str) -> None:
    """Refuse a table with too few rows to learn from, or for what else is to be done with it."""
    if len(table) < least:
        raise InvalidInputError(
            f"{table.name} must have at least {least} rows to {purpose}, got {len(table)}."
        )


def _show_data(
    table: TableFile, y: FloatArray, roles: Roles, economics: RowEconomics, paid: RowCosts,
    screen: Screen,
) -> None:  # fmt: skip
    """Say what is learned from, and what is hard to believe about it."""
    show_table(screen, table)
    _doubt_outcomes(y, table, screen)
    screen.say(f"Outcome: {roles.outcome}, from {y.min():g} to {y.max():g}, {y.mean():.4g} on average.")
    if roles.costs:
        screen.say(_costs_sentence(paid, roles.costs))
    else:
        show_economics(screen, economics)


def _doubt_outcomes(y: FloatArray, table: TableFile, screen: Screen) -> None:
    """Say what is hard to believe about outcomes, or leaves nothing to learn."""
    if y.min() == y.max():
        screen.note(f"The outcome is always {y[0]:g}: there is nothing to learn about it.")
    below = int((y < 0).sum())
    if below:
        rows = "1 outcome is" if below == 1 else f"{below} outcomes are"
        first = "" if below == 1 else "the first "
        screen.note(
            f"{rows} below 0, {first}in {table.place(int((y < 0).argmax()))}: returns? Orders are "
            "written as 0 where they would be below."
        )


def _name_suspects(policy: PreparedPolicy, table: TableFile, outcome: str, screen: Screen) -> None:
    """Say which numbers look like errors, by the lines and the columns of the file."""
    suspects = policy.suspects_
    for one in suspects[:SHOWN_SUSPECTS]:
        column = repr(outcome) if one.column == "outcome" else one.column
        screen.note(
            f"{table.place(one.row)}: {column} is {one.value:g}, to be expected was about "
            f"{one.expected:.3g}. It looks like an error and was not followed."
        )
    if len(suspects) > SHOWN_SUSPECTS:
        screen.note(f"{len(suspects) - SHOWN_SUSPECTS} more numbers look like errors.")


def _show(policy: PreparedPolicy, about: ModelTable, out: Path, screen: Screen) -> None:
    model: Any = policy.model_
    screen.say()
    show_strength(screen, about.effects)
    saving = 1.0 - about.cost / about.constant_cost if about.constant_cost > 0 else 0.0
    screen.say(
        f"Cost a row on these rows: {about.cost:.4g}; {about.constant_cost:.4g} if the order were "
        f"always {about.constant:g}. That saves {100 * saving:.0f} % here and less on new rows: "
        f"surefoot {'evaluate' if about.cost_columns else 'compare'} says how much."
    )
    if about.guarantee is not None:
        screen.say(about.guarantee.sentence(SHIFT))
    elif not about.cost_columns:
        screen.say(f"Radius {model.radius_:.3g}: {model.certificate_.message}")
    if model.converged_ is False:
        screen.note(model.status_)
    screen.say(f"Model: {out}, in {screen.seconds:.1f} s. Next: surefoot decide {out} NEW-DATA")


def _summary(
    policy: PreparedPolicy, about: ModelTable, out: Path, table: TableFile, screen: Screen
) -> dict[str, Any]:
    """Return what was done, for machines."""
    model: Any = policy.model_
    if about.cost_columns:
        own = {"cost_columns": about.cost_columns, "cost_ratios": model.cost_levels_.tolist()}
    else:
        own = {
            "backorder": float(policy.model.backorder), "holding": float(policy.model.holding),
            "radius": float(model.radius_), "certificate": asdict(model.certificate_),
        }  # fmt: skip
    return {
        "model": str(out), **about.figures(), **own, "status": model.status_,
        "suspects": [one._asdict() for one in policy.suspects_],
        "columns": listed_columns(table), "seconds": screen.seconds,
    }  # fmt: skip


def show_strength(screen: Screen, strengths: dict[str, float]) -> None:
    """Say which columns move the order most."""
    strong = [(name, value) for name, value in strengths.items() if value > 0][:5]
    if strong:
        listed = ", ".join(f"{name} ({value:.3g})" for name, value in strong)
        screen.say(f"What moves the order most, in units on average: {listed}.")
