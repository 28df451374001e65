"""A table of policies as one Parquet file. Models in it are archives of ours; nothing is unpickled."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from surefoot.exceptions import ModelFileError
from surefoot.io.writing import whole
from surefoot.panels.pooling import PooledPolicy
from surefoot.panels.records import (
    BORROWED,
    FAILED,
    FITTED,
    SeriesRecord,
    plain_record,
    record_from_plain,
)
from surefoot.panels.series import PanelColumns
from surefoot.tracing import load_arrow
from surefoot.validation import check_integer, check_number

FORMAT, FORMAT_VERSION = "surefoot-panel", 2
_META, _POOLED = b"surefoot", b"surefoot-pooled"
# The key is one column of lists, beside one column for each part of it that people can filter by.
_NUMBERS = ("radius", "gap", "cost", "constant_cost", "constant", "mean", "size")
_TEXTS = ("status", "reason", "digest")
# Series of a row group: so many models are in memory at a time while a table is written.
GROUP = 1_000


def write_table_file(
    path: Path, columns: PanelColumns, records: Iterable[SeriesRecord], random_state: int,
    pooled: PooledPolicy | None,
) -> None:  # fmt: skip
    """Write the file, whole or not at all."""
    arrow, parquet = load_arrow("pyarrow"), load_arrow("pyarrow.parquet")
    meta = {
        "format": FORMAT, "format_version": FORMAT_VERSION, "columns": asdict(columns),
        "random_state": random_state,
        # Text, as JSON has no infinity.
        "pooled_rows": None if pooled is None else str(pooled.rows),
    }  # fmt: skip
    notes = {_META: json.dumps(meta).encode()} | ({} if pooled is None else {_POOLED: pooled.model})
    texts = arrow.list_(arrow.string())
    schema = arrow.schema(
        [("key", texts), ("rows", arrow.int64())]
        + [(name, arrow.string()) for name in _TEXTS]
        + [(name, arrow.float64()) for name in _NUMBERS]
        + [("warnings", texts), ("model", arrow.large_binary())],
        metadata=notes,
    )
    try:
        with whole(path) as temporary, parquet.ParquetWriter(temporary, schema) as writer:
            for group in _groups(records):
                rows = [{**plain_record(record), "model": record.model} for record in group]
                writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
    except OSError as error:
        reason = error.strerror or error  # the whole text names a file that is no more
        raise ModelFileError(f"The table cannot be written to {path}: {reason}.") from error


def _groups(records: Iterable[SeriesRecord]) -> Iterable[list[SeriesRecord]]:
    group: list[SeriesRecord] = []
    for record in records:
        group.append(record)
        if len(group) == GROUP:
            yield group
            group = []
    yield group


def read_table_file(
    path: Path,
) -> tuple[PanelColumns, list[SeriesRecord], int, PooledPolicy | None]:
    """Read and check the file."""
    arrow, parquet = load_arrow("pyarrow"), load_arrow("pyarrow.parquet")
    if not path.is_file():
        raise ModelFileError(f"There is no table of policies at {path}.")
    try:
        with parquet.ParquetFile(path) as file:
            columns, seed, pooled = _settings(path, file.schema_arrow.metadata or {})
            rows = file.read().to_pylist()
    except (arrow.ArrowException, OSError) as error:
        # What Parquet says about it has several lines and helps nobody.
        raise ModelFileError(f"{path} must be a table of policies, got a damaged file.") from error
    records = [_record(path, columns, row) for row in rows]
    if pooled is None and any(record.status == BORROWED for record in records):
        raise ModelFileError(f"{path} must hold a pooled policy for series that borrow, got none.")
    return columns, records, seed, pooled


def _settings(path: Path, notes: Any) -> tuple[PanelColumns, int, PooledPolicy | None]:
    try:
        meta = json.loads(notes.get(_META, b"null"))
        if meta["format"] != FORMAT or meta["format_version"] != FORMAT_VERSION:
            raise ModelFileError(
                f"{path} must be a table of policies of version {FORMAT_VERSION}, got "
                f"{meta['format']} {meta['format_version']}: change the version of Surefoot."
            )
        given = meta["columns"]
        lists = {name: tuple(map(str, given[name])) for name in ("by", "contexts", "categories")}
        time = None if given["time"] is None else str(given["time"])
        seed = check_integer("random_state", meta["random_state"], at_least=0)
        worth, pooled = meta["pooled_rows"], None
        if worth is not None:
            pooled = PooledPolicy(
                notes[_POOLED], check_number("rows", float(worth), at_least=0, finite=False)
            )
        return PanelColumns(outcome=str(given["outcome"]), time=time, **lists), seed, pooled
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"{path} must be a table of policies, got another Parquet file."
        ) from error


def _record(path: Path, columns: PanelColumns, row: dict[str, Any]) -> SeriesRecord:
    record, model = record_from_plain(row), row.get("model")
    if len(record.key) != len(columns.by):
        raise ModelFileError(f"{path} must have keys of {len(columns.by)} parts, got {record.key}.")
    if (record.status == FITTED) != isinstance(model, bytes):
        raise ModelFileError(f"{path} must hold a model for fitted series alone, got {record.key}.")
    if record.rows < 0 or math.isinf(record.radius) or record.status not in (FITTED, FAILED, BORROWED):
        raise ModelFileError(f"{path} must hold series that can be, got {record.key}.")
    return replace(record, model=model)
