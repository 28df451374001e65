"""Pictures show the numbers that they are given, in the axes that they are given."""

import importlib

import numpy as np
import pytest

from surefoot import RobustNewsvendor
from surefoot.datasets import synthetic
from surefoot.diagnostics import adversary_path
from surefoot.diagnostics.pictures import (
    leading_directions,
    plot_column,
    plot_columns,
    plot_columns_used,
    plot_convergence,
    plot_moves,
    plot_price,
    plot_rates,
)
from surefoot.diagnostics.price import price_of_robustness
from surefoot.estimators.augmentation import augment
from surefoot.exceptions import InvalidInputError, InvalidTypeError, MissingExtraError
from surefoot.nominals import Empirical

NAMES = ("rain", "price", "sun", "wind", "heat")


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    return importlib.import_module("matplotlib.pyplot")


@pytest.fixture(scope="module")
def data():
    return synthetic(n=60, s=5, seed=2, coefficients="mixed", noise_variance=0.1, test=50)


@pytest.fixture(scope="module")
def model(data):
    return RobustNewsvendor(1.0, 0.2, radius=0.1).fit(data.X, data.y)


@pytest.fixture(scope="module")
def found(data, model):
    nominal = Empirical(data.X, data.y, names=NAMES)
    return augment(model.problem_.around(nominal), model.parameters_)


def texts(axes):
    return " ".join([axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()])


def test_one_column_shows_both_histograms(plt, found):
    axes = plot_column(found, "sun", bins=6)
    histogram = found.histogram("sun", 6)
    before, after = axes.patches
    np.testing.assert_allclose(before.get_data().values, histogram.before)
    np.testing.assert_allclose(after.get_data().values, histogram.after)
    assert texts(axes).startswith("sun")


def test_columns_default_to_those_used_most(plt, found):
    panels = plot_columns(found)
    titles = [texts(axes).split(":")[0] for axes in panels]
    assert titles == [column.name for column in found.most_used(4)]
    assert [texts(axes).split(":")[0] for axes in plot_columns(found, ["wind", 0])] == ["wind", "rain"]


def test_given_axes_are_used(plt, data, model, found):
    _, axes = plt.subplots()
    assert plot_column(found, 0, axes) is axes
    assert plot_moves(found, plt.subplots()[1]) is not axes
    for draw in (plot_moves, plot_columns_used):
        _, axes = plt.subplots()
        assert draw(found, axes) is axes
    _, pair = plt.subplots(1, 2)
    assert list(plot_columns(found, [0, 1], pair)) == list(pair)
    with pytest.raises(InvalidInputError, match="axes must be 3 axes, got 2"):
        plot_columns(found, [0, 1, 2], pair)


def test_leading_directions_are_principal_components(data, found):
    directions, shares = leading_directions(found)
    scaled = data.X / data.X.std(axis=0)
    values, vectors = np.linalg.eigh(np.cov(scaled.T, bias=True))
    np.testing.assert_allclose(shares, values[::-1][:2] / values.sum())
    np.testing.assert_allclose(np.abs(directions.T @ vectors[:, ::-1][:, :2]), np.eye(2), atol=1e-8)


def test_arrows_go_from_before_to_after(plt, found):
    axes = plot_moves(found)
    raising, lowering = axes.collections[1:]
    directions, _ = leading_directions(found)
    change = found.decisions - found.decisions_before
    for quiver, kept in ((raising, change > 0), (lowering, change < 0)):
        drawn = np.column_stack([quiver.U, quiver.V])
        moves = found.moves[kept] @ directions
        stretch = drawn[0] / moves[0]
        assert stretch[0] == pytest.approx(stretch[1])
        assert stretch[0] >= 1.0
        np.testing.assert_allclose(drawn, stretch[0] * moves)
    assert f"{stretch[0]:.2g} times as long" in texts(axes) or stretch[0] == 1.0
    few = plot_moves(found, arrows=7)
    assert len(few.collections[1].U) + len(few.collections[2].U) == 7


