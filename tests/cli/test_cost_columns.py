"""``surefoot fit --backorder-column``: costs of each row, from a table to orders and what they cost."""

import json

import numpy as np
import polars as pl
import pytest

from surefoot import PreparedPolicy, RobustNewsvendor, load
from surefoot.cli.main import main

QUICK = ["--radius", "0.1"]


def sales(rows, seed=0):
    """Two products with margins of their own; each day has its own cost of disposal."""
    rng = np.random.default_rng(seed)
    product = rng.choice(["cake", "roll"], rows)
    heat = rng.normal(20.0, 5.0, rows).round(1)
    margin = np.where(product == "cake", 9.0, 1.0)
    waste = rng.choice([1.0, 2.0], rows)
    sold = 20.0 + heat + 15.0 * (product == "roll") + rng.normal(0.0, 4.0, rows).round(1)
    names = {"product": product, "heat": heat, "margin": margin, "waste": waste, "sold": sold}
    return pl.DataFrame(names)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("costs")
    sales(120).write_csv(folder / "past.csv")
    sales(60, seed=1).write_csv(folder / "new.csv")
    assert main(command(folder, folder / "m.surefoot")) == 0
    return folder


def command(folder, out, *more, costs=("--backorder-column", "margin", "--holding-column", "waste")):
    told = ["fit", str(folder / "past.csv"), "--outcome", "sold", *QUICK, *costs, *more]
    return [*told, "-o", str(out)]


def paid(orders, table):
    short = np.maximum(table["sold"].to_numpy() - orders, 0.0)
    left = np.maximum(orders - table["sold"].to_numpy(), 0.0)
    return float(np.mean(table["margin"].to_numpy() * short + table["waste"].to_numpy() * left))


def test_orders_are_those_of_python(folder, capsys):
    past, new = sales(120), sales(60, seed=1)
    model = PreparedPolicy(RobustNewsvendor(radius=0.1))
    model.fit(
        past.select("product", "heat"), past["sold"].to_numpy(),
        backorder=past["margin"].to_numpy(), holding=past["waste"].to_numpy(),
    )  # fmt: skip
    costs = new["margin"].to_numpy(), new["waste"].to_numpy()
    expected = model.predict(new.select("product", "heat"), *costs)
    assert main(["decide", str(folder / "m.surefoot"), str(folder / "new.csv"), "--json"]) == 0
    orders = [row["order"] for row in json.loads(capsys.readouterr().out)["orders"]]
    np.testing.assert_allclose(orders, expected, atol=1e-4)
    assert load(folder / "m.surefoot").model_.cost_levels_ == pytest.approx([1 / 3, 0.5, 9 / 11, 0.9])


def test_evaluate_counts_the_costs_of_each_row(folder, capsys):
    new, path = sales(60, seed=1), folder / "m.surefoot"
    assert main(["evaluate", str(path), str(folder / "new.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    costs = new["margin"].to_numpy(), new["waste"].to_numpy()
    orders = load(path).predict(new.select("product", "heat"), *costs)
    assert found["cost"] == pytest.approx(paid(orders, new))
    tried = [paid(np.full(60, order), new) for order in new["sold"]]
    assert found["hindsight_cost"] == pytest.approx(min(tried))  # a kink is among the best
    assert found["constant_cost"] == pytest.approx(paid(np.full(60, found["constant_order"]), new))
    assert found["cost"] < found["hindsight_cost"]
    made, sold = np.maximum(orders, 0.0), new["sold"].to_numpy()
    assert found["short"] == pytest.approx(np.maximum(sold - made, 0.0).mean())
    low, high = found["interval"]
    assert low < found["difference"] < high
    assert found["difference"] == pytest.approx(found["cost"] - found["constant_cost"])
    assert found["worst_case"] is None  # each policy has one of its own
    assert main(["evaluate", str(path), str(folder / "new.csv")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "best in hindsight" in told
    assert f"(planned: {100 * found['planned']:.0f} on average)" in told


def test_one_cost_may_be_a_number(folder, tmp_path, capsys):
    costs = ("--backorder-column", "margin", "--holding", "1")
    assert main(command(folder, tmp_path / "m", costs=costs)) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "A unit short costs 1 to 9 (margin), a unit left over 1." in told
    assert "enough in 50 to 90 of 100 cases" in told
    assert load(tmp_path / "m").model_.cost_levels_ == pytest.approx([0.5, 0.9])
    new = sales(60, seed=1).drop("waste")  # no longer a context, as it varied and was one in the fit
    new.with_columns(waste=1.0).write_csv(tmp_path / "new.csv")
    assert main(["decide", str(tmp_path / "m"), str(tmp_path / "new.csv")]) == 0


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (["--backorder-column", "margin"], "Give --holding or --holding-column, got neither."),
        (["--backorder-column", "margin", "--holding", "0"], "--holding must be > 0"),
        (["--backorder-column", "margin", "--price", "5", "--cost", "2"], "got --price."),
        (["--backorder-column", "margn", "--holding", "1"], "Did you mean 'margin'?"),
        (["--backorder-column", "product", "--holding", "1"], "The backorder cost must be a column of"),
        (["--backorder-column", "sold", "--holding", "1"], "must name another column than --outcome"),
        (
            ["--backorder-column", "margin", "--backorder", "2", "--holding", "1"],
            "Give --backorder or --backorder-column, got both.",
        ),
        (
            ["--backorder-column", "margin", "--holding", "1", "--by", "product"],
            "--by must be left out beside --backorder-column",
        ),
    ],
)
def test_mistakes(folder, tmp_path, capsys, costs, message):
    assert main(command(folder, tmp_path / "m", costs=costs)) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_costs_alone_say_nothing_about_demand(folder, tmp_path, capsys):
    sales(120).select("margin", "waste", "sold").write_csv(tmp_path / "past.csv")
    assert main(command(tmp_path, tmp_path / "m")) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "must have a column beside 'sold' and the costs in 'margin' (--backorder-column)" in told


def test_a_cost_that_cannot_be_is_named_by_its_line(folder, tmp_path, capsys):
    table = sales(120)
    table[4, "waste"] = 0.0
    table.write_csv(tmp_path / "past.csv")
    assert main(command(tmp_path, tmp_path / "m")) == 2
    assert "The holding cost must be > 0, got 0 in line 6 of" in capsys.readouterr().err


def test_a_cost_of_a_new_row_that_cannot_be_is_named_by_its_line(folder, tmp_path, capsys):
    model, new, out = str(folder / "m.surefoot"), tmp_path / "new.csv", tmp_path / "orders.csv"
    for cost, message in ((-3.0, "must be > 0, got -3 in line 4 of"), (None, "got a gap in line 4 of")):
        table = sales(10)
        table[2, "margin"] = cost
        table.write_csv(new)
        assert main(["decide", model, str(new), "-o", str(out)]) == 2
        assert f"{message} {new}, column 'margin'." in capsys.readouterr().err
        assert not out.exists()


def test_a_cost_is_no_outcome(folder, capsys):
    told = ["evaluate", str(folder / "m.surefoot"), str(folder / "new.csv"), "--outcome", "margin"]
    assert main(told) == 2
    assert "--outcome must be a column that the model does not look at" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["explain", "report", "learn"])
def test_other_commands_refuse_such_models(folder, tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    model, data = str(folder / "m.surefoot"), str(folder / "new.csv")
    told = {
        "explain": [model], "report": [model, data],
        "learn": [data, "--model", model, "--outcome", "sold"],
    }[name]  # fmt: skip
    assert main([name, *told]) == 2
    assert "must be a model with one pair of costs" in capsys.readouterr().err
