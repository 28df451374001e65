"""The demo: its numbers, its table and its picture."""

import importlib

import numpy as np
import pytest

from surefoot.cli import demo
from surefoot.datasets import load_yaz
from surefoot.exceptions import InvalidInputError, MissingExtraError


@pytest.fixture(scope="module")
def data():
    return load_yaz(drop_closed=True)


@pytest.fixture(scope="module")
def rows(data):
    return demo.judge(data, 60)


def test_rows_hold_costs_out_of_sample(data, rows):
    assert [row.product for row in rows] == list(data.products)
    for row in rows:
        y = data.product(row.product)
        past, future = y[-165 - 60 : -165], y[-165:]
        order = np.sort(past)[int(np.ceil(0.6 * 60)) - 1]
        expected = np.mean(np.maximum(15 * (future - order), 10 * (order - future)))
        assert row.constant == pytest.approx(expected)
        assert 0.0 < row.bound < 3.0 * expected


def test_the_robust_policies_cost_less_in_total_than_both_others(rows):
    total = {name: sum(getattr(row, name) for row in rows) for name in ("constant", "plain", "robust")}
    assert total["robust"] < 0.97 * min(total["constant"], total["plain"])


def test_the_table_shows_every_product_and_the_totals(rows):
    text = demo.table(rows, 60)
    assert "after learning from 60 days" in text
    for row in rows:
        assert f"{row.robust:.2f}" in text
        assert row.product in text
    assert f"{sum(row.robust for row in rows):.2f}" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("days", [9, 596, -1])
def test_windows_that_do_not_fit_are_refused(data, days):
    with pytest.raises(InvalidInputError, match=f"^days must be between 10 and 595, got {days}"):
        demo.judge(data, days)


def test_the_picture_is_written(rows, tmp_path):
    path = tmp_path / "demo.png"
    demo.draw({60: rows, 120: rows}, 60, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000


def test_without_matplotlib_the_message_names_the_install_command(monkeypatch, tmp_path):
    original = importlib.import_module

    def missing(name, *args):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *args)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r'pip install "surefoot\[cli\]"'):
        demo.run_demo(tmp_path / "demo.png", tmp_path / "demo.html", days=60)


def test_rows_above_their_bound_are_marked_and_explained():
    sound = demo.DemoRow("lamb", 3.0, 2.0, 1.0, 1.5)
    above = demo.DemoRow("koefte", 3.0, 2.0, 1.0, 0.5)
    lines = demo.table([sound, above], 60).splitlines()
    marked = [line for line in lines if line.endswith("*")]
    assert [line.split()[0] for line in marked] == ["koefte"]
    assert lines[-2].startswith("* cost above its bound: days to come differ more")
    assert "*" not in demo.table([sound], 60)
    assert max(map(len, lines)) <= 80


def test_the_report_is_about_the_last_days_in_order(data, tmp_path):
    demo.write_page_on(data, tmp_path / "demo.html")
    text = (tmp_path / "demo.html").read_text()
    assert "How much steak to order" in text
    assert "5 windows in order of time: learn from 120 rows, judge on the next 33" in text
    assert "On 165 days not seen before" in text


@pytest.mark.parametrize("report", ["r.pdf", "no/r.html"])
def test_pages_that_cannot_be_written_are_refused_first(tmp_path, report):
    with pytest.raises(InvalidInputError, match="^--report must"):
        demo.run_demo(tmp_path / "demo.png", tmp_path / report, days=60)
