"""Pictures are well-formed, and their words stay words."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.report.pictures import Interval, Line, dots, lines, over_time, swatch
from surefoot.report.svg import Frame, day_ticks, padded, text, ticks

TRAP = "<script>alert(1)</script> & \"'"
NAME = "{http://www.w3.org/2000/svg}"


@given(
    low=st.floats(-1e6, 1e6), width=st.floats(1e-6, 1e6), count=st.integers(1, 10)
)  # fmt: skip
def test_ticks_are_round_few_and_inside(low, width, count):
    places = ticks(low, low + width, count)
    assert len(places) <= 2 * count + 1
    if len(places):
        slack = 1e-6 * width + 1e-9 * abs(low)
        assert places.min() >= low - slack
        assert places.max() <= low + width + slack


def test_days_are_marked_where_months_begin():
    days = np.arange("2023-11-15", "2024-05-02", dtype="datetime64[D]")
    marks = day_ticks(days, 8)
    assert [name for _, name in marks] == ["Dec 2023", "Jan 2024", "Feb", "Mar", "Apr", "May"]
    assert all(str(days[place]).endswith("-01") for place, _ in marks)


def test_marks_of_a_long_time_are_few():
    days = np.arange("1980-01-01", "2024-01-01", dtype="datetime64[D]")
    assert 1 <= len(day_ticks(days, 4)) <= 5


def test_long_names_are_cut_and_kept_as_a_title():
    found = ElementTree.fromstring(text(0.0, 0.0, "x" * 100))
    assert len(found.text) == 44
    assert found.find("title").text == "x" * 100


def test_ranges_have_room_and_bear_nothing_at_all():
    assert padded([1.0, 2.0])[0] < 1.0
    assert padded([]) == (0.0, 1.0)
    assert padded([3.0])[0] < 3.0 < padded([3.0])[1]
    assert padded([1.0, 2.0], zero=True)[0] == 0.0
    assert np.isfinite(Frame(0.0, 1.0, 0.0, 1.0, (2.0, 2.0), (0.0, 1.0)).x(2.0))


def pictures():
    values = np.arange(200.0)
    days = np.arange("2024-01-01", "2024-07-19", dtype="datetime64[D]")
    entries = [Interval(TRAP, 1.0, 0.5, 1.5), Interval("b", 2.0, float("nan"), float("nan"))]
    return {
        "days": f"<div>{over_time(values, values + 1.0, days, TRAP)}</div>",
        "numbers": f"<div>{over_time(values, values + 1.0, None, TRAP)}</div>",
        "dots": dots(entries, TRAP, zero=True),
        "lines": lines([0.0, 0.5, 1.0], [Line(TRAP, [1.0, 2.0, 3.0], "ours")], TRAP, TRAP),
        "swatch": swatch("outcome"),
    }


@pytest.mark.parametrize("name", pictures())
def test_pictures_are_well_formed_and_hold_no_element_of_the_user(name):
    found = ElementTree.fromstring(pictures()[name])
    tags = {element.tag.removeprefix(NAME) for element in found.iter()}
    assert tags <= {"div", "svg", "text", "line", "circle", "polyline", "title"}
    assert name == "swatch" or TRAP in "".join(found.itertext())


def test_wide_and_narrow_pictures_show_the_newest_rows():
    found = ElementTree.fromstring(pictures()["days"])
    wide, narrow = found.findall(f"{NAME}svg")
    assert len(wide.findall(f"{NAME}circle")) == 180
    assert len(narrow.findall(f"{NAME}circle")) == 60


def test_at_most_seven_lines_are_drawn():
    entries = [Line(str(k), [1.0, 2.0], "ours") for k in range(9)]
    found = ElementTree.fromstring(lines([0.0, 1.0], entries, "x", "y"))
    assert len(found.findall(f"{NAME}polyline")) == 7
