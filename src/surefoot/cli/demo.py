"""The demo: order seven ingredients for a restaurant after learning from few days."""

import importlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.datasets import YazData, load_yaz
from surefoot.estimators import RobustNewsvendor
from surefoot.exceptions import InvalidInputError, MissingExtraError
from surefoot.io.writing import check_target, replaced
from surefoot.typing import FloatArray

BACKORDER, HOLDING = 15.0, 10.0
TEST_DAYS = 165
WINDOWS = (30, 60, 120, 300)


@dataclass(frozen=True)
class DemoRow:
    """One ingredient: mean cost a day out of sample of three ways to order, and its bound."""

    product: str
    constant: float
    plain: float
    robust: float
    bound: float


def judge(data: YazData, days: int) -> list[DemoRow]:
    """Learn from the ``days`` before the last 165 and judge on those 165."""
    first = len(data.dates) - TEST_DAYS
    if not 10 <= days <= first:
        raise InvalidInputError(f"days must be between 10 and {first}, got {days}.")
    train, test = slice(first - days, first), slice(first, None)
    # A column that never varied in the window says nothing.
    informative = np.ptp(data.contexts[train], axis=0) > 0
    X = data.contexts[:, informative]
    rows = []
    for product in data.products:
        y = data.product(product)
        plain = RobustNewsvendor(BACKORDER, HOLDING, radius=0.0).fit(X[train], y[train])
        robust = RobustNewsvendor(BACKORDER, HOLDING).fit(X[train], y[train])
        rows.append(
            DemoRow(
                product=product,
                constant=_constant_cost(y[train], y[test]),
                plain=plain.cost(X[test], y[test]),
                robust=robust.cost(X[test], y[test]),
                bound=robust.certificate_.upper,
            )
        )
    return rows


def _constant_cost(past: FloatArray, future: FloatArray) -> float:
    """Mean cost of always ordering the best quantile of the past."""
    order = np.quantile(past, BACKORDER / (BACKORDER + HOLDING), method="inverted_cdf")
    short, over = np.maximum(future - order, 0.0), np.maximum(order - future, 0.0)
    return float(np.mean(BACKORDER * short + HOLDING * over))


def table(rows: list[DemoRow], days: int) -> str:
    """Return the table as text."""
    lines = [
        f"Cost a day over the last {TEST_DAYS} days, after learning from {days} days",
        f"(backorder {BACKORDER:g}, holding {HOLDING:g}; bound: what days like those learned from cost",
        "at most, with 95 % confidence)",
        "",
        f"{'':10}{'constant':>9}{'plain':>9}{'Surefoot':>10}{'bound':>9}",
    ]
    lines += [
        f"{row.product:10}{row.constant:9.2f}{row.plain:9.2f}{row.robust:10.2f}{row.bound:9.2f}"
        for row in rows
    ]
    sums = [sum(getattr(row, name) for row in rows) for name in ("constant", "plain", "robust")]
    lines += ["", f"{'all':10}{sums[0]:9.2f}{sums[1]:9.2f}{sums[2]:10.2f}"]
    return "\n".join(lines)


def _pyplot() -> Any:
    try:
        matplotlib = importlib.import_module("matplotlib")
    except ImportError as error:
        raise MissingExtraError('The demo draws: run pip install "surefoot[cli]".') from error
    matplotlib.use("Agg")
    return importlib.import_module("matplotlib.pyplot")


def draw(studies: dict[int, list[DemoRow]], shown: int, path: Path) -> None:
    """Draw total cost against days learned from, and the costs of each product at one of them."""
    plt = _pyplot()
    styles = {
        "constant": ("constant order", "#9a9a9a"),
        "plain": ("plain linear policy", "#c8553d"),
        "robust": ("Surefoot", "#1f6f8b"),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for name, (label, colour) in styles.items():
        totals = [sum(getattr(row, name) for row in rows) for rows in studies.values()]
        left.plot(list(studies), totals, "o-", color=colour, label=label, linewidth=2)
    left.set(xscale="log", xlabel="days learned from", ylabel="cost a day, all seven products")
    left.set_xticks(list(studies), [str(days) for days in studies])
    left.minorticks_off()
    left.legend(frameon=False)
    left.set_title(f"Judged on the last {TEST_DAYS} days", loc="left", fontsize=10)
    rows = studies[shown]
    places = np.arange(len(rows))
    for k, (name, (_, colour)) in enumerate(styles.items()):
        values = [getattr(row, name) for row in rows]
        right.bar(places + 0.27 * (k - 1), values, width=0.25, color=colour)
    right.set_xticks(places, [row.product for row in rows])
    right.set_ylabel("cost a day")
    right.set_title(f"Each product, after {shown} days", loc="left", fontsize=10)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def run_demo(path: Path, *, days: int) -> None:
    """Fit, print the table, write the picture."""
    check_target(path, (".png", ".svg", ".pdf"))
    _pyplot()
    data = load_yaz(drop_closed=True)
    began = time.perf_counter()
    windows = sorted({*WINDOWS, days, len(data.dates) - TEST_DAYS})
    studies = {}
    for window in windows:
        if sys.stderr.isatty():
            print(f"\rlearning from {window} days ...", end="", file=sys.stderr, flush=True)
        studies[window] = judge(data, window)
    if sys.stderr.isatty():
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    print(table(studies[days], days))
    with replaced(path) as temporary:
        draw(studies, days, temporary)
    fits = 2 * len(data.products) * len(windows)
    print(f"\n{fits} fits in {time.perf_counter() - began:.1f} s. Picture: {path}")
