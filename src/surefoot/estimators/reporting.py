"""The report of a fitted model: asked for here, written upstairs."""

import importlib
from pathlib import Path
from typing import Any


class Reporting:
    """A fitted model that can be reported on."""

    def report(
        self,
        X: Any,
        y: Any,
        path: str | Path,
        *,
        outcome: str = "outcome",
        time: Any = None,
        splits: Any = None,
    ) -> Path:
        """Write what the model decides, at what cost and how surely, as one HTML file.

        The same as ``surefoot.write_report(model, X, y, path)``, which says what is in it.

        Parameters
        ----------
        X, y
            The rows to report on: those of the fit, or later ones. Costs out of sample come from
            fresh copies of the model that learn from some of these rows and decide on others.
        path
            Where the file goes; one that is there is replaced.
        outcome
            What the outcome is called.
        time
            The day of each row: the name of a column of X, or one day for each row. Rows are then put
            in order of time and judged in that order.
        splits
            Which rows to learn from and which to judge on, as in ``surefoot.compare``; None is five
            folds, or with ``time`` five windows.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from surefoot import Folds, RobustNewsvendor
        >>> from surefoot.datasets import synthetic
        >>> data = synthetic(n=40, s=3, seed=0)
        >>> model = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
        >>> "How much to order" in model.report(data.X, data.y, path, splits=Folds(2, 1)).read_text()
        True
        """
        # Not by import: reports lie above estimators. The front door knows where they are.
        front_door: Any = importlib.import_module("surefoot")
        written: Path = front_door.write_report(
            self, X, y, path, outcome=outcome, time=time, splits=splits
        )
        return written
