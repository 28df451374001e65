"""The reader of tables: what it finds out, what it says, and what it refuses by line and column."""

import datetime
import importlib
import io
import sys

import numpy as np
import openpyxl
import polars as pl
import pytest

import surefoot
from surefoot.exceptions import InvalidInputError, MissingExtraError
from surefoot.io import FileColumn, Reading, read_file


@pytest.fixture
def write(tmp_path):
    def written(content, name="sales.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


def kinds(table):
    return {column.name: column.kind for column in table.columns}


def days(count, form="%Y-%m-%d"):
    first = datetime.date(2024, 1, 20)
    return [(first + datetime.timedelta(days=k)).strftime(form) for k in range(count)]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_any_separator_is_found(write, separator):
    path = write(f"a{separator}b\n1{separator}x\n2{separator}y\n")
    assert read_file(path).frame.to_dict(as_series=False) == {"a": [1.0, 2.0], "b": ["x", "y"]}


def test_a_german_spreadsheet_is_read_as_it_was_meant(write):
    text = "Umsätze 2024;;\n\nTag;Preis;Absatz\n31.01.2024;2,50;1.200\n01.02.2024;3,00;900\n"
    table = read_file(write(text.encode("cp1252")))
    assert kinds(table) == {"Tag": "date", "Preis": "number", "Absatz": "number"}
    assert table.frame["Tag"].to_list() == [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)]
    assert table.frame["Preis"].to_list() == [2.5, 3.0]
    assert table.frame["Absatz"].to_list() == [1200.0, 900.0]
    assert table.lines.tolist() == [4, 5]
    said = " ".join(table.notes)
    for part in ("Windows-1252", "semicolon", "Line 1 is a title", "Umsätze 2024", "comma"):
        assert part in said


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252", "latin-1"])
def test_encodings_told_or_found(write, encoding):
    path = write("name,x\nKäse,1\nöl,2\n".encode(encoding))
    told = Reading(encoding="latin-1") if encoding == "latin-1" else None
    assert read_file(path, told).frame["name"].to_list() == ["Käse", "öl"]


def test_quoted_cells_hold_separators_and_line_breaks(write):
    table = read_file(write('a,b\n"x, ""y""\nz",1\nw,2\n'))
    assert table.frame["a"].to_list() == ['x, "y"\nz', "w"]
    assert table.lines.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("%Y-%m-%d", None), ("%d.%m.%Y", None), ("%d/%m/%Y", None), ("%m/%d/%Y", None),
        ("%d.%m.%y", None), ("%d-%b-%Y", None), ("%b %d, %Y", None), ("%Y%m%d", None),
        ("%d %b %Y", None), ("%Y-%m-%d 00:00:00", None), ("%Y|%d|%m", "%Y|%d|%m"),
    ],
)  # fmt: skip
def test_local_dates_are_dates(write, form, told):
    rows = "\n".join(f'"{day}",{k}' for k, day in enumerate(days(20, form)))
    table = read_file(write(f"day,sold\n{rows}\n"), Reading(dates=told, separator=","))
    assert [str(day) for day in table.frame["day"]] == days(20)


def test_days_and_months_that_cannot_be_told_apart_are_asked_for(write):
    path = write("day,x\n03/02/2024,1\n01/05/2024,2\n")
    with pytest.raises(InvalidInputError, match="03 February 2024 or 02 March 2024: give --dates"):
        read_file(path)
    found = read_file(path, Reading(dates="month-first")).frame["day"][0]
    assert found == datetime.date(2024, 3, 2)


def test_the_reading_in_which_time_runs_forward_is_taken(write):
    path = write("day,x\n03/02/2024,1\n04/02/2024,2\n05/02/2024,3\n06/02/2024,4\n01/03/2024,3\n")
    assert read_file(path).columns[0].date_format == "%d/%m/%Y"


