"""Ordinary mistakes, as they are made: one readable line each, exit code 2, and nothing is written."""

import datetime
import shlex

import openpyxl
import pytest

from surefoot.cli.main import main

COSTS = "--backorder 3 --holding 1"
FIT = f"--outcome demand {COSTS} -o m.surefoot"
DAYS = [datetime.date(2024, 1, 20) + datetime.timedelta(days=k) for k in range(30)]
# (command, what the line must say). Files are made by ``folder`` below.
MISTAKES = [
    # --- the command ---
    ("fti sales.csv", "No such command 'fti'. Did you mean 'fit'?"),
    (f"fit sales.csv --outcom demand {COSTS}", "No such option: --outcom (Possible options: --out, --outcome)"),
    (f"fit sales.csv {COSTS} -o m.surefoot", "Missing option '--outcome'"),
    (f"fit sales.csv --outcome demand {COSTS}", "Missing option '--out'"),
    (f"fit sales.csv {FIT} --outcome price", "--outcome must be given once, got 'demand' and 'price'"),
    (f"fit sales.csv {FIT} extra", "unexpected extra argument(s) (extra)"),
    ("fit sales.csv --outcome demand -o m.surefoot", "--backorder and --holding, or --price and --cost"),
    ("fit sales.csv --outcome demand --backorder 3 -o m.surefoot", "got only --backorder"),
    (f"fit sales.csv {FIT} --price 5 --cost 2", "got --backorder and --price"),
    ("fit sales.csv --outcome demand --price 2 --cost 5 -o m.surefoot", "--price must be above --cost"),
    (
        "fit sales.csv --outcome demand --price 5 --cost 2 --salvage 3 -o m.surefoot",
        "--salvage must be below --cost",
    ),
    ("fit sales.csv --outcome demand --backorder -3 --holding 1 -o m.surefoot", "must be > 0"),
    ("fit sales.csv --outcome demand --backorder 3,5 --holding 1 -o m.surefoot", "Invalid value for '--backorder': must be a number, got '3,5': write 3.5."),
    (f"fit sales.csv {FIT} --radius wide", "--radius must be auto or a number, got 'wide'"),
    (f"fit sales.csv {FIT} --radius -1", "--radius must be >= 0 and finite, got -1"),
    (f"fit sales.csv --outcome demand {COSTS} -o no/m.surefoot", "must lie in an existing folder"),
    (f"fit sales.csv --outcome demand {COSTS} -o .", "must be a file, got the folder '.'."),
    (f"fit sales.csv {FIT} --by shop", "--out must end in .parquet beside --by, for a policy of each series, got m.surefoot."),
    # --- columns ---
    (
        f"fit sales.csv --outcome demnd {COSTS} -o m.surefoot",
        "must have the column 'demnd', got day, shop, price, demand. Did you mean 'demand'?",
    ),
    (f"fit sales.csv {FIT} --ignore shops", "Did you mean 'shop'?"),
    (f"fit sales.csv {FIT} --time demand", "--time must name another column than --outcome"),
    (f"fit sales.csv {FIT} --time shop", "line 2, column 'shop': must be a date or a number, got 'north'. Mend the cell, or name the word a gap (--gaps)."),
    (f"fit sales.csv {FIT} --ignore demand", "--ignore must name another column than --outcome"),
    (f"fit sales.csv {FIT} --ignore day shop price", "must have a column beside 'demand'"),
    (f"fit sales.csv --outcome shop {COSTS} -o m.surefoot", "column 'shop': must be a number, got 'north'"),
    # --- files ---
    (f"fit sale.csv {FIT}", "No such file or directory (sale.csv). Did you mean sales.csv?"),
    (f"fit . {FIT}", "The data must be a file, got the folder '.'."),
    (f"fit empty.csv {FIT}", "must have a header and rows, got an empty file"),
    (f"fit header.csv {FIT}", "must have rows under its header, got only line 1"),
    (f"fit headless.csv {FIT}", "line 1: must name the columns, got values"),
    (f"fit twice.csv {FIT}", "line 1: columns must have distinct names, got 'price' twice"),
    (f"fit ragged.csv {FIT}", "line 7: must have 4 cells as the header has, got 3"),
    (f"fit unquoted.csv {FIT}", "line 2: must have 4 cells as the header has, got 5: a separator inside"),
    (f"fit old.xls {FIT}", "an old Excel file (.xls): save it as .xlsx or CSV"),
    (f"fit sales.csv {FIT} --separator ';'", "must have the column 'demand', got day,shop,price,demand. Is the separator right?"),
    (f"fit sales.xlsx {FIT} --sheet Feb", "must have the sheet 'Feb', got Jan"),
    (f"fit sales.csv {FIT} --encoding utf-9", "encoding must be one that Python knows"),
    (f"fit sales.csv {FIT} --decimal point", "decimal must be '.' or ','"),
    # --- cells ---
    (f"fit soldout.csv {FIT}", "line 9, column 'price': must be a number (29 of 30 cells are), got 'sold out'"),
    (f"fit gap.csv {FIT}", "The outcome must have a number in every row, got a gap in line 6 of gap.csv, column 'demand'. Delete such rows, or fill them in."),
    (f"fit gap.csv {FIT} --gaps 12", "got 4 gaps, the first in line 4 of gap.csv, column 'demand'. Delete such rows"),
    (f"fit nosale.csv {FIT}", "line 12, column 'demand': must be a number, got 'sold out'. Mend the cell, or delete the row."),
    (f"fit noday.csv {FIT}", "line 4, column 'day': must be a date written year-month-day (29 of 30 cells are), got"),
    (f"fit total.csv {FIT}", "line 32 of total.csv must be a row of data, got totals ('Total' in 'day')"),
    (f"fit sum.csv {FIT}", "line 32 of sum.csv must be a row of data, got totals ('demand' is the sum"),
    (f"fit average.csv {FIT}", "line 32 of average.csv must be a row of data, got totals ('Ø' in 'day')"),
    (f"fit ways.csv {FIT}", "line 17, column 'day': must be a date written year-month-day (15 of 30 cells are), got '04.02.2024'. Write all dates of the column one way."),
    (f"fit either.csv {FIT}", "03 January 2024 or 01 March 2024: give --dates day-first or month-first"),
    (f"fit three.csv {FIT}", "must have at least 10 rows to learn from, got 3"),
    # --- deciding and judging ---
    ("decide none.surefoot sales.csv -o orders.csv", "There is no model file at none.surefoot"),
    ("decide . sales.csv -o orders.csv", "The model must be a file, got the folder '.'."),
    ("report model.surefoot three.csv -o r.html", "three.csv must have at least 10 rows to report on, got 3."),
    ("decide sales.csv sales.csv -o orders.csv", "sales.csv must be a Surefoot model, got another kind of file."),
    ("decide model.surefoot model.surefoot -o orders.csv", "must be an Excel workbook, CSV or Parquet"),
    ("decide model.surefoot noprice.csv -o orders.csv", "noprice.csv must have the column 'price', got"),
    ("decide model.surefoot soldout.csv -o orders.csv", "line 9, column 'price': must be a number, got 'sold out'"),
    ("decide model.surefoot sales.csv -o orders.doc", "--out must end in .csv or"),
    ("decide model.surefoot sales.csv -o orders.csv --keep weather", "must have the column 'weather'"),
    ("evaluate model.surefoot nodemand.csv", "nodemand.csv must have the column 'demand', got day, shop, price"),
    ("evaluate model.surefoot sales.csv --outcome price", "a column that the model does not look at, got 'price'"),
    # --- comparing and learning ---
    (f"compare three.csv --outcome demand {COSTS}", "must have at least 20 rows to compare on, got 3"),
    (f"compare back.csv --outcome demand {COSTS} --window 10 --test 5", "With --window rows must be in order of time"),
    (f"compare sales.csv --outcome demand {COSTS} --window 100 --test 5", "sales.csv must have at least 110 rows for two windows (--window 100, --test 5, --step 5), got 30."),
    (f"compare sales.csv --outcome demand {COSTS} --methods magic", "--methods must be among surefoot, erm, erm-l1, forest, shapley, saa, got 'magic'."),
    (f"learn empty.csv --outcome demand {COSTS}", "empty.csv must have lines to learn from, with a context or an outcome, got none."),
    (f"learn sales.csv --outcome demnd {COSTS}", "line 1: the header must have the column 'demnd', got day, shop, price, demand. Did you mean 'demand'?"),
    (f"learn sale.csv --outcome demand {COSTS}", "The input must be a file or - for standard input, got 'sale.csv', which is not there."),
    (f"learn sales.csv --outcome demand {COSTS} --on-error ignore", "--on-error must be 'stop' or 'skip'"),
    ("datasets bakery -o bakery.csv", "The data set must be 'restaurant', got 'bakery'"),
]  # fmt: skip


