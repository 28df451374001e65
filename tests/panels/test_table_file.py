"""A table survives a file; a file made by somebody else runs nothing."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surefoot import PolicyTable, RollingWindow, fit_many
from surefoot.exceptions import InvalidInputError, InvalidTypeError, ModelFileError

BY = ("shop", "product")


@pytest.fixture(scope="module")
def table(frame, quick):
    odd = frame.assign(sales=frame["sales"].where(frame["product"] != 2))
    return fit_many(odd, BY, "sales", model=quick, time="date", random_state=3)


@pytest.fixture
def path(table, tmp_path):
    table.save(tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


def test_a_table_comes_back_as_it_was(table, path, frame):
    again = PolicyTable.load(path)
    known = frame[frame["product"] != 2]
    np.testing.assert_array_equal(again.decide(known), table.decide(known))
    assert again.summary().equals(table.summary())
    assert (again.columns, again.random_state) == (table.columns, 3)
    assert again.time_taken == ""
    window = RollingWindow(15, 5)
    good = frame[frame["product"] == 1]
    assert again.evaluate(good, window).equals(table.evaluate(good, window))


def test_a_table_from_a_folder_holds_its_models(frame, quick, tmp_path):
    kept = fit_many(
        frame, BY, "sales", model=quick, time="date", folder=tmp_path / "parts", task_size=2
    )
    assert all(record.model is None for record in kept.records)
    kept.save(tmp_path / "t.parquet")
    np.testing.assert_array_equal(
        PolicyTable.load(tmp_path / "t.parquet").decide(frame), kept.decide(frame)
    )


def test_a_path_must_be_one(table):
    for use in (table.save, PolicyTable.load):
        with pytest.raises(
            InvalidTypeError, match="^path must be the path of a folder or file, got None"
        ):
            use(None)


def test_few_models_stay_ready(table, frame, monkeypatch):
    known = frame[frame["product"] != 2]
    expected = table.decide(known)
    monkeypatch.setattr("surefoot.panels.policy_table.READY_MODELS", 1)
    table._ready.clear()
    np.testing.assert_array_equal(table.decide(known), expected)
    assert len(table._ready) == 1


def changed(path, change):
    """Write the file anew with its rows changed."""
    given = pq.read_table(path)
    rows = given.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=given.schema), path)


def test_another_model_in_the_file_is_checked_when_used(path, frame):
    changed(path, lambda rows: rows[0].update(model=b"cos\nsystem\n(S'true'\ntR."))
    again = PolicyTable.load(path)
    with pytest.raises(ModelFileError):
        again.decide(frame[(frame["shop"] == "north") & (frame["product"] == 1)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[0].update(model=None), "a model for fitted series alone"),
        (lambda rows: rows[1].update(model=b"x"), "a model for fitted series alone"),
        (lambda rows: rows[0].update(key=["north"]), "keys of 2 parts"),
        (lambda rows: rows[0].update(rows=-1), "series that can be"),
        (lambda rows: rows[0].update(warnings=None), "must have all its parts"),
    ],
)
def test_rows_that_cannot_be_are_refused(path, change, message):
    changed(path, change)
    with pytest.raises(ModelFileError, match=message):
        PolicyTable.load(path)


def test_a_series_twice_is_refused(path):
    changed(path, lambda rows: rows.append(rows[0]))
    with pytest.raises(InvalidInputError, match="each series in one place"):
        PolicyTable.load(path)


def test_other_files_are_refused(path, tmp_path):
    with pytest.raises(ModelFileError, match="There is no table of policies at"):
        PolicyTable.load(tmp_path / "none.parquet")
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1]}), other)
    with pytest.raises(ModelFileError, match="got another Parquet file"):
        PolicyTable.load(other)
    other.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ModelFileError, match=r"got a damaged file\.$"):
        PolicyTable.load(other)
    given = pq.read_table(path)
    meta = {"format": "surefoot-panel", "format_version": 99}
    pq.write_table(given.replace_schema_metadata({b"surefoot": json.dumps(meta).encode()}), other)
    with pytest.raises(ModelFileError, match="of version 2, got surefoot-panel 99"):
        PolicyTable.load(other)


def test_ctrl_c_while_a_table_is_written_leaves_nothing(table, tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", interrupt)
    with pytest.raises(KeyboardInterrupt):
        table.save(tmp_path / "policies.parquet")
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_named(table, tmp_path):
    with pytest.raises(ModelFileError, match="The table cannot be written to"):
        table.save(tmp_path / "no" / "such" / "place.parquet")


def test_a_damaged_model_in_the_table_is_called_that(path):
    changed(path, lambda rows: rows[0].update(model=rows[0]["model"][:500]))
    table = PolicyTable.load(path)
    name = " / ".join(table.records[0].key)
    with pytest.raises(
        ModelFileError, match=f"^The model of {name} must be a Surefoot model, got a dam"
    ):
        table[table.records[0].key]
