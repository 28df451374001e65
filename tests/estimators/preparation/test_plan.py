"""What columns become, and what happens to levels and gaps that training never saw."""

import datetime

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer

from surefoot.estimators.preparation import Table
from surefoot.estimators.preparation.blocks import assemble
from surefoot.estimators.preparation.plan import identifiers, learn_plan, warn_of_oddities
from surefoot.exceptions import DataWarning, InvalidInputError


def learned(columns, *, masses=None, categories=(), scale=True, min_rows=1):
    table = Table.of(columns)
    masses = np.ones(len(table)) if masses is None else np.asarray(masses, dtype=float)
    return learn_plan(table, masses, categories, scale=scale, min_rows=min_rows)


def prepared(plan, columns):
    matrix, surprises = plan.encode(Table.of(columns))
    return assemble(*plan.blocks()).transform(matrix), surprises


def test_numbers_are_divided_by_their_deviation_and_zero_stays_zero():
    plan = learned({"a": [0.0, 2.0, 4.0]})
    matrix, surprises = prepared(plan, {"a": [0.0, 4.0]})
    np.testing.assert_allclose(matrix, [[0.0], [4.0 / np.std([0, 2, 4])]])
    assert surprises == ()
    assert prepared(learned({"a": [0.0, 2.0]}, scale=False), {"a": [3.0]})[0].tolist() == [[3.0]]


def test_gaps_become_the_median_and_a_flag():
    plan = learned({"a": [1.0, 5.0, 9.0, None]}, scale=False)
    assert plan.names == ("a", "a=missing")
    assert prepared(plan, {"a": [None, 2.0]})[0].tolist() == [[5.0, 1.0], [2.0, 0.0]]
    assert plan.flags == (1,)


def test_a_gap_that_training_never_saw_is_the_median_and_a_surprise():
    plan = learned({"a": [1.0, 5.0, 9.0], "b": [0.0, 1.0, 2.0]}, scale=False)
    matrix, surprises = prepared(plan, {"a": [None], "b": [1.0]})
    assert matrix.tolist() == [[5.0, 1.0]]
    (sentence,) = surprises
    assert "'a' has gaps" in sentence


def test_categories_have_a_column_for_each_level_and_gaps_a_level_of_their_own():
    plan = learned({"shop": ["b", "a", None, "a"]})
    assert plan.names == ("shop=a", "shop=b", "shop=missing")
    assert prepared(plan, {"shop": ["a", None]})[0].tolist() == [[1, 0, 0], [0, 0, 1]]


def test_two_levels_need_one_column():
    plan = learned({"open": [True, False, True, True]})
    assert plan.names == ("open=True",)
    matrix, surprises = prepared(plan, {"open": [False, True, None]})
    assert matrix.ravel().tolist() == [0.0, 1.0, 0.75]
    assert len(surprises) == 1


def test_an_unknown_level_is_the_average_of_the_known_ones():
    plan = learned({"shop": ["a", "b", "c", "a"]})
    matrix, (sentence,) = prepared(plan, {"shop": ["new"]})
    assert matrix.tolist() == [[0.5, 0.25, 0.25]]
    assert sentence == "'shop' is 'new' (unknown: the average of the known levels counts)"


def test_weights_are_rows_counted_so_often():
    columns = {"shop": ["a", "b", "c"], "a": [1.0, None, 5.0]}
    weighted = learned(columns, masses=[2, 1, 3], min_rows=2)
    repeated = {key: [v[0]] * 2 + [v[1]] + [v[2]] * 3 for key, v in columns.items()}
    assert weighted == learned(repeated, min_rows=2)
    assert weighted.categories[0].rare == ("b",)


def test_rare_levels_count_as_unknown_but_are_no_surprise():
    plan = learned({"shop": ["a"] * 6 + ["b"] * 3 + ["c"]}, min_rows=3)
    (part,) = plan.categories
    assert (part.levels, part.rare) == (("a", "b"), ("c",))
    matrix, surprises = prepared(plan, {"shop": ["c"]})
    np.testing.assert_allclose(matrix, [[1 / 3]])
    assert surprises == ()


def test_columns_that_hardly_vary_are_left_out():
    plan = learned(
        {
            "x": [1.0, 2.0, 3.0],
            "k": [7.0] * 3,
            "shop": ["a"] * 3,
            "void": [None] * 3,
            "id": list("pqr"),
        },
        min_rows=2,
    )
    assert plan.names == ("x",)
    assert [part.name for part in plan.constant] == ["k", "shop", "void", "id"]
    _, surprises = prepared(plan, {"x": [1.0], "k": [8.0], "shop": ["a"], "void": [None], "id": ["p"]})
    assert surprises == ("'k' is '8' (it hardly varied in training and is ignored)",)


def test_a_constant_number_with_gaps_still_says_where_they_were():
    plan = learned({"k": [7.0, None, 7.0, None]}, min_rows=2)
    assert plan.names == ("k", "k=missing")
    assert prepared(plan, {"k": [None]})[0].tolist() == [[7.0, 1.0]]


