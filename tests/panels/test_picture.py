"""The picture of savings over series."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.panels import PanelColumns, PolicyTable, SeriesRecord
from surefoot.panels.picture import BETTER, WORSE


def table_of(savings):
    records = [
        SeriesRecord((str(k),), 10, "fitted", cost=1.0 - saving, constant_cost=1.0)
        for k, saving in enumerate(savings)
    ]
    return PolicyTable(PanelColumns(("shop",), "sales", None, ("x",)), records)


@pytest.fixture
def table():
    return table_of(np.random.default_rng(0).normal(0.1, 0.1, 500))


def test_bars_hold_every_series_and_lie_on_one_side_of_zero(table):
    axes = Figure().subplots()
    table.picture(axes)
    bars = [bar for bar in axes.patches if bar.get_height() > 0]
    assert sum(bar.get_height() for bar in bars) == 500
    for bar in bars:
        left, right = bar.get_x(), bar.get_x() + bar.get_width()
        assert left >= -1e-9 or right <= 1e-9
    from matplotlib.colors import to_hex  # noqa: PLC0415

    assert {to_hex(bar.get_facecolor()) for bar in bars} == {BETTER, WORSE}
    assert axes.get_title(loc="left").startswith("500 of 500 series: median ")


@pytest.mark.parametrize("savings", [[0.3], [0.0, 0.0], [-0.2, -0.2, -0.2]])
def test_equal_savings_draw_too(savings, tmp_path):
    table_of(savings).picture(tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_what_cannot_be_drawn_says_why(table, tmp_path):
    with pytest.raises(InvalidInputError, match="A picture must end in"):
        table.picture(tmp_path / "p.txt")
    with pytest.raises(InvalidTypeError, match="to a path or to axes"):
        table.picture(SimpleNamespace())
    with pytest.raises(InvalidInputError, match="A picture needs costs on rows held out"):
        table_of([np.nan]).picture(tmp_path / "p.png")