@pytest.mark.parametrize("code", ["01234", "12E3", "4006381333931", "12345678901234567"])
def test_codes_are_text(write, code):
    table = read_file(write(f"code,x\n{code},1\n{code.replace('3', '4')},2\n"))
    assert kinds(table)["code"] == "category"
    assert "codes, not amounts" in table.columns[0].why
    assert table.frame["code"][0] == code


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["-2.5e1", "1E+3", ".5"], [-25.0, 1000.0, 0.5]),
        (["1,234.5", "2", "3"], [1234.5, 2.0, 3.0]),
        (["1.234,5", "2", "3"], [1234.5, 2.0, 3.0]),
        (["1 234,5", "0,25", "3"], [1234.5, 0.25, 3.0]),
        (["2,50 €", "3,00 €", "-"], [2.5, 3.0, None]),
        (["$2.50", "$3.00", "n/a"], [2.5, 3.0, None]),
        (["12 %", "15 %", ""], [12.0, 15.0, None]),
        (["−3", "4", "5"], [-3.0, 4.0, 5.0]),
    ],
)
def test_numbers_as_people_write_them(write, cells, values):
    rows = "\n".join(f"{cell};{k}" for k, cell in enumerate(cells))
    assert read_file(write(f"n;k\n{rows}\n")).frame["n"].to_list() == values


def test_a_decimal_sign_that_was_a_choice_is_said(write):
    path = write("n;k\n1.234;1\n2.345;2\n")
    table = read_file(path)
    assert table.frame["n"].to_list() == [1.234, 2.345]
    assert "1.234 was taken for 1.234 (--decimal changes that)" in table.columns[0].why
    assert read_file(path, Reading(decimal=",")).frame["n"].to_list() == [1234.0, 2345.0]


def test_columns_without_information_are_left_out_and_why(write):
    rows = "".join(f"{k},DE,,note {k},{k % 3}\n" for k in range(30))
    table = read_file(write(f"x,country,empty,remark,y\n{rows}"), ignore=["x"])
    why = {column.name: column.why for column in table.columns if column.kind == "ignored"}
    assert why == {
        "x": "as told", "country": "it is always 'DE'", "empty": "it is empty",
        "remark": "it names rows: 30 texts in 30 rows",
    }  # fmt: skip
    assert table.frame.columns == ["y"]


def test_a_running_number_without_a_name_is_left_out(write):
    table = read_file(write(",a,b\n0,1,2\n1,3,4\n"))
    assert table.frame.columns == ["a", "b"]
    assert "running number" in table.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n\n3\n", r"line 4: must have 2 cells as the header has, got 1"),
        ("a,b\n1,2\n3,4,5\n", r"line 3: must have 2 cells .* got 3: a separator inside of a cell"),
        ("a,a\n1,2\n", r"line 1: columns must have distinct names, got 'a' twice"),
        ("a,\n1,2\n", r"line 1: every column must have a name, got none for column 2"),
        ("1,2\n3,4\n", r"line 1: must name the columns, got values \('1, 2'\)"),
        ("a,b\n", r"must have rows under its header, got only line 1: a, b"),
        ("", "must have a header and rows, got an empty file"),
        (" \n\n", "must have a header and rows, got an empty file"),
        ("<html>\n", "got '<html>': a web page or JSON"),
        ('a,b\n1,"2\n', r"line 2: must be a line of cells"),
        (b"a,b\n\0\1,2\n", "got bytes that are no text, unless --encoding says which"),
        (b"\xd0\xcf\x11\xe0rest", "an old Excel file"),
        (b"%PDF-1.7", "a PDF"),
        (b"PKnothing", "another kind of zip file"),
        (b"PAR1nothing", "a damaged one"),
    ],
)
def test_files_that_cannot_be_read_say_where_and_why(write, text, message):
    with pytest.raises(InvalidInputError, match=message):
        read_file(write(text))


def test_empty_cells_too_many_do_no_harm(write):
    table = read_file(write("a;b;;\n1;2;;\n3;4;;\n;;;\n5;6;;\n"))
    assert table.frame.shape == (3, 2)
    assert table.lines.tolist() == [2, 3, 5]
    assert "1 blank line below the header skipped." in table.notes


def test_a_word_among_numbers_is_named(write):
    path = write("day,price\n1,2.5\n\n2,sold out\n3,2.75\n4,3\n")
    message = (
        r"line 4, column 'price': must be a number \(3 of 4 cells are\), got 'sold out'. "
        r"Mend the cell, name the word a gap \(--gaps\), or the column a category"
    )
    with pytest.raises(InvalidInputError, match=message):
        read_file(path)
    assert read_file(path, Reading(gaps=["Sold Out"])).frame["price"][1] is None
    known = [FileColumn("price", "category")]
    assert read_file(path, known=known).frame["price"][1] == "sold out"


def test_a_day_that_never_was_is_named(write):
    path = write("day,x\n30.01.2024,1\n31.02.2024,2\n01.03.2024,3\n")
    with pytest.raises(InvalidInputError, match=r"line 3, column 'day': must be a date .*'31.02.2024'"):
        read_file(path)