@pytest.mark.parametrize(("days", "counts"), [(334, False), (366, True)])
def test_in_order_of_time_a_month_counts_once_all_were_seen(days, counts):
    dates = np.datetime64("2023-01-01") + np.arange(days)
    table = Table.of({"day": dates})
    ordered = learn_plan(table, np.ones(days), scale=True, min_rows=1, in_order=True)
    assert ("day month=Feb" in ordered.names) == counts
    assert "day weekday=Tue" in ordered.names
    assert "day month=Feb" in learn_plan(table, np.ones(days), scale=True, min_rows=1).names


def test_dates_become_weekday_and_month():
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=k) for k in range(40)]
    plan = learned({"day": days})
    assert plan.names == (
        *(f"day weekday={d}" for d in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")),
        "day month=Feb",
    )
    matrix, _ = prepared(plan, {"day": [datetime.date(2024, 2, 29)]})
    assert matrix[0].tolist() == [0, 0, 0, 1, 0, 0, 0, 1]
    for day in days:
        row = prepared(plan, {"day": [day]})[0][0]
        assert row[:7].argmax() == day.weekday()
    with pytest.raises(InvalidInputError, match="must hold dates in 'day'"):
        plan.encode(Table.of({"day": ["monday"]}))
    assert len(plan.encode(Table.of({"day": [None]}))[1]) == 2


def test_numbers_can_be_declared_categories_by_name_and_position():
    columns = {"store": [1, 2, 10], "x": [1.0, 2.0, 3.0]}
    by_name, by_place = learned(columns, categories=("store",)), learned(columns, categories=(-2,))
    assert by_name == by_place
    assert by_name.names == ("x", "store=1", "store=2", "store=10")
    assert prepared(by_name, {"store": [10.0], "x": [0.0]})[0].tolist() == [[0, 0, 0, 1]]
    for bad in ("shop", 2, True, 1.5):
        with pytest.raises(InvalidInputError, match=r"categories must name columns of X \(store, x\)"):
            learned(columns, categories=(bad,))


def test_text_where_numbers_were_is_refused():
    plan = learned({"a": [1.0, 2.0]})
    with pytest.raises(InvalidInputError, match="must hold numbers in 'a' as in fit, got a category"):
        plan.encode(Table.of({"a": ["x"]}))


def test_sources_lead_back_to_the_columns_of_x():
    plan = learned({"shop": ["a", "b", "c"], "x": [1.0, None, 2.0]})
    assert list(zip(plan.names, plan.sources.tolist(), strict=True)) == [
        ("x", 1), ("x=missing", 1), ("shop=a", 0), ("shop=b", 0), ("shop=c", 0),
    ]  # fmt: skip


def test_identifiers_are_found():
    plan = learned({"id": [f"r{k}" for k in range(30)], "x": list(range(30))}, min_rows=5)
    assert identifiers(plan, 30) == ("id",)
    assert identifiers(learned({"shop": ["a", "b"] * 15}), 30) == ()


def test_the_plan_prints_a_line_for_each_column():
    text = str(learned({"x": [1.0, 2.0, None], "shop": ["a", "b", "b"], "k": [1, 1, 1]}, min_rows=1))
    assert text.count("\n") == 2
    assert "flagged" in text
    assert "shop: a category of a, b" in text
    assert "k: left out" in text


def test_a_column_transformer_is_underneath():
    plan = learned({"x": [1.0, 2.0], "shop": ["a", "b"]})
    transformer = assemble(*plan.blocks())
    assert isinstance(transformer, ColumnTransformer)
    assert [name for name, *_ in transformer.transformers_] == ["numbers", "categories"]


def test_numbers_that_vary_too_little_beside_their_size_are_named_as_such():
    numbers = 1e12 + np.random.default_rng(0).normal(size=40)
    plan = learned({"stamp": numbers, "always": [7.0] * 40}, min_rows=5)
    assert identifiers(plan, 40) == ()
    with pytest.warns(DataWarning) as caught:
        warn_of_oddities(plan, 40)
    told = str(caught[0].message)
    assert "Columns that hardly varied are left out: 'stamp', 'always'." in told
    assert "vary by less than 1e-12 of their size count as constant ('stamp'): if" in told


def test_a_category_that_names_rows_is_not_said_to_have_hardly_varied():
    plan = learned({"receipt": [f"B{k}" for k in range(40)], "always": [7.0] * 40}, min_rows=3)
    with pytest.warns(DataWarning) as caught:
        warn_of_oddities(plan, 40)
    assert str(caught[0].message) == (
        "Columns that hardly varied are left out: 'always'. Categories with a level for most rows "
        "('receipt') name rows rather than describe them: leave them out, or make them coarser. No "
        "column is left: decisions are constant."
    )
    _, surprises = plan.encode(Table.of({"receipt": ["B99"], "always": [8.0]}))
    assert surprises == (
        "'receipt' is 'B99' (it had no level often enough in training and is ignored)",
        "'always' is '8' (it hardly varied in training and is ignored)",
    )
