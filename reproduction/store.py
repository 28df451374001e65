"""The results store: one SQLite file, one row per finished cell, written the moment it ends."""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import astuple
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from reproduction.result import COLUMNS, DONE, REFUSED, Result
from reproduction.suite import Cell
from surefoot.exceptions import SurefootError

FORMAT, VERSION = "surefoot-results", 1
_MAGIC = b"SQLite format 3\x00"
_BUSY_SECONDS = 60.0

_SCHEMA = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE cells ({", ".join(f"{name} PRIMARY KEY" if name == "key" else name for name in COLUMNS)});
CREATE TABLE timings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class ResultStoreError(SurefootError, ValueError):
    """A results store cannot be used: damaged, foreign, of a newer version, or of another run."""


class ResultStore:
    """Finished cells on disk. A row is there for good once ``append`` returns.

    Only one process writes; any number may read at the same time. A file that is not a results
    store is refused and left as it is.

    Parameters
    ----------
    path
        The file; it is made if it is not there.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with ResultStore(Path(folder.name) / "results.sqlite") as store:
    ...     len(store.results())
    0
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        _refuse_foreign_bytes(self.path)
        try:
            self._connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise ResultStoreError(
                f"The results store must be a file that can be written, got {self.path}: {error}."
            ) from error
        try:
            self._check_or_make()
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise _damaged(self.path, error) from error
        except ResultStoreError:
            self._connection.close()
            raise

    def _check_or_make(self) -> None:
        tables = self._query("SELECT name FROM sqlite_master WHERE type = 'table'")
        if not tables:
            self._connection.execute("PRAGMA journal_mode = WAL")
            marks = f"INSERT INTO meta VALUES ('format', '{FORMAT}'), ('version', '{VERSION}');"
            self._connection.executescript(f"BEGIN; {_SCHEMA} {marks} COMMIT;")
            return
        if ("meta",) not in tables:
            raise _foreign(self.path, "a database of another program")
        meta = dict(self._query("SELECT name, value FROM meta"))
        if meta.get("format") != FORMAT:
            raise _foreign(self.path, f"format {meta.get('format')!r}")
        if meta.get("version") != str(VERSION):
            raise ResultStoreError(
                f"The results store {self.path} must be of version {VERSION}, got version "
                f"{meta.get('version')}: use the Surefoot that made it, or another --out."
            )
        (health,) = self._query("PRAGMA quick_check(1)")
        if health != ("ok",):
            raise _damaged(self.path, health[0])

    def _query(self, text: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with closing(self._connection.execute(text, values)) as cursor:
            return cursor.fetchall()

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file; everything appended is in it already."""
        self._connection.close()

    def append(self, result: Result) -> None:
        """Write one result; when this returns, no interruption can lose it."""
        marks = ", ".join("?" * len(COLUMNS))
        self._query(f"INSERT OR REPLACE INTO cells VALUES ({marks})", astuple(result))

    def results(self) -> list[Result]:
        """Return all results in the order in which they were finished."""
        try:
            rows = self._query(f"SELECT {', '.join(COLUMNS)} FROM cells ORDER BY rowid")
        except sqlite3.DatabaseError as error:
            raise _damaged(self.path, error) from error
        return [Result(*row) for row in rows]

    def pending(self, cells: Iterable[Cell], *, retry_failed: bool = False) -> list[Cell]:
        """Return the cells that have no result yet; with ``retry_failed``, also those that failed."""
        known = dict(self._query("SELECT key, status FROM cells"))
        settled = {key for key, status in known.items() if status in (DONE, REFUSED)}
        skip = settled if retry_failed else set(known)
        return [cell for cell in cells if cell.key not in skip]

    def claim(self, cells: Iterable[Cell]) -> None:
        """Remember the settings of the methods, or refuse if the store has them with other ones."""
        known = dict(self._query("SELECT name, value FROM settings"))
        for method in {cell.method.name: cell.method for cell in cells}.values():
            text = json.dumps(method.settings(), sort_keys=True)
            if known.setdefault(method.name, text) != text:
                raise ResultStoreError(
                    f"The results store {self.path} must hold {method.name} with the settings of "
                    f"this run, {text}, got {known[method.name]}: use another --out."
                )
            self._query("INSERT OR IGNORE INTO settings VALUES (?, ?)", (method.name, text))

    def settings(self) -> dict[str, dict[str, Any]]:
        """Return the settings of every method that was run, by name."""
        rows = self._query("SELECT name, value FROM settings ORDER BY rowid")
        return {name: json.loads(value) for name, value in rows}

    def timings(self) -> dict[str, dict[str, Any]]:
        """Return the measurements that were kept, by name."""
        rows = self._query("SELECT name, value FROM timings ORDER BY rowid")
        return {name: json.loads(value) for name, value in rows}

    def keep_timing(self, name: str, value: dict[str, Any]) -> None:
        """Keep one measurement."""
        self._query("INSERT OR REPLACE INTO timings VALUES (?, ?)", (name, json.dumps(value)))


def _refuse_foreign_bytes(path: Path) -> None:
    """Refuse before SQLite touches the file; an empty one is a store that was never begun."""
    if not path.parent.is_dir():
        raise ResultStoreError(f"The results store must lie in an existing folder, got {path}.")
    if path.is_dir():
        raise _foreign(path, "a folder")
    if path.exists():
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
        if head and head != _MAGIC:
            raise _foreign(path, f"a file that begins with {head!r}")


def _foreign(path: Path, got: str) -> ResultStoreError:
    return ResultStoreError(
        f"The results store must be a file that python -m reproduction made, got {path}, {got}: it is "
        "left as it is; use another --out."
    )


def _damaged(path: Path, error: object) -> ResultStoreError:
    return ResultStoreError(
        f"The results store must be an undamaged file, got {path}: {error}. It is left as it is; "
        "restore it from a copy or use another --out."
    )
