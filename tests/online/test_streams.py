"""Streams: the same pairs from every source, and every bad line named."""

import io
import sys

import numpy as np
import pytest

from surefoot.exceptions import InvalidInputError, InvalidTypeError, SurefootError
from surefoot.online.messages import CsvLines, Fields, JsonLines, Message
from surefoot.online.streams import from_csv, from_frame, from_json_lines, from_pairs

PAIRS = [({"heat": 21.5, "rain": 0.0}, 5.0), ({"heat": -3.0}, 4.0), ({"heat": 0.1, "rain": 1.0}, 6.25)]
CSV = "heat,rain,demand\n21.5,0,5\n-3,,4\n1e-1, 1 ,6.25\n"
JSON = (
    '{"heat": 21.5, "rain": false, "demand": 5}\n'
    '{"demand": 4, "heat": -3, "rain": null}\n'
    '{"heat": 0.1, "rain": true, "demand": 6.25}\n'
)


def test_every_source_gives_the_same_pairs(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    (tmp_path / "a.csv").write_text(CSV)
    (tmp_path / "a.jsonl").write_text(JSON)
    frame = pandas.read_csv(io.StringIO(CSV))
    assert list(from_pairs(iter(PAIRS))) == PAIRS
    assert list(from_frame(frame, "demand")) == PAIRS
    assert list(from_csv(tmp_path / "a.csv", "demand")) == PAIRS
    assert list(from_csv(str(tmp_path / "a.csv"), "demand")) == PAIRS
    assert list(from_csv(io.BytesIO(CSV.encode()), "demand")) == PAIRS
    assert list(from_json_lines(tmp_path / "a.jsonl", "demand")) == PAIRS
    assert list(from_json_lines(io.StringIO(JSON), "demand")) == PAIRS
    monkeypatch.setattr(sys, "stdin", io.StringIO(JSON))
    assert list(from_json_lines("-", "demand")) == PAIRS


def test_a_frame_keeps_its_order_whatever_its_index():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1, 2, 3]}, index=[9, 0, 5])
    assert [y for _, y in from_frame(frame, "y")] == [1.0, 2.0, 3.0]
    flags = pandas.DataFrame({"x": [True, False], "y": [1, 2], "date": ["a", "b"]})
    assert [x for x, _ in from_frame(flags, "y", ignore=["date"])] == [{"x": 1.0}, {"x": 0.0}]


def test_nothing_is_read_ahead():
    def endless():
        yield {"x": 1}, 2
        raise RuntimeError("read ahead")

    stream = from_pairs(endless())
    assert next(stream) == ({"x": 1.0}, 2.0)
    with pytest.raises(RuntimeError, match="read ahead"):
        next(stream)


def test_a_file_is_closed_at_its_end_and_blank_lines_are_nothing(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n\n1,2\n   \n3,4")
    assert list(from_csv(path, "y")) == [({"x": 1.0}, 2.0), ({"x": 3.0}, 4.0)]
    path.unlink()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\nabc,3\n", "line 3: x must be a number, got 'abc'."),
        ("x,y\n1,nan\n", "line 2: y must be finite, got nan."),
        ("x,y\n1_000,1\n", "line 2: x must be a number, got '1_000'."),
        ("x,y\n1\n", "line 2: must have 2 cells as the header has, got 1."),
        ("x,y\n1,2,3\n", "line 2: must have 2 cells as the header has, got 3."),
        ("x,y\n1,\n", "line 2: y must be there, got no outcome."),
        ("x,z\n1,2\n", "line 1: the header must have the column 'y', got x, z."),
        ("x,x,y\n1,2,3\n", "line 1: column names must be there and differ, got 'x'."),
        ("x,,y\n1,2,3\n", "line 1: column names must be there and differ, got ''."),
        ('x,y\n"1,2\n', "line 2: must be comma-separated values, got '\"1,2'"),
    ],
)
def test_bad_csv_is_named(text, message):
    with pytest.raises(InvalidInputError) as caught:
        list(from_csv(io.StringIO(text), "y"))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "line 1: must be one JSON object, got '[1, 2]'."),
        ("{x: 1}", "line 1: must be one JSON object, got '{x: 1}' ("),
        ("[" * 100_000, "line 1: must be one JSON object, got '[[["),
        ('{"x": "1", "y": 2}', "line 1: x must be a number, got '1'."),
        ('{"x": [1], "y": 2}', "line 1: x must be a number, got [1]."),
        ('{"x": 1, "y": NaN}', "line 1: y must be finite, got nan."),
        ('{"x": 1, "y": 1e999}', "line 1: y must be finite, got inf."),
        ('{"x": 1' + "0" * 400 + ', "y": 1}', "line 1: x must fit in a float, got a larger number."),
        ('{"x": 1, "x": 2, "y": 1}', "line 1: names must differ, got 'x' twice."),
        ('{"x": 1, "y": null}', "line 1: y must be there, got no outcome."),
    ],
)
def test_bad_json_is_named(text, message):
    with pytest.raises(InvalidInputError) as caught:
        list(from_json_lines(io.StringIO(text + "\n"), "y"))
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 400


