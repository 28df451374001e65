import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surefoot.checks import check
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.nominals import ParquetRows, parquet, row_batches
from surefoot.nominals import parquet as parquet_module

NAMES = ("price", "rain", "holiday")


def written(folder, X, y, *, files=3, group=400, dtype=np.float64):
    """Write rows as a folder of files with several row groups each."""
    folder.mkdir(exist_ok=True)
    for k, part in enumerate(np.array_split(np.arange(len(X)), files)):
        columns = {name: X[part, j].astype(dtype) for j, name in enumerate(NAMES)}
        table = pa.table({**columns, "sales": y[part].astype(dtype)})
        pq.write_table(table, folder / f"part-{k}.parquet", row_group_size=group)
    return folder


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5_000, 3)) * (1.0, 3.0, 0.0) + (5.0, -2.0, 1.0)
    return X, 20.0 + X[:, 0] + rng.exponential(2.0, 5_000)


@pytest.fixture
def folder(tmp_path, data):
    return written(tmp_path / "sales", *data)


def gathered(rows):
    X, y = zip(*rows.batches(), strict=True)
    return np.vstack(X), np.vstack(y)[:, 0]


def test_a_pass_gives_every_row_once_in_the_order_of_the_files(folder, data):
    rows = ParquetRows(folder, outcome="sales")
    assert (rows.n_rows, rows.n_columns, rows.n_products) == (5_000, 3, 1)
    for _ in range(2):
        X, y = gathered(rows)
        assert (data[0] == X).all()
        assert (y == data[1]).all()


def test_no_more_than_a_batch_is_held(folder, monkeypatch):
    monkeypatch.setattr(row_batches, "BATCH_NUMBERS", 4 * 100)
    monkeypatch.setattr(row_batches, "KEPT_NUMBERS", 4 * 50)
    rows = ParquetRows(folder, outcome="sales")
    assert max(len(X) for X, _ in rows.batches()) <= 100
    assert len(rows.survey.sample.contexts) == 50
    assert gathered(rows)[0].shape == (5_000, 3)


def test_the_survey_knows_moments_and_keeps_distinct_rows_of_all(folder, data, monkeypatch):
    monkeypatch.setattr(row_batches, "BATCH_NUMBERS", 4 * 100)
    monkeypatch.setattr(row_batches, "KEPT_NUMBERS", 4 * 500)
    found = ParquetRows(folder, outcome="sales").survey
    assert found.contexts.mean == pytest.approx(data[0].mean(axis=0), rel=1e-12)
    assert found.contexts.spread == pytest.approx(data[0].std(axis=0), rel=1e-12)
    assert found.contexts.spread[2] == 0.0
    assert (found.contexts.least == data[0].min(axis=0)).all()
    places = np.searchsorted(np.sort(data[1]), found.sample.outcomes[:, 0])
    assert len(np.unique(places)) == 500
    assert np.isin(found.sample.outcomes[:, 0], data[1]).all()
    assert abs(found.sample.outcomes.mean() - data[1].mean()) < 0.3


def test_draws_are_rows_and_all_come_up_alike(folder, data):
    rows = ParquetRows(folder, outcome="sales")
    rng = np.random.default_rng(1)
    drawn = np.concatenate([rows.sample(rng, 1_000)[1][:, 0] for _ in range(30)])
    assert np.isin(drawn, data[1]).all()
    counts = np.bincount(np.searchsorted(np.sort(data[1]), drawn) // 500, minlength=10)
    assert counts == pytest.approx(np.full(10, 3_000), rel=0.1)


def test_few_rows_are_drawn_from_few_row_groups(folder, monkeypatch):
    read = []
    given = ParquetRows._rows
    monkeypatch.setattr(
        ParquetRows,
        "_rows",
        lambda self, group, places: read.append(group) or given(self, group, places),
    )
    ParquetRows(folder, outcome="sales").sample(np.random.default_rng(0), 50)
    assert 1 <= len(read) <= parquet.GROUPS_A_DRAW


def test_it_keeps_what_nominals_must_keep(folder):
    check(ParquetRows(folder, outcome="sales"))


def test_one_file_several_products_and_whole_numbers(tmp_path, data):
    X, y = data
    table = pa.table({
        "open": X[:, 0] > 5.0, "visits": (10 * X[:, 0]).astype(np.int32), "tea": y, "cake": 2 * y,
    })  # fmt: skip
    pq.write_table(table, tmp_path / "shop.parquet")
    rows = ParquetRows(tmp_path / "shop.parquet", outcome=["tea", "cake"])
    assert repr(rows) == "ParquetRows(1 file, 5,000 rows, 2 columns, 2 products)"
    contexts, outcomes = next(rows.batches())
    assert contexts.dtype == np.float64
    assert (contexts[:, 0] == (X[:, 0] > 5.0)).all()
    assert (outcomes[:, 1] == 2 * y).all()
    assert ParquetRows(tmp_path / "shop.parquet", "tea", ["open"]).names == ("open",)


def test_folders_in_folders_are_searched_and_hidden_files_left(folder, data):
    inner = folder / "year=2024"
    written(inner, data[0][:10], data[1][:10], files=1)
    (folder / "_metadata.parquet").write_text("no rows")
    assert ParquetRows(folder, outcome="sales").n_rows == 5_010


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outcome": "profit"}, "must have the column 'profit', got price, rain, holiday, sales"),
        ({"outcome": ()}, "outcome must name distinct columns, at least one"),
        ({"outcome": "sales", "contexts": ["rain", "rain"]}, "contexts must name distinct columns"),
        ({"outcome": "sales", "contexts": ["sales"]}, "got the outcome 'sales'"),
        ({"outcome": "sales", "contexts": ["snow"]}, "must have the column 'snow'"),
        ({"outcome": [*NAMES, "sales"]}, "columns beside the outcome, got none"),
    ],
)
def test_columns_that_cannot_be_read_are_refused(folder, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        ParquetRows(folder, **arguments)


def test_folders_without_files_and_files_without_rows_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="got none in"):
        ParquetRows(tmp_path, outcome="sales")
    with pytest.raises(InvalidInputError, match="got nothing there"):
        ParquetRows(tmp_path / "nowhere", outcome="sales")
    (tmp_path / "text.parquet").write_text("price,sales\n1,2\n")
    with pytest.raises(InvalidInputError, match="text.parquet must be a Parquet file"):
        ParquetRows(tmp_path, outcome="sales")
    pq.write_table(pa.table({"x": np.zeros(0), "sales": np.zeros(0)}), tmp_path / "text.parquet")
    with pytest.raises(InvalidInputError, match="source must hold rows, got none"):
        ParquetRows(tmp_path, outcome="sales")


