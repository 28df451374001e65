"""Where the rows of a panel come from: a frame in memory, or a folder of Parquet files; frames out.

A source is cut into tasks. A task of a frame carries the rows of its series; one of a folder carries
names of files, which the worker reads itself, so that the driver never holds the data.
"""

import datetime
import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.exceptions import InvalidInputError, MissingExtraError, SurefootError
from surefoot.panels.series import Columns, PanelColumns, Series, raw_columns, split_series
from surefoot.tracing import load_arrow
from surefoot.validation import check_instance, listed_names, require_columns

PANDAS, POLARS = "pandas", "polars"
# The parts of the key that a folder names, and its files.
Partition = tuple[tuple[tuple[str, str], ...], list[str]]
# Some series, to be worked on by one worker: they are there, or are read, when it is called.
Task = Callable[[], Iterable[Series]]


class Source(NamedTuple):
    """A panel: its columns, and what cuts it into tasks of about so many series."""

    names: tuple[str, ...]
    categories: tuple[str, ...]
    dates: tuple[str, ...]
    tasks: Callable[[PanelColumns, int], list[Task]]


def frame_source(data: Any) -> Source:
    """Return the source that a pandas or polars frame, or a table, is; it is cut by key."""
    columns, categories = raw_columns(data)

    def tasks(named: PanelColumns, size: int) -> list[Task]:
        members = list(split_series(columns, named))
        return [partial(tuple, members[k : k + size]) for k in range(0, len(members), size)]

    dates = tuple(name for name, values in columns.items() if _holds_dates(values))
    return Source(tuple(columns), categories, dates, tasks)


def read_partitions(partitions: Sequence[Partition], named: PanelColumns) -> Iterator[Series]:
    """Read the files of some partitions and yield their series."""
    arrow = load_arrow("pyarrow")
    for keys, files in partitions:
        known = dict(keys)
        try:
            yield from list(split_series(_read_files(files, known, named), named))
        except (arrow.ArrowException, OSError, SurefootError) as error:
            # Where the folder does not name the whole key, the file has to.
            key = tuple(known.get(name, files[0]) for name in named.by)
            fault = f"The rows cannot be read: {error}"
            yield Series(key, {}, None, np.zeros(0, dtype=np.int64), fault=fault)


def _read_files(files: Sequence[str], known: dict[str, str], named: PanelColumns) -> Columns:
    """Return the columns of a partition that matter, with those that its folder names."""
    arrow, parquet = load_arrow("pyarrow"), load_arrow("pyarrow.parquet")
    wanted = [*named.by, named.outcome, *named.contexts, *([named.time] if named.time else [])]
    read = list(dict.fromkeys(name for name in wanted if name not in known))
    whole = arrow.concat_tables([parquet.ParquetFile(file).read(columns=read) for file in files])
    columns = {name: arrow_values(whole.column(name)) for name in read if name in whole.column_names}
    folders = {name: np.full(whole.num_rows, value, dtype=object) for name, value in known.items()}
    return {**columns, **folders}


def parquet_source(folder: Path) -> Source:
    """Return a folder of Parquet files, in folders ``column=value`` for (some of) the key columns."""
    arrow, dataset = load_arrow("pyarrow"), load_arrow("pyarrow.dataset")
    try:
        data = dataset.dataset(folder, format="parquet", partitioning="hive")
    except (arrow.ArrowException, OSError) as error:
        raise InvalidInputError(
            f"data must be a folder of Parquet files, got {folder}: {error}."
        ) from error
    fragments = list(data.get_fragments())
    if not fragments:
        raise InvalidInputError(f"data must be a folder of Parquet files, got {folder} without any.")
    files: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for fragment in sorted(fragments, key=lambda one: str(one.path)):
        keys = dataset.get_partition_keys(fragment.partition_expression)
        key = tuple((name, str(value)) for name, value in keys.items())
        files.setdefault(key, []).append(str(fragment.path))
    schema, types = data.schema, arrow.types
    return Source(
        # The numbers that a pandas frame gives its rows are written along, and say nothing about them.
        tuple(name for name in schema.names if not name.startswith("__index_level_")),
        tuple(f.name for f in schema if types.is_dictionary(f.type)),
        tuple(f.name for f in schema if types.is_date(f.type) or types.is_timestamp(f.type)),
        partial(_partition_tasks, list(files.items())),
    )


