"""Whatever the dialect, a table that is written is read back: the same numbers, days and names."""

import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.io import read_file

FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%y", "%d-%b-%Y", "%Y%m%d")
NAMES = ("Nord", "Süd", 'an der "Post"', "A; B, C | D", "01234", "12E3")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("roundtrip") / "t.csv"


@st.composite
def tables(draw):
    separator = draw(st.sampled_from([",", ";", "\t", "|"]))
    decimal = draw(st.sampled_from([".", ","]))
    # Three thousandths would leave it open whether 1.234 is a thousand.
    hundredths = draw(st.lists(st.integers(-(10**7), 10**7), min_size=20, max_size=40, unique=True))
    numbers = [round(value / 100 + 0.01 * (value % 100 == 0), 2) for value in hundredths]
    rows = len(numbers)
    first = draw(st.dates(datetime.date(1990, 1, 1), datetime.date(2040, 1, 1)))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=rows, max_size=rows))
    return {
        "separator": separator,
        "decimal": decimal,
        "encoding": draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"])),
        "form": draw(st.sampled_from(FORMS)),
        "title": draw(st.sampled_from(["", "Sales\n", "Sales\n\n"])),
        "ending": draw(st.sampled_from(["\n", "\r\n"])),
        "grouped": draw(st.booleans()),
        "numbers": numbers,
        "days": [first + datetime.timedelta(days=k) for k in range(rows)],
        "names": ["Nord", "Süd", *names[2:]],
    }


def written(table):
    def cell(text):
        quoted = text.replace('"', '""')
        return f'"{quoted}"' if any(sign in text for sign in (table["separator"], '"')) else text

    def number(value):
        text = f"{value:,.2f}" if table["grouped"] else f"{value:.2f}"
        return text.translate(str.maketrans(",.", ".,")) if table["decimal"] == "," else text

    lines = [["name", "day", "amount"]]
    for name, day, value in zip(table["names"], table["days"], table["numbers"], strict=True):
        lines.append([name, day.strftime(table["form"]), number(value)])
    body = table["ending"].join(table["separator"].join(map(cell, line)) for line in lines)
    return (table["title"] + body + table["ending"]).encode(table["encoding"])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(table=tables())
def test_a_table_is_read_back_as_it_was_meant(table, path):
    path.write_bytes(written(table))
    found = read_file(path)
    assert {column.name: column.kind for column in found.columns} == {
        "name": "category", "day": "date", "amount": "number",
    }  # fmt: skip
    assert found.frame["name"].to_list() == table["names"]
    assert found.frame["day"].to_list() == table["days"]
    np.testing.assert_array_equal(found.frame["amount"].to_numpy(), table["numbers"])
