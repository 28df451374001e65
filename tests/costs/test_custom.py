import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from surefoot.costs import CustomCost, Newsvendor
from surefoot.exceptions import InvalidInputError, InvalidTypeError, MissingExtraError


def fourth(z, y):
    return jnp.sum((z - y) ** 4)


def newsvendor(z, y):
    return jnp.sum(jnp.maximum(y - z, 0.0) + 0.2 * jnp.maximum(z - y, 0.0))


def margin(z, y):
    """One decision, two outcomes; the answer has shape (1,)."""
    return -(z - y[1]) * jnp.exp(-z / y[0])


@pytest.mark.parametrize("shape", [(2,), (5, 2), (3, 4, 2)])
def test_it_is_the_function_row_by_row(shape):
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=shape), rng.normal(size=shape)
    cost = CustomCost(newsvendor, outcomes=2)
    found = cost.evaluate(z, y)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    assert found.shape == shape[:-1]
    np.testing.assert_allclose(found, Newsvendor(1.0, 0.2).evaluate(z, y), rtol=1e-13)
    with jax.enable_x64(True):
        other = cost.evaluate(jnp.asarray(z), jnp.asarray(y), jnp)
        np.testing.assert_allclose(other, found, rtol=1e-13)


def test_an_answer_of_shape_one_is_a_number():
    cost = CustomCost(margin, outcomes=2, decisions=1)
    z, y = np.array([[1.0], [2.0]]), np.array([[1.0, 0.5], [4.0, 0.0]])
    np.testing.assert_allclose(cost.evaluate(z, y), [-0.5 * np.exp(-1), -2 * np.exp(-0.5)])


def test_gradients():
    cost, point = CustomCost(fourth, outcomes=2), np.array([0.3, -1.0, 0.5, 0.2])

    def value(p, xp=np):
        return cost.evaluate(p[:2], p[2:], xp)

    with jax.enable_x64(True):
        slope = np.asarray(jax.jit(jax.grad(lambda p: value(p, jnp)))(jnp.asarray(point)))
    for j, step in enumerate(1e-5 * np.eye(4)):
        numeric = (value(point + step) - value(point - step)) / 2e-5
        assert slope[j] == pytest.approx(float(numeric), rel=1e-6)


def test_decisions_of_another_number_than_outcomes():
    cost = CustomCost(margin, outcomes=2, decisions=1)
    assert cost.n_decisions(2) == 1
    outcomes = np.array([[3.0, 1.0], [5.0, 1.0]])
    centre, unit = cost.typical(outcomes, np.full(2, 0.5))
    np.testing.assert_array_equal(centre, [0.0])
    np.testing.assert_array_equal(unit, [1.0])
    same = CustomCost(fourth, outcomes=2)
    assert same.n_decisions(2) == 2
    centre, unit = same.typical(outcomes, np.full(2, 0.5))
    np.testing.assert_array_equal(centre, [4.0, 1.0])
    np.testing.assert_array_equal(unit, [1.0, 1.0])


def test_outcomes_must_be_as_many_as_it_says():
    assert CustomCost(fourth).why_not(1) is None
    assert CustomCost(fourth).why_not(2) == (
        "y must have 1 column as CustomCost(outcomes=1) says, got 2."
    )
    assert CustomCost(fourth, outcomes=3).why_not(1) == (
        "y must have 3 columns as CustomCost(outcomes=3) says, got 1."
    )


def test_nothing_is_known_of_it():
    cost = CustomCost(fourth)
    assert (cost.growth(), cost.curvature(), cost.floor()) == (np.inf, np.inf, -np.inf)
    assert cost.why_unlimited() is None


def test_the_same_function_makes_the_same_cost():
    """Compiled code is kept by cost: a new object with the same parts must find it."""
    assert CustomCost(fourth) == CustomCost(fourth, outcomes=1)
    assert hash(CustomCost(fourth)) == hash(CustomCost(fourth))
    assert CustomCost(fourth) != CustomCost(newsvendor)


@pytest.mark.parametrize(("shape_z", "shape_y"), [((3, 1), (3,)), ((3, 1), (1, 1)), ((), (1,))])
def test_rows_that_do_not_fit_are_refused(shape_z, shape_y):
    message = (
        "decisions and outcomes must have the same rows, (rows, decisions) and (rows, outcomes), "
        f"got {shape_z} and {shape_y}."
    )
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        CustomCost(fourth).evaluate(np.ones(shape_z), np.ones(shape_y))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"fn": 3}, InvalidTypeError, "fn must be a function fn(z, y), got 3."),
        ({"fn": None}, InvalidTypeError, "fn must be a function fn(z, y), got None."),
        ({"outcomes": 0}, InvalidInputError, "outcomes must be >= 1, got 0."),
        ({"outcomes": 1.0}, InvalidTypeError, "outcomes must be a whole number, got 1.0."),
        ({"outcomes": None}, InvalidTypeError, "outcomes must be a whole number, got None."),
        ({"decisions": 0}, InvalidInputError, "decisions must be >= 1, got 0."),
        ({"decisions": "one"}, InvalidTypeError, "decisions must be a whole number, got 'one'."),
    ],
)
def test_unusable_options_are_refused(options, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        CustomCost(**{"fn": fourth, **options})


def test_a_function_that_cannot_work_is_refused_at_once():
    message = "fn(z, y) must return one number for each row (shape ()), got shape (2,)."
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        CustomCost(lambda z, y: z - y, outcomes=2)
    # Two outcomes and three decisions reach the function as such.
    with pytest.raises(InvalidInputError, match=r"^fn\(z, y\) must be a function that JAX can trace"):
        CustomCost(lambda z, y: z @ y, outcomes=2, decisions=3)


def test_without_jax_the_install_command_is_named(monkeypatch):
    cost = CustomCost(fourth)

    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr("importlib.import_module", missing)
    for what, use in (
        ("A function of your own", lambda: CustomCost(fourth)),
        ("CustomCost", lambda: cost.evaluate(np.ones((2, 1)), np.ones((2, 1)))),
    ):
        message = f'{what} needs JAX: run pip install "surefoot[jax]".'
        with pytest.raises(MissingExtraError, match=f"^{re.escape(message)}$"):
            use()