def test_text_and_columns_that_differ_between_files_are_refused(folder):
    last = folder / "part-9.parquet"
    columns = {"rain": [0.0], "holiday": [0.0], "sales": [1.0]}
    pq.write_table(pa.table({"price": ["dear"], **columns}), last)
    with pytest.raises(
        InvalidInputError, match=r"part-9.parquet must hold numbers .* 'price'.* contexts="
    ):
        ParquetRows(folder, outcome="sales")
    assert ParquetRows(folder, "sales", ["rain"]).n_rows == 5_001
    pq.write_table(pa.table(columns), last)
    with pytest.raises(InvalidInputError, match="part-9.parquet must have the column 'price'"):
        ParquetRows(folder, outcome="sales")


@pytest.mark.parametrize(
    ("bad", "got"), [(np.nan, "a gap or NaN"), (np.inf, "inf"), (1e200, "1e\\+200")]
)
def test_gaps_are_named_by_file_row_and_column(folder, data, bad, got):
    X, y = data[0][:900].copy(), data[1][:900]
    X[700, 1] = bad
    written(folder, X, y, files=1)
    rows = ParquetRows(folder, outcome="sales")
    with pytest.raises(
        InvalidInputError, match=f"part-0.parquet .* got {got} in row 700, column 'rain'"
    ):
        _ = rows.survey


def test_a_missing_value_is_a_gap(tmp_path):
    table = pa.table({"n": pa.array([1, None, 3], pa.int64()), "sales": [1.0, 2.0, 3.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InvalidInputError, match="got a gap or NaN in row 1, column 'n'"):
        list(ParquetRows(tmp_path, outcome="sales").batches())


def test_files_that_change_between_passes_are_noticed(folder, data):
    rows = ParquetRows(folder, outcome="sales")
    written(folder, data[0], 10.0 * data[1], files=3, group=100)  # as many rows as before
    with pytest.raises(InvalidInputError, match=r"part-0.parquet must stay as it is, got another one"):
        list(rows.batches())


def test_files_that_change_or_break_within_a_pass_are_noticed(folder, data, monkeypatch):
    monkeypatch.setattr(parquet_module, "_stamp", lambda file: None)
    rows = ParquetRows(folder, outcome="sales")
    written(folder, *data, files=3, group=10_000)
    with pytest.raises(InvalidInputError, match="part-0.parquet must be a whole Parquet file"):
        list(rows.batches())  # a row group is gone
    written(folder, data[0][:4_000], data[1][:4_000], files=3, group=100)
    with pytest.raises(InvalidInputError, match=r"part-0.parquet must stay as it is, got \d+ rows in"):
        list(rows.batches())
    rows = ParquetRows(folder, outcome="sales")
    (folder / "part-1.parquet").unlink()
    with pytest.raises(InvalidInputError, match="part-1.parquet must be a whole Parquet file"):
        list(rows.batches())


def test_a_source_that_is_no_path_and_columns_of_one_name_are_refused(tmp_path):
    with pytest.raises(InvalidTypeError, match="source must be the path of a folder or file, got None"):
        ParquetRows(None, outcome="sales")
    table = pa.Table.from_arrays([pa.array([1.0, 2.0])] * 3, names=["a", "a", "sales"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InvalidInputError, match="must have distinct columns, got 'a' more than once"):
        ParquetRows(tmp_path, outcome="sales")
