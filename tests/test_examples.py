"""The examples run, draw, and show what their pages say."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")
plt = pytest.importorskip("matplotlib.pyplot")

ROOT = Path(__file__).parent.parent


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def has_colours(path):
    """Whether a picture of a readable size shows more than a page in one colour."""
    pixels = plt.imread(path)[..., :3]
    height, width, _ = pixels.shape
    painted = np.ptp(pixels, axis=2) > 0.2
    return width >= 900 and height >= 400 and painted.mean() > 0.01


@pytest.fixture(autouse=True)
def headless(monkeypatch):
    plt.switch_backend("Agg")
    with plt.rc_context():
        yield


def test_portfolio(tmp_path, capsys):
    portfolio = load("portfolio")
    found = portfolio.main(tmp_path / "portfolio.png", quick=True)
    assert has_colours(tmp_path / "portfolio.png")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["radius", "0.0", "0.3", "equal"]
    assert found["radii"] == (0.0, 0.3)
    plain, robust = found["cost"].mean(axis=1)
    assert robust < plain
    assert robust < found["equal"]
    busy, calm = found["turnover"].mean(axis=1)
    assert 0.0 < calm < busy <= 100.0
    assert found["cost"][1].std() < found["cost"][0].std()


@pytest.mark.nightly
def test_pricing(tmp_path, capsys):
    pricing = load("pricing")
    found = pricing.main(tmp_path / "pricing.png", quick=True)
    assert has_colours(tmp_path / "pricing.png")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["radius", "linear", "neural"]
    assert [line.split()[0] for line in lines[2:]] == ["0", "0.3"]
    linear, neural = (found["lost"][name].mean(axis=1) for name in ("linear", "neural"))
    assert (linear > 0.0).all()  # nothing beats the best price
    assert neural[1] < 0.75 * neural[0]
    assert abs(linear[1] - linear[0]) < 0.01 * found["oracle"]
    assert linear[0] < neural[0]


def test_the_best_price_is_the_best():
    pricing = load("pricing")
    X, _, potential = pricing.draw("check", 50_000)
    price = pricing.best_price(X)[:, None]

    def profit(factor):
        return -pricing.COST.evaluate(factor * price, potential[:, None]).mean()

    assert profit(1.0) > max(profit(0.97), profit(1.03))
    assert (
        (potential > pricing.COST.sensitivity * price[:, 0]).mean()
    ) > 0.98  # demand is rarely cut at zero


@pytest.mark.parametrize("name", ["portfolio", "pricing"])
def test_a_picture_of_the_page_is_kept(name):
    assert has_colours(ROOT / "docs" / "images" / f"{name}.png")
    page = (ROOT / "docs" / "howto" / f"{name}.md").read_text()
    assert f"examples/{name}.py" in page
    assert f"../images/{name}.png" in page
