"""Options that belong together, as commands hand them on. Nothing slow is imported here."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Which columns of a table play a part of their own.

    Attributes
    ----------
    outcome
        What was demanded.
    time
        The day of each row, by which rows are put in order; None leaves them as they are.
    categories
        Columns of numbers that are names, such as a store's.
    ignore
        Columns to leave out.
    by
        Columns that name a series; one policy is fitted for each. Empty is one policy for all rows.
    """

    outcome: str
    time: str | None = None
    categories: Sequence[str] = ()
    ignore: Sequence[str] = ()
    by: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class CostColumns:
    """Columns with the costs of a unit in each row; None where all rows share a number."""

    backorder: str | None = None
    holding: str | None = None

    @property
    def given(self) -> dict[str, str]:
        """The columns that were named, by what they cost."""
        columns = {"backorder": self.backorder, "holding": self.holding}
        return {cost: name for cost, name in columns.items() if name is not None}


@dataclass(frozen=True, kw_only=True)
class Judging:
    """How ``compare`` splits rows: into folds, or into windows in order of time; all rows or some."""

    folds: int | None = None
    repeats: int | None = None
    window: int | None = None
    test: int | None = None
    step: int | None = None
    all_rows: bool = False


@dataclass(frozen=True, kw_only=True)
class Stream:
    """What ``learn`` reads and writes.

    Attributes
    ----------
    input, format, follow
        A file or "-", "csv" or "jsonl" (None: by the file's name), and whether to wait for more.
    out, checkpoint, every
        Where decisions go, where the state is kept, and after how many lines.
    skip
        Whether a bad line is passed over rather than ending the work.
    """

    input: str
    format: str | None = None
    follow: bool = False
    out: Path | None = None
    checkpoint: Path | None = None
    every: int = 100
    skip: bool = False


@dataclass(frozen=True, kw_only=True)
class Learning:
    """What ``learn`` learns: the question, and what to do about drift."""

    model: Path | None = None
    radius: float | None = None
    decay: bool = False
    restart: bool = False
    window: int | None = None