def test_a_single_column_has_a_second_direction_of_zero(plt, data):
    model = RobustNewsvendor(1.0, 0.2, radius=0.05).fit(data.X[:, :1], data.y)
    nominal = Empirical(data.X[:, :1], data.y)
    found = augment(model.problem_.around(nominal), model.parameters_)
    directions, shares = leading_directions(found)
    np.testing.assert_allclose(directions, [[1.0, 0.0]])
    np.testing.assert_allclose(shares, [1.0, 0.0])
    plot_moves(found)


def test_bars_are_shares(plt, found):
    axes = plot_columns_used(found, count=3)
    used = found.most_used(3)
    np.testing.assert_allclose(
        [bar.get_width() for bar in axes.patches], [100 * c.share for c in used[::-1]]
    )
    assert [label.get_text() for label in axes.get_yticklabels()] == [c.name for c in used[::-1]]


def test_nothing_moved_can_be_drawn_too(plt, data, model):
    nominal = Empirical(data.X, data.y)
    still = augment(model.problem_.around(nominal).at_radius(0.0), model.parameters_)
    for draw in (plot_columns, plot_moves, plot_columns_used):
        draw(still)


@pytest.mark.parametrize("refit", [True, False])
def test_the_price_shows_every_curve(plt, data, model, refit):
    price = price_of_robustness(
        model, data.X, data.y, [0.0, 0.1, 0.3], data.X_test, data.y_test, refit=refit
    )
    axes = plot_price(price)
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(lines["worst case, policy as fitted"], price.fixed.worst_case)
    assert ("data, refitted at each radius" in lines) == refit
    if refit:
        np.testing.assert_allclose(lines["new rows, refitted at each radius"], price.refitted.realised)
    assert axes.get_ylim()[0] < price.fixed.nominal[0] < axes.get_ylim()[1]


def test_convergence_shows_bounds_gap_and_multiplier(plt, data, model):
    path = adversary_path(model, data.X, data.y)
    objective, gap, multiplier = plot_convergence(path)
    np.testing.assert_allclose(objective.lines[0].get_ydata(), [p.upper for p in path.history])
    np.testing.assert_allclose(objective.lines[1].get_ydata(), [p.lower for p in path.history])
    np.testing.assert_allclose(gap.lines[0].get_ydata(), [p.gap for p in path.history])
    np.testing.assert_allclose(multiplier.lines[0].get_ydata(), path.multipliers[:, 0])
    assert gap.get_yscale() == "log"


def test_rates_leave_out_what_was_not_measured(plt):
    sizes = np.array([10.0, 100.0, 1_000.0])
    curve = np.stack([sizes, [0.1, 0.01, 1e-9], [0.05, 0.005, 0.0], [0.2, 0.02, 1e-8]])
    axes = plot_rates({"one": curve}, smallest=1e-6)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [0.1, 0.01])
    x, y = (np.log(axes.lines[1].get_data()[k]) for k in (0, 1))
    assert (y[1] - y[0]) / (x[1] - x[0]) == pytest.approx(-0.5)


def test_without_matplotlib_the_command_is_named(found, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(MissingExtraError, match=r'pip install "surefoot\[cli\]"'):
        plot_column(found, 0)


@pytest.mark.parametrize(
    ("draw", "named"),
    [
        (
            lambda wrong: plot_column(wrong, 0),
            r"augmentation must be what model\.augmentation\(\) returns",
        ),
        (plot_columns, "augmentation must be"),
        (plot_moves, "augmentation must be"),
        (plot_columns_used, "augmentation must be"),
        (plot_price, "price must be what price_of_robustness returns"),
        (plot_convergence, "path must be what adversary_path returns"),
    ],
)
def test_pictures_name_what_they_draw(draw, named):
    with pytest.raises(InvalidTypeError, match=named):
        draw("a model")
