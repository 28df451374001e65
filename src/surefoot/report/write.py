"""Write the report of a fitted model to one file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from surefoot.comparison import Splits
from surefoot.exceptions import InvalidTypeError
from surefoot.io.writing import check_target, replaced
from surefoot.report.facts import Facts, checked_policy, gather
from surefoot.report.page import page
from surefoot.report.rows import Origin

SUFFIXES = (".html", ".htm")


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | Path,
    *,
    outcome: str = "outcome",
    time: Any = None,
    splits: Splits | None = None,
    origin: Origin | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Path:
    """Write what a model decides, at what cost and how surely, as one HTML file.

    The file holds everything: no script, nothing to load, light and dark, for a screen, a telephone
    and A4. In it: what is decided and what that costs; what is guaranteed, and whether a cost lies
    above it; the data and what deserves a look; decisions against outcomes; costs out of sample beside
    simpler ways to decide, with paired bootstrap intervals; what a shift of the data would cost; which
    columns matter, and which the adversary uses; and what is needed to repeat it.

    Costs out of sample come from fresh copies of the model that learn from some of these rows and
    decide on others, so this takes about as long as ten fits. The same rows give the same bytes.

    Parameters
    ----------
    model
        A fitted ``RobustNewsvendor``, ``RobustPolicy`` or ``PreparedPolicy`` around one of these.
    X, y
        The rows to report on: those of the fit, or later ones.
    path
        Where the file goes, ending in .html; one that is there is replaced, in one step.
    outcome
        What the outcome is called.
    time
        The day of each row: the name of a column of X, or one day for each row. Rows are then put in
        order of time and judged in that order.
    splits
        ``Folds(...)`` or ``RollingWindow(...)``; None is five folds, or with ``time`` five windows.
    origin
        Where the rows come from, as the command line knows it.
    on_progress
        Called before each fit with its name.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import surefoot
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=40, s=3, seed=0)
    >>> model = surefoot.RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)
    >>> path = surefoot.write_report(model, data.X, data.y, pathlib.Path(tempfile.mkdtemp()) / "r.html")
    >>> path.read_text().startswith("<!DOCTYPE html>")
    True
    """
    checked_policy(model)
    if not isinstance(path, str | Path):
        raise InvalidTypeError(f"path must be where the report goes, got {path!r}.")
    target = check_target(Path(path), SUFFIXES, "path")
    if not isinstance(outcome, str) or not outcome:
        raise InvalidTypeError(f"outcome must be what the outcome is called, got {outcome!r}.")
    facts = gather(
        model, X, y, outcome=outcome, time=time, splits=splits, origin=origin, on_progress=on_progress
    )
    write_page(facts, target)
    return target


def write_page(facts: Facts, path: Path) -> None:
    """Write what was gathered, whole or not at all."""
    text = page(facts)
    with replaced(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