def table(rows=None):
    lines = ["day,shop,price,demand"]
    for k, day in enumerate(DAYS[:rows]):
        lines.append(
            f"{day},{('north', 'south')[k % 2]},{2 + k % 5 / 4:.2f},{10 + k % 5 + 3 * (k % 2)}"
        )
    return lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of the script, and one model that is as it should be."""
    place = tmp_path_factory.mktemp("mistakes")
    good = table()
    header, rows = good[0], good[1:]
    cells = [line.split(",") for line in rows]

    def changed(row, column, value):
        lines = [list(one) for one in cells]
        lines[row][column] = value
        return [header, *(",".join(line) for line in lines)]

    files = {
        "sales.csv": good,
        "empty.csv": [],
        "header.csv": [header],
        "headless.csv": [",".join(["2024", *line[2:], "5"]) for line in cells],
        "twice.csv": ["day,price,price,demand", *rows],
        "ragged.csv": [*good[:6], "2024-01-25,north,2.00", *good[7:]],
        "unquoted.csv": [header, *(line.replace(".", ",") for line in rows)],
        "soldout.csv": changed(7, 2, "sold out"),
        "gap.csv": changed(4, 3, ""),
        "nosale.csv": changed(10, 3, "sold out"),
        "noday.csv": changed(2, 0, "2024-02-30"),
        "total.csv": [*good, f"Total,,,{sum(float(line[3]) for line in cells):g}"],
        "sum.csv": [*good, f",,,{sum(float(line[3]) for line in cells):g}"],
        "average.csv": [*good, "Ø,,,12"],
        "ways.csv": [
            *good[:16],
            *(f"{day:%d.%m.%Y},{line[11:]}" for day, line in zip(DAYS[15:], rows[15:], strict=True)),
        ],
        "either.csv": [
            "day,demand",
            *(f"0{3 - k % 3}/0{1 + k % 4}/2024,{10 + k}" for k in range(12)),
        ],
        "three.csv": table(3),
        "back.csv": [header, *(f"{day:%d.%m.%Y},n,{k % 3},{k}" for k, day in enumerate(DAYS[::-1]))],
        "noprice.csv": [",".join(line.split(",")[:2]) for line in good],
        "nodemand.csv": [",".join(line.split(",")[:3]) for line in good],
    }
    for name, lines in files.items():
        (place / name).write_text("".join(f"{line}\n" for line in lines))
    (place / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(100))
    book = openpyxl.Workbook()
    book.active.title = "Jan"
    for line in good:
        book.active.append(line.split(","))
    book.save(place / "sales.xlsx")
    arguments = [
        "fit",
        str(place / "sales.csv"),
        "--radius",
        "0.1",
        "-o",
        str(place / "model.surefoot"),
    ]
    assert main([*arguments, "--outcome", "demand", *shlex.split(COSTS)]) == 0
    return place


def test_the_script_has_forty_mistakes_or_more():
    assert len(MISTAKES) >= 40
    assert len({command for command, _ in MISTAKES}) == len(MISTAKES)


@pytest.mark.parametrize(("command", "message"), MISTAKES, ids=[command for command, _ in MISTAKES])
def test_a_mistake_is_one_line_and_nothing_is_written(command, message, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert main(shlex.split(command)) == 2
    error = capsys.readouterr().err
    lines = [line for line in error.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1
    assert lines[0].startswith("surefoot: ")
    assert message in lines[0]
    assert "Traceback" not in error
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_the_same_tables_without_the_mistake_are_taken(folder, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    out = str(tmp_path / "m.surefoot")
    ways = {
        "sales.csv": [], "sales.xlsx": ["--sheet", "Jan"], "soldout.csv": ["--gaps", "sold out"],
        "total.csv": ["--skip-totals"], "sum.csv": ["--skip-totals"], "either.csv": ["--dates", "day-first"],
        "noday.csv": ["--gaps", "2024-02-30"], "back.csv": ["--time", "day"],
    }  # fmt: skip
    for name, told in ways.items():
        arguments = ["fit", name, "--outcome", "demand", "--radius", "0.1", "-o", out]
        assert main([*arguments, *shlex.split(COSTS), *told]) == 0, name
