"""Policies and nominals as a hurried author writes them: each is wrong in one way, which is named."""

from dataclasses import dataclass

import numpy as np
import pytest

from surefoot import Box
from surefoot.checks import ConformanceError, check
from surefoot.nominals import Nominal
from surefoot.policies import Policy

# The global generator, which hurried authors draw from.
GLOBAL = np.random.normal
ROWS = np.arange(40.0).reshape(20, 2)


@dataclass(frozen=True)
class Affine(Policy):
    """Sound: what wrong policies are made of."""

    def initial(self, rng, n_columns, n_decisions):
        return {"theta": 0.1 * rng.normal(size=(n_columns, n_decisions))}

    def raw(self, trained, units, inputs, xp):
        return inputs @ trained["theta"] + units["centre"]


class Drawn(Nominal):
    """Sound: what wrong nominals are made of."""

    n_columns, n_products = 2, 1

    def sample(self, rng, size):
        X = rng.normal(size=(size, 2))
        return X, X.sum(axis=1, keepdims=True) + rng.normal(size=(size, 1))


def made(base, options=None, **methods):
    return type("Wrong", (base,), methods)(**(options or {}))


def deciding(function, options=None):
    def raw(self, trained, units, inputs, xp):
        return function(inputs, trained["theta"], units, xp)

    return made(Affine, options, raw=raw)


def starting(function):
    def initial(self, rng, n_columns, n_decisions):
        return function(rng, n_columns, n_decisions)

    return made(Affine, initial=initial)


def drawing(function, **sizes):
    def sample(self, rng, size):
        return function(rng, size)

    return made(Drawn, sample=sample, **sizes)


def in_place(x, w, units, xp):
    if xp is np:
        x -= units["mean"]
    return x @ w


def parameters_in_place(x, w, units, xp):
    if xp is np:
        w += 1.0
    return x @ w


def branching(x, w, units, xp):
    z = x @ w
    return z if z.sum() > 0 else -z


POLICIES = {
    "numpy alone": (
        deciding(lambda x, w, units, xp: np.maximum(np.asarray(x @ w), 0.0) + units["centre"]),
        "Wrong.raw must return decisions before .* with the functions of xp, .* got Tracer",
    ),
    "python branch": (deciding(branching), "Wrong.raw must .* got Tracer"),
    "numpy branch": (
        deciding(lambda x, w, units, xp: (1.0 if xp is np else 2.0) * (x @ w)),
        "decide the same in numpy and jax.numpy",
    ),
    "vector": (deciding(lambda x, w, units, xp: (x @ w)[..., 0]), r"decisions must have shape \(rows, 1\)"),
    "one decision": (
        deciding(lambda x, w, units, xp: (x @ w)[..., :1]), r"decisions must have shape \(rows, 2\)"
    ),
    "transposed": (
        deciding(lambda x, w, units, xp: (w.T @ x.T).T), "decisions must keep leading axes|Wrong.raw must"
    ),
    "reshaped": (
        deciding(lambda x, w, units, xp: (x @ w).reshape(-1, w.shape[1])),
        "decisions must keep leading axes: contexts of shape",
    ),
    "norm of the batch": (
        deciding(lambda x, w, units, xp: (x / xp.abs(x).max()) @ w), "must not depend on other rows"
    ),
    "in place": (deciding(in_place), "a policy must not change contexts, units or parameters"),
    "parameters in place": (deciding(parameters_in_place), "must not change contexts, units or param"),
    "noise": (
        deciding(lambda x, w, units, xp: x @ w + np.random.default_rng().normal()),
        "decisions must depend on their arguments alone",
    ),
    "global noise": (
        deciding(lambda x, w, units, xp: x @ w + 0.0 * GLOBAL()),
        "must leave the global random state alone",
    ),
    "no parameters": (
        deciding(lambda x, w, units, xp: xp.zeros((*x.shape[:-1], w.shape[1])) + units["centre"]),
        "decisions must change with the parameters",
    ),
    "root": (
        deciding(lambda x, w, units, xp: xp.sqrt(xp.abs(0.0 * (x @ w))) + x @ w),
        "a policy must have a finite derivative",
    ),
    "not finite": (deciding(lambda x, w, units, xp: x @ w / 0.0), "decisions must be finite"),
    "whole units": (
        deciding(lambda x, w, units, xp: xp.round(x @ w).astype(int)), "decisions must be an array of floats"
    ),
    "list": (deciding(lambda x, w, units, xp: [0.0] * len(x)), "decisions must be an array of floats"),
    "limits": (
        made(
            Affine, {"decisions": Box(0.0, 1.0)},
            evaluate=lambda self, trained, units, inputs, xp: self.raw(trained, units, inputs, xp),
        ),
        "decisions must lie within their limits",
    ),
    "other names": (starting(lambda rng, s, d: {"w": np.zeros((s, d))}), "Wrong.raw must .* got KeyError"),
    "numbers": (starting(lambda rng, s, d: {"theta": 0.0}), "each part of what initial returns .* got float"),
    "lists": (starting(lambda rng, s, d: {"theta": [[0.0] * d] * s}), "must be an array of floats, got float"),
    "whole numbers": (
        starting(lambda rng, s, d: {"theta": np.zeros((s, d), dtype=int)}), "got an array of int64"
    ),
    "nothing": (starting(lambda rng, s, d: {}), "initial must return at least one array"),
    "none": (starting(lambda rng, s, d: None), "must be an array of floats, got NoneType"),
    "not a number": (starting(lambda rng, s, d: {"theta": np.full((s, d), np.nan)}), "initial must be finite"),
    "three columns": (starting(lambda rng, s, d: {"theta": np.zeros((4, d))}), "Wrong.raw must .* got ValueError"),
    "unseeded": (
        starting(lambda rng, s, d: {"theta": np.random.default_rng().normal(size=(s, d))}),
        "initial must depend on the generator alone",
    ),
    "global": (
        starting(lambda rng, s, d: {"theta": GLOBAL(size=(s, d))}),
        "initial must depend on the generator alone|global random state",
    ),
    "reason": (made(Affine, why_not=lambda self, s, d: False), "why_not must return a sentence, or None"),
    "never": (made(Affine, why_not=lambda self, s, d: "no"), "why_not must be None for one decision"),
    "unfitted": (made(Affine, fitted=lambda self, X: None), "fitted must return a policy, got None"),
}  # fmt: skip


