"""Folders of Parquet files: read by the workers, with the answers of the same frame."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from surefoot import RollingWindow, fit_many
from surefoot.exceptions import InvalidInputError
from surefoot.panels import sources

BY = ("shop", "product")


@pytest.fixture(params=[("shop",), ("shop", "product")], ids=["by shop", "by shop and product"])
def folder(frame, tmp_path, request):
    columns = pa.schema([(name, pa.string()) for name in request.param])
    table = pa.Table.from_pandas(frame.astype({"shop": str}), preserve_index=False)
    for name in request.param:
        k = table.column_names.index(name)
        table = table.set_column(k, name, table[name].cast(pa.string()))
    ds.write_dataset(
        table,
        tmp_path / "panel",
        format="parquet",
        partitioning=ds.partitioning(columns, flavor="hive"),
    )
    return tmp_path / "panel"


def test_a_folder_gives_the_policies_of_the_frame(frame, folder, quick):
    from_folder = fit_many(folder, BY, "sales", model=quick, time="date", task_size=2)
    from_frame = fit_many(
        frame, BY, "sales", model=quick, time="date", contexts=from_folder.columns.contexts
    )
    assert [r.key for r in from_folder.records] == [r.key for r in from_frame.records]
    np.testing.assert_array_equal(from_folder.decide(frame), from_frame.decide(frame))
    assert isinstance(from_folder.summary(), pd.DataFrame)
    window = RollingWindow(15, 5)
    assert from_folder.evaluate(folder, window).equals(from_frame.evaluate(frame, window))


def test_a_partition_of_many_series_is_a_task_of_its_own(folder, quick):
    told = []
    fit_many(folder, BY, "sales", model=quick, time="date", task_size=4, progress=told.append)
    assert [one.series for one in told] == ([3, 6] if list(folder.glob("*/*.parquet")) else [4, 6])


def test_the_row_numbers_of_pandas_are_no_context(frame, tmp_path, quick):
    for shop, rows in frame.groupby("shop"):
        (tmp_path / f"shop={shop}").mkdir()
        rows.drop(columns="shop").to_parquet(tmp_path / f"shop={shop}" / "part-0.parquet")
    table = fit_many(tmp_path, BY, "sales", model=quick, time="date")
    assert table.columns.contexts == ("date", "price", "promo")


def test_a_damaged_file_costs_its_own_series_only(folder, quick):
    file = sorted(folder.rglob("*.parquet"))[-1]
    file.write_bytes(file.read_bytes()[:-40] + b"x" * 40)
    table = fit_many(folder, BY, "sales", model=quick, time="date")
    failed = [record for record in table.records if record.status == "failed"]
    assert len(failed) == 1
    assert failed[0].key[0] == "south"
    assert failed[0].reason.startswith("The rows cannot be read: ")
    assert len(table) - 1 == (5 if "product=" in str(file) else 3)


def test_a_folder_of_other_files_is_refused(tmp_path, quick):
    (tmp_path / "a.parquet").write_text("no Parquet")
    with pytest.raises(InvalidInputError, match="data must be a folder of Parquet files, got"):
        fit_many(tmp_path, BY, "sales", model=quick)


def test_workers_read_their_own_files(folder, quick):
    found = sources.source_of(str(folder))
    named = sources.named_columns(found, BY, "sales", "date", None)
    for task in found.tasks(named, 1):
        assert task.func is sources.read_partitions
        partitions, columns = task.args  # all that a worker is sent
        assert columns == named
        assert all(isinstance(file, str) for _, files in partitions for file in files)


def test_a_folder_cut_otherwise_is_refused(folder, quick):
    with pytest.raises(InvalidInputError, match="must be partitioned by columns of by"):
        fit_many(folder, ("product",) if "product=" not in str(list(folder.rglob("*"))) else "promo",
                 "sales", model=quick)  # fmt: skip


def test_an_empty_folder_is_refused(tmp_path, quick):
    with pytest.raises(InvalidInputError, match="folder of Parquet files, got .* without any"):
        fit_many(tmp_path, BY, "sales", model=quick)


def test_categories_and_gaps_of_parquet_are_read():
    column = pa.chunked_array([pa.array(["a", None, "b"]).dictionary_encode()])
    assert sources.arrow_values(column).tolist() == ["a", None, "b"]
    assert np.isnan(sources.arrow_values(pa.chunked_array([pa.array([1, None])]))[1])


def test_dates_of_python_are_dates(frame):
    objects = frame.assign(date=frame["date"].dt.date)
    seconds, days = (
        sources.named_columns(sources.source_of(one), "shop", "sales", "date", None)
        for one in (frame, objects)
    )
    assert seconds == days
    assert "date" in days.contexts
    assert "promo" not in sources.source_of(objects).dates
