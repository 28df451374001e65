"""Activations of neural policies, written against an array namespace."""

from collections.abc import Callable

from surefoot.typing import ArrayNamespace, FloatArray


def elu(values: FloatArray, xp: ArrayNamespace, alpha: float = 1.0) -> FloatArray:
    """Return v for v > 0 and alpha (exp(v) - 1) otherwise."""
    # The exponential of a large number, though not used, would make the derivative NaN.
    below = alpha * (xp.exp(xp.where(values > 0.0, 0.0, values)) - 1.0)
    bent: FloatArray = xp.where(values > 0.0, values, below)
    return bent


def relu(values: FloatArray, xp: ArrayNamespace) -> FloatArray:
    """Return the positive part."""
    positive: FloatArray = xp.maximum(values, 0.0)
    return positive


def tanh(values: FloatArray, xp: ArrayNamespace) -> FloatArray:
    """Return the hyperbolic tangent."""
    bent: FloatArray = xp.tanh(values)
    return bent


def softplus(values: FloatArray, xp: ArrayNamespace) -> FloatArray:
    """Return log(1 + exp(v)), without overflow."""
    smooth: FloatArray = xp.logaddexp(values, 0.0)
    return smooth


def sigmoid(values: FloatArray, xp: ArrayNamespace) -> FloatArray:
    """Return 1 / (1 + exp(-v)), without overflow."""
    # Unlike a shifted tanh, it keeps its digits (and its slope) far below zero.
    share: FloatArray = xp.exp(-xp.logaddexp(0.0, -values))
    return share


ACTIVATIONS: dict[str, Callable[[FloatArray, ArrayNamespace], FloatArray]] = {
    "elu": elu,
    "relu": relu,
    "tanh": tanh,
    "softplus": softplus,
}
