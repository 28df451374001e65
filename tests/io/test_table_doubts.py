"""What in a table is hard to believe is said, by line and column."""

from surefoot.io import FileColumn, read_file
from surefoot.io.table_doubts import doubts


def test_a_price_without_its_decimal_sign_is_pointed_at(tmp_path):
    path = tmp_path / "sales.csv"
    rows = "".join(f"{2 + k % 3 / 10:.2f},{k}\n" for k in range(20))
    path.write_text(f"price,sold\n{rows}200,20\n")
    assert doubts(read_file(path)) == [
        f"line 22 of {path}: 'price' is 200, where nine of ten rows have at most 2.2. "
        "A decimal sign that is missing?"
    ]


def test_amounts_with_a_unit_are_pointed_at(tmp_path):
    path = tmp_path / "sales.csv"
    rows = [
        f"{k + 1} {'kg' if k % 7 else 't'},{k}°C,{k} Stück,{k % 3}L,5 av {k},{k}\n" for k in range(20)
    ]
    path.write_text("".join(["weight,heat,boxes,size,street,sold\n", *rows]))
    said = doubts(read_file(path))
    assert [sentence.split(" which")[0] for sentence in said] == [
        "'weight' holds amounts with a unit ('1 t'),", "'heat' holds amounts with a unit ('0°C'),",
        "'boxes' holds amounts with a unit ('0 Stück'),",
    ]  # fmt: skip
    assert "write bare numbers, all in one unit" in said[0]
    told = [FileColumn("weight", "category", "as told")]
    assert not any("'weight'" in sentence for sentence in doubts(read_file(path, known=told)))


def test_days_that_were_pasted_twice_are_pointed_at(tmp_path):
    path = tmp_path / "sales.csv"
    rows = [f"2024-01-{k:02d},{2 + k % 3},{k % 4}\n" for k in range(1, 21)]
    path.write_text("".join(["day,price,sold\n", *rows[:12], *rows[9:]]))
    assert doubts(read_file(path)) == [
        f"3 rows are the same as an earlier one in every column, the first in line 14 of {path}. "
        "Pasted twice?"
    ]
    path.write_text("".join(["day,price,sold\n", *rows, rows[-1]]))
    assert doubts(read_file(path)) == [
        f"1 row is the same as an earlier one in every column, in line 22 of {path}. Pasted twice?"
    ]
    path.write_text("price,sold\n" + "1,2\n2,2\n" * 10)  # without a day rows may be alike
    assert doubts(read_file(path)) == []