def _partition_tasks(partitions: list[Partition], named: PanelColumns, size: int) -> list[Task]:
    """Give each worker some partitions; all files of a key must lie in one.

    A partition that names a part of the key only holds nobody knows how many series, and is a task.
    """
    stray = [name for keys, _ in partitions for name, _ in keys if name not in named.by]
    if stray:
        raise InvalidInputError(
            f"data must be partitioned by columns of by ({', '.join(named.by)}), got {stray[0]!r}: "
            "a series would be cut in pieces."
        )
    size = size if all(len(keys) == len(named.by) for keys, _ in partitions) else 1
    return [
        partial(read_partitions, partitions[k : k + size], named)
        for k in range(0, len(partitions), size)
    ]


def source_of(data: Any) -> Source:
    """Return the source that data are."""
    if isinstance(data, str | Path):
        folder = Path(data)
        if not folder.is_dir():
            raise InvalidInputError(f"data must be a frame or a folder of Parquet files, got {data}.")
        return parquet_source(folder)
    return frame_source(data)


def _holds_dates(values: NDArray[Any]) -> bool:
    """Whether a column holds dates, of NumPy or, as Spark hands them over, of Python."""
    if values.dtype.kind != "O":
        return values.dtype.kind == "M"
    present = [value for value in values.tolist() if value is not None]
    return bool(present) and all(isinstance(value, datetime.date) for value in present)


def named_columns(
    source: Source, by: Sequence[str] | str, outcome: str, time: str | None, contexts: Any
) -> PanelColumns:
    """Return what each column is for; by default all columns that are left are contexts.

    A time that is no date orders rows and no more: a policy that is linear in it would follow a trend
    beyond everything seen.
    """
    keys = listed_names("by", by)
    if not keys or len(set(keys)) != len(keys):
        raise InvalidInputError(f"by must name distinct columns, at least one, got {keys!r}.")
    roles = [*keys, outcome]
    if time is not None:
        check_instance("time", time, str, "the name of a column")
        if time in roles:
            raise InvalidInputError(f"time must be neither a key nor the outcome, got {time!r}.")
    require_columns("data", source.names, [*roles, *([] if time is None else [time])])
    if contexts is None:
        aside = {*roles, *([time] if time not in source.dates else [])}
        contexts = [name for name in source.names if name not in aside]
    chosen = listed_names("contexts", contexts)
    require_columns("data", source.names, chosen)
    both = [name for name in chosen if name in roles]
    if both:
        raise InvalidInputError(f"contexts must not hold keys or the outcome, got {both[0]!r}.")
    if not chosen:
        raise InvalidInputError("contexts must name at least one column, got none.")
    if outcome in keys:
        raise InvalidInputError(f"outcome must not be a column of by, got {outcome!r}.")
    declared = tuple(name for name in chosen if name in source.categories)
    return PanelColumns(keys, outcome, time, chosen, declared)


def arrow_values(column: Any) -> NDArray[Any]:
    """Return a column of a Parquet file as NumPy has it; gaps become NaN, NaT or None."""
    if "dictionary" in str(column.type):
        column = column.cast(column.type.value_type)
    return np.asarray(column.to_numpy())


def make_of(data: Any) -> str | None:
    """Return which library a frame is from, or None."""
    home = type(data).__module__.partition(".")[0]
    return home if home in (PANDAS, POLARS) else None


def make_frame(columns: dict[str, list[Any]], make: str | None) -> Any:
    """Return columns as a frame of pandas or polars; None takes what is installed."""
    if make is None:
        make = PANDAS if importlib.util.find_spec(PANDAS) is not None else POLARS
    try:
        library = importlib.import_module(make)
    except ImportError as error:
        raise MissingExtraError(f"A frame needs {make}: pip install {make}") from error
    return library.DataFrame(columns)
