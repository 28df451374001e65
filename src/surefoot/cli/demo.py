"""The demo: order seven ingredients for a restaurant after learning from few days; a page on one."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from surefoot.baselines import SAA
from surefoot.cli.bundled import restaurant
from surefoot.comparison import RollingWindow
from surefoot.comparison.picture import FORMATS, require_matplotlib
from surefoot.datasets import YazData, load_yaz
from surefoot.estimators import RobustNewsvendor
from surefoot.estimators.preparation import PreparedPolicy
from surefoot.exceptions import InvalidInputError
from surefoot.io.writing import check_target, replaced
from surefoot.report import Origin, write_report
from surefoot.report.write import SUFFIXES

BACKORDER, HOLDING = 15.0, 10.0
TEST_DAYS = 165
WINDOWS = (30, 60, 120, 300)
# The page is about this ingredient: learn from so many days, judge on the next, five times.
REPORTED, REPORT_DAYS, REPORT_STEP = "steak", 120, 33

WHY_ABOVE = (
    "* cost above its bound: days to come differ more from those before than the past",
    "  blocks of days did from each other",
)


@dataclass(frozen=True)
class DemoRow:
    """One ingredient: mean cost a day out of sample of three ways to order, and its bound."""

    product: str
    constant: float
    plain: float
    robust: float
    bound: float

    @property
    def above(self) -> bool:
        """Whether the cost lies above the bound."""
        return self.robust > self.bound


def judge(data: YazData, days: int, *, bounded: bool = True) -> list[DemoRow]:
    """Learn from the ``days`` before the last 165 and judge on those 165.

    Bounds in order of time take longer than the policies; without ``bounded`` time is left out.
    """
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
        robust = RobustNewsvendor(BACKORDER, HOLDING).fit(
            X[train], y[train], time=data.dates[train] if bounded else None
        )
        rows.append(
            DemoRow(
                product=product,
                constant=SAA(BACKORDER, HOLDING).fit(X[train], y[train]).cost(X[test], y[test]),
                plain=plain.cost(X[test], y[test]),
                robust=robust.cost(X[test], y[test]),
                bound=robust.certificate_.upper,
            )
        )
    return rows


def table(rows: list[DemoRow], days: int) -> str:
    """Return the table as text."""
    lines = [
        f"Cost a day over the last {TEST_DAYS} days, after learning from {days} days",
        f"(backorder {BACKORDER:g}, holding {HOLDING:g}; bound: what the next days cost at most if",
        "they vary as past blocks of days did, with 95 % confidence)",
        "",
        f"{'':10}{'constant':>9}{'plain':>9}{'Surefoot':>10}{'bound':>9}",
    ]
    lines += [
        f"{row.product:10}{row.constant:9.2f}{row.plain:9.2f}{row.robust:10.2f}{row.bound:9.2f}"
        + (" *" if row.above else "")
        for row in rows
    ]
    sums = [sum(getattr(row, name) for row in rows) for name in ("constant", "plain", "robust")]
    lines += ["", f"{'all':10}{sums[0]:9.2f}{sums[1]:9.2f}{sums[2]:10.2f}"]
    if any(row.above for row in rows):
        lines += ["", *WHY_ABOVE]
    return "\n".join(lines)


def draw(studies: dict[int, list[DemoRow]], shown: int, path: Path) -> None:
    """Draw total cost against days learned from, and the costs of each product at one of them."""
    styles = {
        "constant": ("constant order", "#9a9a9a"),
        "plain": ("plain linear policy", "#c8553d"),
        "robust": ("Surefoot", "#1f6f8b"),
    }
    # A figure of its own, without pyplot: no window, no global state.
    figure = require_matplotlib("matplotlib.figure").Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
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


def write_page_on(data: YazData, path: Path) -> None:
    """Report on one ingredient, judged on the last 165 days in order of time."""
    frame = restaurant(data, REPORTED)[-(TEST_DAYS + REPORT_DAYS) :]
    X, y = frame.drop(REPORTED), frame[REPORTED].to_numpy().astype(np.float64)
    flags = ["is_holiday", "weekend"]
    policy = PreparedPolicy(RobustNewsvendor(BACKORDER, HOLDING, frozen=flags))
    policy.fit(X, y, time=X["date"])
    origin = Origin(source="the restaurant's data, which come along", command="surefoot demo")
    write_report(
        policy, X, y, path, outcome=REPORTED, time="date",
        splits=RollingWindow(REPORT_DAYS, REPORT_STEP), origin=origin,
    )  # fmt: skip


def run_demo(path: Path, report: Path, *, days: int) -> None:
    """Fit, print the table, write the picture and the page."""
    check_target(path, FORMATS)
    check_target(report, SUFFIXES, "--report")
    require_matplotlib()
    data = load_yaz(drop_closed=True)
    began = time.perf_counter()
    windows = sorted({*WINDOWS, days})
    studies = {}
    for window in windows:
        _tell(f"learning from {window} days ...")
        studies[window] = judge(data, window, bounded=window == days)
    _tell("")
    print(table(studies[days], days))
    with replaced(path) as temporary:
        draw(studies, days, temporary)
    print(f"\nPicture: {path}")
    _tell(f"report on {REPORTED} ...")
    write_page_on(data, report)
    _tell("")
    print(f"Report on {REPORTED}: {report}. All in {time.perf_counter() - began:.0f} s.")


def _tell(words: str) -> None:
    """Show what is being worked on in place of what was, where someone watches."""
    if sys.stderr.isatty():
        print(f"\r{words:40}\r", end="", file=sys.stderr, flush=True)