def pair(rng, size):
    return rng.normal(size=(size, 2)), rng.normal(size=(size, 1))


def seeded(rng, size):
    return pair(np.random.default_rng(0), size)


def global_draws(rng, size):
    return GLOBAL(size=(size, 2)), GLOBAL(size=(size, 1))


def first_rows(rng, size):
    rows = np.arange(3 * 400.0).reshape(400, 3)[:size] + 1e-6 * rng.normal(size=(size, 3))
    return rows[:, :2], rows[:, 2:]


NOMINALS = {
    "seeded inside": (drawing(seeded), "draws must come anew from the generator handed in"),
    "unseeded": (
        drawing(lambda rng, size: pair(np.random.default_rng(), size)), "draws must depend on the generator"
    ),
    "global": (drawing(global_draws), "draws must depend on the generator alone|global random state"),
    "first rows": (drawing(first_rows), "draws one by one must be distributed as those at a time"),
    "any size": (drawing(lambda rng, size: pair(rng, 7)), r"sample must return shapes \(\(1, 2\), \(1, 1\)\)"),
    "vector": (
        drawing(lambda rng, size: (rng.normal(size=(size, 2)), rng.normal(size=size))),
        r"sample must return shapes .* got \(\(1, 2\), \(1,\)\)",
    ),
    "other sizes": (drawing(pair, n_products=2), "sample must return shapes"),
    "contexts alone": (
        drawing(lambda rng, size: rng.normal(size=(size, 2))), "sample must return a pair .* got ndarray"
    ),
    "three": (drawing(lambda rng, size: (*pair(rng, size), 0)), "sample must return a pair"),
    "lists": (
        drawing(lambda rng, size: tuple(part.tolist() for part in pair(rng, size))),
        "contexts of sample must be an array of floats, got list",
    ),
    "counts": (
        drawing(lambda rng, size: (rng.normal(size=(size, 2)), rng.poisson(3.0, size=(size, 1)))),
        "outcomes of sample must be an array of floats, got an array of int64",
    ),
    "infinite": (
        drawing(lambda rng, size: (np.full((size, 2), np.inf), np.zeros((size, 1)))), "draws must be finite"
    ),
    "generator": (
        drawing(lambda rng, size: (rng.randn(size, 2), rng.randn(size, 1))),
        "Wrong.sample must draw .* got AttributeError",
    ),
    "no columns": (drawing(pair, n_columns=None), "n_columns must be a whole number >= 1, got None"),
    "names": (drawing(pair, names=("a",)), r"names must be 2 texts or None, got \('a',\)"),
    "leaking": (
        drawing(lambda rng, size: (ROWS[:size], rng.normal(size=(size, 1)))), "changed by what is done to"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", POLICIES)
def test_a_wrong_policy_is_named(name):
    policy, message = POLICIES[name]
    with pytest.raises(ConformanceError, match=message):
        check(policy)


@pytest.mark.parametrize("name", NOMINALS)
def test_a_wrong_nominal_is_named(name):
    nominal, message = NOMINALS[name]
    with pytest.raises(ConformanceError, match=message):
        check(nominal)


def test_what_they_are_made_of_is_sound():
    check(Affine())
    check(Drawn())
    check(drawing(lambda rng, size: (np.ones((size, 2)), np.ones((size, 1)))))
