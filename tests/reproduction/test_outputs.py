"""What a run leaves behind: tables that read back, figures, one page that needs nothing else."""

import csv
import json
import re
from html.parser import HTMLParser

import pandas as pd
import pytest

from reproduction import METHODS, ResultStore
from reproduction.figures import DRAWN, LABELS
from reproduction.outputs import PAPER, find, read_folder, write_tables
from reproduction.page import markdown, write_page
from reproduction.report import render
from reproduction.result import COLUMNS
from surefoot.exceptions import InvalidInputError

TIMINGS = {
    "row/s=100/n=10": {"n": 10, "s": 100, "steps": 0.001, "decisions": 0.002, "certified": 0.003,
                       "shapley": 0.01, "shapley_decisions": 0.04, "machine": "m", "versions": "v"},
    "pass/instances=1120": {"instances": 1120, "threads": 2, "certified": 7.5, "certified_cpu": 12.0,
                            "largest_gap": 0.004, "steps": 4.0, "steps_cpu": 4.0, "machine": "m"},
}  # fmt: skip
SETTINGS = {method.name: method.settings() for method in METHODS}


@pytest.fixture(scope="module")
def findings(made_up):
    rows = []
    for rank, method in enumerate(METHODS):
        for n in (10, 50):
            for variance in (0.1, 5.0):
                for k in range(3):
                    gap = 0.001 * k if method.name.startswith("ours") else None
                    cost = 0.3 + 0.1 * rank + 0.01 * k  # not a round number: it must read back as it is
                    rows.append(
                        made_up(method.name, cost, n=n, variance=variance, repetition=k, gap=gap)
                    )
        for days in (30, 60):
            rows.append(
                made_up(method.name, 20.0 + rank, kind="yaz", product="lamb", n=days, noise_variance=None,
                        contexts=None, coefficients=None, key=f"yaz/lamb/days={days}/{method.name}/0")
            )  # fmt: skip
    rows.append(made_up("forest", None, n=50, repetition=3, status="failed", error="Boom <b>&</b> 'x'"))
    rows.append(
        made_up("saa", 1.0, contexts="gaussian", coefficients="mixed",
                key="synthetic/mixed/gaussian/s=100/variance=1/n=10/saa/repetition=0")
    )  # fmt: skip
    return find(rows, SETTINGS, TIMINGS)


@pytest.fixture(scope="module")
def figures(findings):
    return findings.figures()


def test_every_table_is_written_and_reads_back(findings, tmp_path):
    files = write_tables(findings, tmp_path)
    assert {file.name for file in files} == {
        "results.csv", "summary.csv", "table1.csv", "claims.csv", "claims.json", "settings.json",
        "timings.json",
    }  # fmt: skip
    again = read_folder(tmp_path)
    assert again.results == findings.results
    assert again.summaries == findings.summaries
    assert again.claims == findings.claims
    assert again.times == findings.times
    assert again.settings == findings.settings


def test_the_store_is_read_before_the_tables(findings, tmp_path):
    with ResultStore(tmp_path / "results.sqlite") as store:
        for result in findings.results[:5]:
            store.append(result)
    write_tables(findings, tmp_path)
    assert len(read_folder(tmp_path).results) == 5


def test_tables_open_in_pandas(findings, tmp_path):
    write_tables(findings, tmp_path)
    results = pd.read_csv(tmp_path / "results.csv")
    assert tuple(results.columns) == COLUMNS
    assert len(results) == len(findings.results)
    claims = pd.read_csv(tmp_path / "claims.csv")
    assert set(claims.verdict) <= {"holds", "does not hold", "depends"}
    assert claims.sentence.str.len().min() > 20
    with (tmp_path / "table1.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert float(row["shapley_speedup"]) == pytest.approx(14.6389 / 0.05)
    kept = json.loads((tmp_path / "claims.json").read_text())
    assert {"sentence", "measure", "verdict", "depends_on", "readings"} <= set(kept[0])


def test_folders_without_results_are_named(tmp_path):
    with pytest.raises(
        InvalidInputError, match="--out must be a folder with results.sqlite or results.csv"
    ):
        read_folder(tmp_path)
    (tmp_path / "results.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match="results.csv must have the columns key, .*, got"):
        read_folder(tmp_path)
    with pytest.raises(InvalidInputError, match="at least one cell, got none"):
        find([], {}, {})


def test_all_figures_are_drawn(figures, tmp_path):
    names = [figure.name for figure in figures]
    assert names == ["figure1", "figure2", "figure1-gaussian-mixed", "restaurant"]
    for figure in figures:
        figure.write(tmp_path)
        assert (tmp_path / f"{figure.name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"{figure.name}.svg").read_text()
    for name in DRAWN:
        assert LABELS[name] in figures[0].svg
    assert "NV-ERM1" not in figures[0].svg  # more lines cannot be told apart
    assert "s = 100" in figures[0].svg


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.opened = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]


def test_the_page_needs_nothing_else(findings, figures):
    text = render(findings, figures)
    assert "http" not in text
    assert "@import" not in text
    page = Page()
    page.feed(text)
    assert not [tag for tag, _ in page.tags if tag in ("script", "link", "img", "iframe", "object")]
    assert sum(tag == "svg" for tag, _ in page.tags) == len(figures)
    assert len(set(page.ids)) == len(page.ids)
    references = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    assert references <= set(page.ids)
    for tag, attributes in page.tags:
        if tag == "svg":
            assert "viewbox" in attributes
            assert "width" not in attributes


def test_the_page_says_everything(findings, figures):
    text = render(findings, figures)
    for word in ("a machine", "What holds", "Table 1", "Solver gap", "Settings", "alpha=0.01",
                 "14.6 s", "1,120 instances", "gaussian contexts, mixed coefficients"):  # fmt: skip
        assert word in text, word
    assert "Boom &lt;b&gt;&amp;&lt;/b&gt;" in text
    for one in findings.claims[PAPER]:
        assert one.measure.split("(")[0].strip() in text.replace("&#x27;", "'")
    order = [text.index(f"<h2>{head}") for head in ("What holds", "Figures", "Table 1", "Solver gap")]
    assert order == sorted(order)


def test_the_page_of_the_docs_is_written_with_its_images(findings, figures, tmp_path):
    written = write_page(findings, figures, tmp_path)
    text = (tmp_path / "reproduction.md").read_text()
    assert text == markdown(findings, figures, "images/reproduction")
    for target in re.findall(r"\]\((images/[^)]+)\)", text):
        assert tmp_path / target in written
    assert "verdict | sentence" in text
    with pytest.raises(InvalidInputError, match="--docs must be an existing folder"):
        write_page(findings, figures, tmp_path / "nowhere")
