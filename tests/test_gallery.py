"""Every example of the gallery runs without a warning and draws a picture in which each line is named."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytest.importorskip("cvxpy")
pytest.importorskip("pandas")
plt = pytest.importorskip("matplotlib.pyplot")

FOLDER = Path(__file__).parent.parent / "examples" / "gallery"
EXAMPLES = sorted(FOLDER.glob("plot_*.py"))
QUICK = {"01_restaurant", "09_certificate", "11_own_set", "14_from_dro_skwdro", "16_service"}
TOPICS = (
    "restaurant", "portfolio", "pricing", "staffing", "capacity", "stream", "panel", "service",
    "custom_cost", "gpu", "gaps", "certificate", "scikit_learn", "from_dro_skwdro", "from_cvxpy",
)  # fmt: skip
MOST_LINES = 7


@pytest.fixture(autouse=True)
def headless(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("Agg")


def marked(path):
    name = path.stem.removeprefix("plot_")
    return pytest.param(path, id=name, marks=[] if name in QUICK else [pytest.mark.nightly])


def boxes(axes):
    """How many lines of a panel are those of box plots, which are named once for all."""
    return len(axes.lines) - 1 if any(line.get_label() == "median" for line in axes.lines) else 0


@pytest.mark.parametrize("path", [marked(path) for path in EXAMPLES])
def test_an_example_runs_and_names_its_lines(path):
    runpy.run_path(str(path), run_name="example")
    (number,) = plt.get_fignums()
    for axes in plt.figure(number).axes:
        unnamed = [line for line in axes.lines if line.get_label().startswith("_")]
        assert len(unnamed) <= boxes(axes)
        assert len(axes.lines) - len(unnamed) <= MOST_LINES
        assert axes.get_title()
        assert axes.get_ylabel() or axes.get_xlabel()
    assert any(axes.get_legend() for axes in plt.figure(number).axes)


def test_each_topic_has_one_and_each_is_short():
    names = {path.stem.removeprefix("plot_") for path in EXAMPLES}
    assert {name[3:] for name in names} >= set(TOPICS)
    assert names >= QUICK
    for path in EXAMPLES:
        assert len(path.read_text().splitlines()) <= 110, path.name


def test_each_begins_with_a_heading_and_a_sentence():
    for path in EXAMPLES:
        quotes, heading, rule, blank, sentence = path.read_text().splitlines()[:5]
        assert (quotes, set(rule), blank) == ('"""', {"="}, "")
        assert len(rule) >= len(heading)
        assert sentence
