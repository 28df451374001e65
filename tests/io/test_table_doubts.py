"""What in a table is hard to believe is said, by line and column."""

import numpy as np
import polars as pl
import pytest

from surefoot.exceptions import InvalidInputError
from surefoot.io import FileColumn, read_file
from surefoot.io.table_columns import OUTCOME
from surefoot.io.table_doubts import doubts


def test_a_price_without_its_decimal_sign_is_pointed_at(tmp_path):
    path = tmp_path / "sales.csv"
    rows = "".join(f"{2 + k % 3 / 10:.2f},{k}\n" for k in range(20))
    path.write_text(f"price,sold\n{rows}200,20\n")
    assert doubts(read_file(path), "sold") == [
        f"line 22 of {path}: 'price' is 200, where nine of ten rows have at most 2.2. "
        "A decimal sign that is missing?"
    ]


def test_amounts_with_a_unit_are_pointed_at(tmp_path):
    path = tmp_path / "sales.csv"
    rows = [
        f"{k + 1} {'kg' if k % 7 else 't'},{k}°C,{k} Stück,{k % 3}L,5 av {k},{k}\n" for k in range(20)
    ]
    path.write_text("".join(["weight,heat,boxes,size,street,sold\n", *rows]))
    said = doubts(read_file(path), "sold")
    assert [sentence.split(" which")[0] for sentence in said] == [
        "'weight' holds amounts with a unit ('1 t'),", "'heat' holds amounts with a unit ('0°C'),",
        "'boxes' holds amounts with a unit ('0 Stück'),",
    ]  # fmt: skip
    assert "write bare numbers, all in one unit" in said[0]
    told = [FileColumn("weight", "category", "as told")]
    assert not any("'weight'" in sentence for sentence in doubts(read_file(path, known=told), "sold"))


def test_days_that_were_pasted_twice_are_pointed_at(tmp_path):
    path = tmp_path / "sales.csv"
    rows = [f"2024-01-{k:02d},{2 + k % 3},{k % 4}\n" for k in range(1, 21)]
    path.write_text("".join(["day,price,sold\n", *rows[:12], *rows[9:]]))
    assert doubts(read_file(path), "sold") == [
        f"3 rows are the same as an earlier one in every column, the first in line 14 of {path}. "
        "Pasted twice?"
    ]
    path.write_text("".join(["day,price,sold\n", *rows, rows[-1]]))
    assert doubts(read_file(path), "sold") == [
        f"1 row is the same as an earlier one in every column, in line 22 of {path}. Pasted twice?"
    ]
    path.write_text("price,sold\n" + "1,2\n2,2\n" * 10)  # without a day rows may be alike
    assert doubts(read_file(path), "sold") == []


def test_a_number_of_rows_is_pointed_at_unless_it_is_their_time(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("receipt,price,sold\n" + "".join(f"{700 + k},{k % 3},{k % 4}\n" for k in range(20)))
    (said,) = doubts(read_file(path), "sold")
    assert said == (
        "Columns that count the rows say nothing about new ones: leave out 'receipt' (--ignore receipt), "
        "or name one the order of time (--time)."
    )
    assert doubts(read_file(path), "sold", "receipt") == []
    path.write_text("receipt,sold\n" + "".join(f"{700 + k + (k > 9)},{k % 4}\n" for k in range(20)))
    assert doubts(read_file(path), "sold") == []  # steps that differ may mean something


def test_a_column_that_gives_the_outcome_away_is_pointed_at(tmp_path):
    path = tmp_path / "sales.csv"
    rows = [(k * k % 7 + 1, k * k % 11) for k in range(20)]
    lines = [f"{1.5 * y},{9 - y},{y + x / 100},{y}\n" for x, y in rows]
    path.write_text("".join(["kilos,what is left,near,sold\n", *lines]))
    (said,) = doubts(read_file(path), "sold")
    assert said == (
        "Columns that follow 'sold' to the last digit give it away: leave out 'kilos', 'what is left' "
        "(--ignore kilos 'what is left') unless known when the order is made."
    )


def test_numbers_without_end_are_left_to_others(tmp_path):
    path = tmp_path / "sales.parquet"
    for large in (np.inf, 1e300):
        sold = [large, *range(1, 20)]
        pl.DataFrame({"day": sold, "price": [None, *range(19)], "sold": sold}).write_parquet(path)
        assert doubts(read_file(path), "sold") == []


def test_a_table_on_its_side_is_pointed_at(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("item,2024-01-01,2024-01-02,2024-01-03\nsoup,3,4,6\nfish,5,2,9\nrice,1,8,2\n")
    (said,) = doubts(read_file(path), "2024-01-03")
    assert said.startswith("3 columns are named by days ('2024-01-01'): a row is to be a day")
    assert doubts(read_file(path, ignore=["2024-01-01"]), "2024-01-03") == [said]
    path.write_text("item,2024-01-01,2024-01-02\nsoup,3,4\nfish,5,2\n")
    assert doubts(read_file(path), "2024-01-02") == []


def test_a_table_on_its_side_is_refused_where_its_outcome_is_a_row(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("item,first,second,third\nprice,3,4,6\nsold,5,2,9\n")
    wanted = [FileColumn("sold", OUTCOME, "the outcome")]
    said = "must have the column 'sold', got it as the name of line 3: a row is to be a day"
    with pytest.raises(InvalidInputError, match=said):
        read_file(path, known=wanted)
    path.write_text("item,first,second\nsold,3,4\nsold,5,2\n")  # a word of many rows names none
    with pytest.raises(InvalidInputError, match="got item, first, second"):
        read_file(path, known=wanted)
    path.write_text("item,sold\nsold,3\nbought,5\nlent,2\n")  # a column by that name is enough
    assert read_file(path, known=wanted).outcomes("sold").tolist() == [3.0, 5.0, 2.0]
