"""What commands show: sentences and tables for people, one JSON object for machines."""

import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from surefoot.exceptions import with_places
from surefoot.io.table_columns import IGNORED

if TYPE_CHECKING:
    from surefoot.cli.economics import Economics
    from surefoot.io import TableFile

# Most columns of a table that are listed one by one.
SHOWN_COLUMNS = 40


class Screen:
    """Where a command speaks: results on standard output, notes and progress on standard error.

    With ``as_json`` nothing but one JSON object goes to standard output, with all notes in it.
    """

    def __init__(self, *, as_json: bool = False, results: bool = True) -> None:
        self.as_json = as_json
        self.notes: list[str] = []
        self.seconds = 0.0
        # Where standard output is for the data themselves, people read standard error.
        self._out = Console(file=sys.stdout if results else sys.stderr, highlight=False, markup=False)
        self._err = Console(file=sys.stderr, highlight=False, markup=False)

    def say(self, text: str = "") -> None:
        """Show a sentence to a person."""
        if not self.as_json:
            # Only a terminal is cut to its width: files and pipes keep whole sentences.
            self._out.print(text, soft_wrap=not self._out.is_terminal)

    def note(self, text: str) -> None:
        """Show what deserves a look; machines find it under "notes"."""
        text = " ".join(text.split())
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.as_json:
            self._err.print(f"note: {text}", soft_wrap=not self._err.is_terminal)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], *, right: int = 0) -> None:
        """Show rows under a header; the last ``right`` columns are numbers."""
        if self.as_json:
            return
        grid = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for place, name in enumerate(header):
            number = place >= len(header) - right
            grid.add_column(name, justify="right" if number else "left", overflow="fold")
        for row in rows:
            grid.add_row(*row)
        self._out.print(grid)

    def result(self, result: dict[str, Any]) -> None:
        """Show the whole result to a machine."""
        if self.as_json:
            text = json.dumps(_plain({**result, "notes": self.notes}), indent=1, allow_nan=False)
            print(text, file=sys.stdout)

    @contextmanager
    def working(self, what: str, place: Callable[[int], str] | None = None) -> Iterator[None]:
        """Show that something is being worked on, and turn its warnings into notes.

        ``place`` says where a row stands in the file, which people know better than its number.
        """
        began = time.perf_counter()
        with warnings.catch_warnings(record=True, action="always") as caught:
            if self._err.is_terminal and not self.as_json:
                with self._err.status(what):
                    yield
            else:
                yield
        for one in caught:
            sentence = str(one.message)
            self.note(sentence if place is None else with_places(sentence, place))
        self.seconds = time.perf_counter() - began

    @contextmanager
    def progress(self) -> Iterator["Progress"]:
        """Show a bar with the time left, where someone watches."""
        bar = Progress(
            TextColumn("{task.description:28.28}"), BarColumn(bar_width=24),
            TextColumn("{task.completed} of {task.total}"), TimeRemainingColumn(),
            console=self._err, transient=True, disable=not self._err.is_terminal or self.as_json,
        )  # fmt: skip
        with bar:
            bar.add_task("", total=None)
            yield bar


def _plain(value: Any) -> Any:
    """Return a value as JSON can say it: infinity and NaN become null."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show_table(screen: Screen, table: "TableFile", *, columns: bool = True) -> None:
    """Say what was read, and what was decided about it."""
    screen.say(f"{table.name}: {len(table):,} rows, {len(table.columns)} columns.")
    for note in table.notes:
        screen.say(f"  {note}")
    if not columns:
        return
    listed = sorted(table.columns, key=lambda column: column.kind == IGNORED)[:SHOWN_COLUMNS]
    screen.table(["column", "read as", "why"], [(c.name, c.kind, c.why) for c in listed])
    if len(table.columns) > SHOWN_COLUMNS:
        screen.say(f"... and {len(table.columns) - SHOWN_COLUMNS} more.")


def show_economics(screen: Screen, economics: "Economics") -> None:
    """Say what a unit costs and what follows for orders, with a note where that is hard to believe."""
    screen.say(economics.sentence())
    doubt = economics.doubt()
    if doubt is not None:
        screen.note(doubt)


def listed_columns(table: "TableFile") -> list[dict[str, str]]:
    """Return what each column is, for machines."""
    return [{"name": c.name, "kind": c.kind, "why": c.why} for c in table.columns]
