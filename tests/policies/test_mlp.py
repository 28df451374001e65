import math
import re

import numpy as np
import pytest

from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.policies import MLP

UNITS = {
    "mean": np.array([1.0]),
    "spread": np.array([2.0]),
    "centre": np.array([10.0]),
    "unit": np.array([3.0]),
}
HAND_SET = {
    "weight0": np.array([[1.0, -2.0]]),
    "bias0": np.array([0.5, 0.0]),
    "weight1": np.array([[1.0], [4.0]]),
    "bias1": np.array([-1.0]),
}
BENDS = {
    "elu": lambda v: v if v > 0 else math.exp(v) - 1,
    "relu": lambda v: max(v, 0.0),
    "tanh": math.tanh,
    "softplus": lambda v: math.log(1 + math.exp(v)),
}


@pytest.mark.parametrize("activation", BENDS)
@pytest.mark.parametrize("x", [-3.0, 1.0, 2.2])
def test_one_hidden_layer_by_hand(activation, x):
    seen, bend = (x - 1.0) / 2.0, BENDS[activation]
    network = bend(seen + 0.5) + 4.0 * bend(-2.0 * seen) - 1.0
    found = MLP((2,), activation).evaluate(HAND_SET, UNITS, np.array([[x]]), np)
    np.testing.assert_allclose(found, [[10.0 + 3.0 * network]], rtol=1e-12)


def test_two_hidden_layers_bend_twice_and_the_last_is_affine():
    trained = {
        "weight0": np.array([[1.0]]),
        "bias0": np.array([0.0]),
        "weight1": np.array([[-1.0]]),
        "bias1": np.array([2.0]),
        "weight2": np.array([[-5.0]]),
        "bias2": np.array([0.0]),
    }
    units = {name: np.full(1, float(name in ("spread", "unit"))) for name in UNITS}
    X = np.array([[-1.0], [0.5], [3.0]])
    # relu(2 - relu(x)) is 2, 1.5 and 0; the last layer makes it negative and leaves it so.
    found = MLP((1, 1), "relu").evaluate(trained, units, X, np)
    np.testing.assert_allclose(found, [[-10.0], [-7.5], [0.0]])


@pytest.mark.parametrize(("activation", "gain"), [("elu", 1.0), ("relu", 2.0), ("tanh", 1.0)])
def test_first_weights_have_the_promised_variance(activation, gain):
    start = MLP((300, 200), activation).initial(np.random.default_rng(0), 100, 50)
    assert list(start) == ["weight0", "bias0", "weight1", "bias1", "weight2", "bias2"]
    shapes = {"weight0": (100, 300), "weight1": (300, 200), "weight2": (200, 50)}
    for layer, (name, shape) in enumerate(shapes.items()):
        assert start[name].shape == shape
        last = 0.1 if layer == 2 else 1.0
        assert start[name].std() == pytest.approx(last * math.sqrt(gain / shape[0]), rel=0.03)
        np.testing.assert_array_equal(start[f"bias{layer}"], np.zeros(shape[1]))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        *(
            (
                {"hidden": hidden},
                InvalidInputError,
                f"hidden must be the widths of the hidden layers such as (64, 64), got {hidden!r}.",
            )
            for hidden in (64, 64.0, np.int64(64), None, (), [], "64", True)
        ),
        ({"hidden": (8, 0)}, InvalidInputError, "hidden must be >= 1, got 0."),
        ({"hidden": (8, 2.5)}, InvalidTypeError, "hidden must be a whole number, got 2.5."),
        ({"hidden": ("8",)}, InvalidTypeError, "hidden must be a whole number, got '8'."),
        (
            {"activation": "gelu"},
            InvalidInputError,
            "activation must be 'elu' or 'relu' or 'tanh' or 'softplus', got 'gelu'.",
        ),
        (
            {"activation": None},
            InvalidInputError,
            "activation must be 'elu' or 'relu' or 'tanh' or 'softplus', got None.",
        ),
    ],
)
def test_unusable_options_are_refused(options, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        MLP(**options)


def test_widths_may_come_as_any_sequence():
    expected = MLP((8, 4))
    for hidden in ([8, 4], np.array([8, 4]), (width for width in (8, 4))):
        assert MLP(hidden) == expected
        assert hash(MLP([8, 4])) == hash(expected)
    assert repr(expected) == "MLP(features=None, decisions=None, hidden=(8, 4), activation='elu')"
    assert MLP().hidden == (64, 64)