@pytest.mark.parametrize("last", ["Total,,60", "TOTAL:,9,60", "Summe,,60", ",,60", "Grand total,3.0,"])
def test_totals_are_refused_or_left_out(write, last):
    path = write(f"day,price,sold\n2024-01-01,2,10\n2024-01-02,3,20\n2024-01-03,4,30\n{last}\n")
    with pytest.raises(InvalidInputError, match=r"line 5 of .* must be a row of data, got totals"):
        read_file(path)
    table = read_file(path, Reading(skip_totals=True))
    assert len(table) == 3
    assert "Totals left out: line 5." in table.notes


def test_a_petrol_station_is_no_total(write):
    rows = "".join(f"{('Shell', 'Total')[k % 2]},{k + 1}\n" for k in range(8))
    assert len(read_file(write(f"brand,sold\n{rows}"))) == 8


def test_totals_in_a_column_of_dates_need_no_further_word(write):
    path = write("day,sold\n2024-01-01,10\n2024-01-02,20\n2024-01-03,25\nTotal,55\n")
    with pytest.raises(InvalidInputError, match=r"line 5 of .*totals \('Total' in 'day'\)"):
        read_file(path)
    table = read_file(path, Reading(skip_totals=True))
    assert kinds(table) == {"day": "date", "sold": "number"}


def test_a_typo_is_answered_with_the_nearest_name(write):
    table = read_file(write("Temperature,demand\n1,2\n2,3\n"))
    with pytest.raises(
        InvalidInputError,
        match=r"must have the column 'demnd', got Temperature, demand. Did you mean 'demand'\?",
    ):
        table.split("demnd")
    with pytest.raises(InvalidInputError, match=r"Did you mean 'Temperature'\?"):
        read_file(table.name, ignore=["temperature"])


def test_a_file_that_is_not_there_is_answered_with_the_nearest(write):
    path = write("a,b\n1,2\n3,4\n")
    with pytest.raises(InvalidInputError, match=r"No such file .* Did you mean sales.csv\?"):
        read_file(path.with_name("sale.csv"))


@pytest.mark.parametrize(
    ("text", "outcome", "message"),
    [
        ("a,y\n1,2\n3,\n4,5\n", "y", "a gap in line 3 of .*, column 'y'"),
        ("a,y\n1,x\n2,z\n", "y", "must be a column of numbers, got 'y', a category"),
        ("a,y\n1,\n2,\n", "y", "got 'y': it is empty"),
        ("y\n1\n2\n", "y", "a column beside 'y' to learn from, got none"),
    ],
)
def test_outcomes_that_cannot_be_are_named(write, text, outcome, message):
    with pytest.raises(InvalidInputError, match=message):
        read_file(write(text)).split(outcome)


def test_an_outcome_that_never_varies_is_still_an_outcome(write):
    _, outcomes = read_file(write("a,y\n1,5\n2,5\n3,5\n")).split("y")
    assert outcomes.tolist() == [5.0, 5.0, 5.0]


def test_what_a_fit_knew_is_taken_from_it(write):
    known = [FileColumn("day", "date", date_format="%d/%m/%Y"), FileColumn("shop", "category")]
    table = read_file(write("day,shop,remark\n03/02/2024,7,x\n"), known=known, only=["day", "shop"])
    assert table.frame["day"][0] == datetime.date(2024, 2, 3)
    assert table.frame["shop"][0] == "7"
    assert kinds(table)["remark"] == "ignored"


def test_a_column_that_is_known_may_be_empty_in_a_parquet_file(tmp_path):
    frame = pl.DataFrame({"price": [1.0, 2.0], "rain": pl.Series([None, None], dtype=pl.Float64)})
    frame.write_parquet(tmp_path / "new.parquet")
    known = [FileColumn("price", "number"), FileColumn("rain", "number")]
    table = read_file(tmp_path / "new.parquet", known=known, only=["price", "rain"])
    assert table.frame["rain"].to_list() == [None, None]


def test_gaps_of_dates_are_counted(write):
    table = read_file(write("day,y\n2024-01-01,1\n,2\n2024-01-03,3\n"))
    assert table.column("day").why == "written year-month-day, 1 gap"