def test_bytes_that_are_no_text_are_named():
    with pytest.raises(InvalidInputError, match="line 2: must be text in UTF-8, got the byte 0xff"):
        list(from_csv(io.BytesIO(b"x,y\n1,\xff\n"), "y"))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([({"x": 1}, 2, 3)], "pair 0 must be (dictionary, number), got"),
        ([([1], 2)], "pair 0 must be (dictionary, number), got"),
        ([({"x": 1}, 2), ({"x": [1]}, 3)], "pair 1: x must be a number, got [1]."),
        ([({"x": np.inf}, 2)], "pair 0: x must be finite, got inf."),
        ([({"x": 1}, None)], "pair 0: the outcome must be a number, got None."),
        ([({"x": 1}, float("nan"))], "pair 0: the outcome must be finite, got nan."),
    ],
)
def test_bad_pairs_are_named(pairs, message):
    with pytest.raises(SurefootError) as caught:
        list(from_pairs(pairs))
    assert str(caught.value).startswith(message)


def test_bad_frames_and_sources_are_named(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0], "y": [None]}, dtype=object)
    with pytest.raises(InvalidInputError, match="row 0, column 'y': must be a number, got none."):
        list(from_frame(frame, "y"))
    with pytest.raises(InvalidInputError, match="frame must have one column 'z', got columns x, y."):
        from_frame(frame, "z")
    with pytest.raises(InvalidTypeError, match="frame must be a pandas data frame, got list."):
        from_frame([1], "y")
    with pytest.raises(InvalidInputError, match="source must be a file or '-', got "):
        from_csv(tmp_path / "none.csv", "y")
    with pytest.raises(InvalidTypeError, match="pairs must be an iterator"):
        from_pairs(3)


def test_fields_must_differ():
    with pytest.raises(InvalidInputError, match="different columns, got 'y' twice"):
        Fields("y", id="y")
    with pytest.raises(InvalidTypeError, match="outcome must be the name of a column, got 3"):
        Fields(3)


def test_a_line_may_ask_teach_or_name():
    lines = JsonLines(Fields("y", id="k", ignore=("note",)))
    assert lines.read('{"k": 7, "x": 1, "note": "hot"}', 4) == Message(4, 7, {"x": 1.0}, None)
    assert lines.read('{"k": "a", "y": 2}', 5) == Message(5, "a", {}, 2.0)
    assert lines.read(" \n", 6) is None
    with pytest.raises(InvalidInputError, match="line 7: k must be text or a whole number, got 1.5."):
        lines.read('{"k": 1.5}', 7)
    table = CsvLines(Fields("y", id="k"))
    assert table.read("\ufeffk,x,y\n", 1) is None
    assert table.read('"a, b",1,\n', 2) == Message(2, "a, b", {"x": 1.0}, None)
    assert table.read("7,,3", 3) == Message(3, "7", {}, 3.0)


def test_columns_of_text_are_named_and_nothing_else_is_text():
    pandas = pytest.importorskip("pandas")
    expected = [({"day": "mon", "x": 1.0}, 2.0), ({"x": 3.0}, 4.0)]
    text = "day,x,y\nmon,1,2\n,3,4\n"
    assert list(from_csv(io.StringIO(text), "y", text=["day"])) == expected
    lines = '{"day": "mon", "x": 1, "y": 2}\n{"x": 3, "y": 4}\n'
    assert list(from_json_lines(io.StringIO(lines), "y", text=["day"])) == expected
    assert list(from_frame(pandas.read_csv(io.StringIO(text)), "y", text=["day"])) == expected
    assert list(from_pairs(expected)) == expected
    with pytest.raises(InvalidInputError, match="line 2: day must be a number, got 'mon'."):
        list(from_csv(io.StringIO(text), "y"))
    with pytest.raises(InvalidInputError, match="line 1: day must be a text, got 1."):
        list(from_json_lines(io.StringIO('{"day": 1, "y": 2}\n'), "y", text=["day"]))
    frame = pandas.DataFrame({"day": [1.0], "y": [2.0]})
    with pytest.raises(InvalidInputError, match="row 0, column 'day': must be a text, got 1.0."):
        list(from_frame(frame, "y", text=["day"]))
