"""What is kept of each series: numbers for the summary, and the model in the library's safe format."""

import hashlib
import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.estimators.loading import from_parts
from surefoot.exceptions import ModelFileError
from surefoot.io import read_archive, write_archive
from surefoot.io.archive import archive_bytes, read_archive_bytes
from surefoot.panels.series import Key, key_order

FITTED, FAILED, BORROWED = "fitted", "failed", "borrowed"
_KIND = "panel part"


@dataclass(frozen=True)
class SeriesRecord:
    """The answer for one series.

    Attributes
    ----------
    key, rows
        Its name, one part for each column of ``by``, and its number of rows.
    status, reason
        "fitted", or "failed" with the reason as a sentence; "borrowed" where the series itself failed,
        and the pooled policy of all series decides.
    radius, gap
        The radius used and the certified gap, NaN where there is none.
    cost, constant_cost
        Mean cost on rows held out in cross-validation, of the policy and of the best constant order;
        NaN where the fit held no rows out (a radius of the user's own).
    constant
        The best constant order for its outcomes; NaN where it was not fitted.
    mean, size
        Of the outcomes and of their absolute values, where the series may borrow from others.
    warnings
        What the fit warned of.
    digest
        Of data and settings: the same series with the same settings is never fitted twice.
    model
        The model file; None where a part in a folder holds it, or where there is none.
    part
        The file in the folder of results that holds the model, empty where none does.
    """

    key: Key
    rows: int
    status: str
    reason: str = ""
    radius: float = math.nan
    gap: float = math.nan
    cost: float = math.nan
    constant_cost: float = math.nan
    constant: float = math.nan
    mean: float = math.nan
    size: float = math.nan
    warnings: tuple[str, ...] = ()
    digest: str = ""
    model: bytes | None = None
    part: str = ""

    @property
    def saving(self) -> float:
        """The share of the constant order's cost that the policy saves."""
        return 1.0 - self.cost / self.constant_cost if self.constant_cost > 0.0 else math.nan


def in_key_order(records: Iterable[SeriesRecord]) -> list[SeriesRecord]:
    """Return records sorted by key."""
    return sorted(records, key=lambda record: key_order(record.key))


def median_saving(records: Iterable[SeriesRecord]) -> float:
    """Return the median over fitted series of the share that they save, NaN where none is known."""
    savings = [one.saving for one in records if one.status == FITTED and math.isfinite(one.saving)]
    return statistics.median(savings) if savings else math.nan


def saving_words(saving: float) -> str:
    """Return what a median share saved says.

    >>> saving_words(0.123), saving_words(-0.05)
    ('median cost 12 % below the constant order', 'median cost 5 % above the constant order')
    """
    place = "below" if saving >= 0.0 else "above"
    return f"median cost {100 * abs(saving):.0f} % {place} the constant order"


def model_bytes(model: Any) -> bytes:
    """Return a fitted model as the bytes of its file."""
    return archive_bytes(*model.parts())


def model_from_bytes(data: bytes, name: str = "A model of the table") -> Any:
    """Return the model of a file's bytes, checked as ``surefoot.load`` does; messages call it so."""
    return from_parts(name, *read_archive_bytes(data, name))


def plain_record(record: SeriesRecord) -> dict[str, Any]:
    """Return a record without its model as JSON has it: no NaN."""
    plain = asdict(replace(record, model=None))
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in plain.items()
        if name not in ("model", "part")
    }


def record_from_plain(plain: Any) -> SeriesRecord:
    """Return the record that ``plain_record`` described, checked."""

    def number(name: str) -> float:
        return math.nan if plain[name] is None else float(plain[name])

    try:
        return SeriesRecord(
            key=tuple(map(str, plain["key"])), rows=int(plain["rows"]), status=str(plain["status"]),
            reason=str(plain["reason"]), radius=number("radius"), gap=number("gap"),
            cost=number("cost"), constant_cost=number("constant_cost"),
            constant=number("constant"), mean=number("mean"), size=number("size"),
            warnings=tuple(map(str, plain["warnings"])), digest=str(plain["digest"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"A series must have all its parts, got none for {error}.") from error


def write_part(folder: Path, records: Sequence[SeriesRecord]) -> list[SeriesRecord]:
    """Write the records of a finished task, whole or not at all; return them without their models."""
    name = hashlib.sha256("".join(record.digest for record in records).encode()).hexdigest()[:16]
    path = folder / f"part-{name}.surefoot"
    arrays = {
        f"model{k}": np.frombuffer(record.model, dtype=np.uint8)
        for k, record in enumerate(records)
        if record.model is not None
    }
    write_archive(path, {"kind": _KIND, "records": [plain_record(one) for one in records]}, arrays)
    return [replace(record, model=None, part=path.name) for record in records]


def read_part(path: Path) -> tuple[list[SeriesRecord], dict[str, bytes]]:
    """Return the records of a finished task, and their models by digest."""
    header, arrays = read_archive(path)
    listed = header.get("records")
    if header.get("kind") != _KIND or not isinstance(listed, list):
        raise ModelFileError(f"{path} must hold finished series, got another kind of file.")
    records = [replace(record_from_plain(plain), part=path.name) for plain in listed]
    models = {
        record.digest: arrays[f"model{k}"].tobytes()
        for k, record in enumerate(records)
        if f"model{k}" in arrays
    }
    lost = [one for one in records if one.status == FITTED and one.digest not in models]
    if lost:
        raise ModelFileError(f"{path} must hold a model for each fitted series, got {lost[0].key}.")
    return records, models


def settings_digest(settings: Any) -> str:
    """Return a fingerprint of settings that print the same in every process."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=repr).encode()).hexdigest()