def test_what_orders_rows_is_read_as_days_or_numbers(write):
    time = [FileColumn("t", "time", "the order of time")]
    found = {
        "1 2 3 10": ("number", "the order of time, and no more"),
        "01 02 03 04": ("number", "the order of time, and no more"),
        "20240131 20240201 20240202": ("date", "the order of time"),
        "31.01.2024 01.02.2024": ("date", "the order of time"),
    }
    for cells, (kind, why) in found.items():
        rows = "".join(f"{cell},{k}\n" for k, cell in enumerate(cells.split()))
        column = read_file(write(f"t,y\n{rows}"), known=time).column("t")
        assert (column.kind, column.why) == (kind, why)


def test_excel_is_read_like_text(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Sales"
    sheet.append(["Report", None, None, None])
    sheet.append(["day", "code", "price", "sold"])
    for k in range(12):
        sheet.append([datetime.datetime(2024, 1, 1 + k), f"0{k % 2}", 2.5 + k % 2, 10 + k])
    book.create_sheet("Notes").append(["nothing"])
    path = tmp_path / "sales.xlsx"
    book.save(path)
    table = read_file(path)
    assert kinds(table) == {"day": "date", "code": "category", "price": "number", "sold": "number"}
    assert table.lines[0] == 3
    assert table.unit == "row"
    assert "Sheet 'Sales' was read (others: Notes)." in table.notes
    with pytest.raises(InvalidInputError, match="Did you mean 'Notes'"):
        read_file(path, Reading(sheet="notes"))
    with pytest.raises(
        InvalidInputError,
        match=r"sales.xlsx, sheet Sales must have the column 'nothing', got day, code, price, sold\. "
        r"--sheet reads another one: Notes\.$",
    ):
        read_file(path, known=[FileColumn("nothing", "number")])
    with pytest.raises(InvalidInputError, match="--sheet reads another one: Notes"):
        table.column("nothing")


def test_parquet_keeps_its_types(tmp_path):
    path = tmp_path / "sales.parquet"
    frame = pl.DataFrame(
        {
            "day": [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2), None],
            "shop": ["north", "south", "north"],
            "open": [True, False, True],
            "sold": [1, 2, 3],
            "price": [1.5, float("nan"), 2.0],
        }
    )
    frame.write_parquet(path)
    table = read_file(path)
    assert kinds(table) == {
        "day": "date", "shop": "category", "open": "category", "sold": "number", "price": "number",
    }  # fmt: skip
    assert table.frame["price"].to_list() == [1.5, None, 2.0]


def test_standard_input_is_a_dash(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"a,b\n1,2\n3,4\n")

    monkeypatch.setattr(sys, "stdin", Stdin)
    table = read_file("-")
    assert table.name == "standard input"
    assert table.frame.shape == (2, 2)


def test_a_long_file_comes_in_blocks_with_the_right_lines(write):
    rows = "".join(f"{k},{k % 7}\n" for k in range(45_000))
    table = read_file(write(f"a,b\n{rows}"))
    assert table.frame.shape == (45_000, 2)
    assert table.lines[-1] == 45_001
    np.testing.assert_array_equal(table.frame["a"].to_numpy(), np.arange(45_000.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimal": ":"}, "decimal must be '.' or ','"),
        ({"dates": "european"}, "dates must be day-first, month-first or a format"),
        ({"separator": "::"}, "separator must be one character"),
        ({"encoding": "utf-9"}, "encoding must be one that Python knows"),
        ({"encoding": "ascii"}, "must be text in ascii, got the byte 0xc3 in line 2"),
    ],
)
def test_a_wrong_word_about_the_file_is_refused(write, options, message):
    path = write("a,b\nKäse,1\nBrot,2\n")
    with pytest.raises(InvalidInputError, match=message):
        read_file(path, Reading(**options))


def test_the_reader_is_there_for_python(write):
    table = read_file(write("shop,price,sold\n" + "n,1,5\ns,2,7\nn,3,4\n" * 5))
    X, y = table.split("sold")
    model = surefoot.PreparedPolicy(surefoot.RobustNewsvendor(2.0, 1.0, radius=0.1)).fit(X, y)
    assert model.predict(X).shape == (15,)


def test_without_polars_the_message_names_the_install_command(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name="polars")

    home = sys.modules["surefoot.io"]
    monkeypatch.delattr(home, "read_file")
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r'need polars: run pip install "surefoot\[cli\]"'):
        _ = home.read_file
    with pytest.raises(AttributeError, match="no attribute 'read_fil'"):
        _ = home.read_fil
