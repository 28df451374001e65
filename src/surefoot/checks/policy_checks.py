"""What policies must keep."""

import importlib.util
from typing import Any

import numpy as np

from surefoot.checks.demands import (
    close,
    demand,
    frozen,
    saved,
    some_rows,
)
from surefoot.policies import Policy, Units
from surefoot.policies.base import leaves
from surefoot.tracing import load_jax
from surefoot.typing import FloatArray


def _started(policy: Policy) -> tuple[Policy, Any, dict[str, FloatArray], FloatArray]:
    X, y = some_rows()
    policy = policy.fitted(X)
    inputs = policy.inputs(X)
    features = inputs.shape[1] - policy.n_fixed(1)
    trained = policy.initial(np.random.default_rng(0), features, 1)
    mean, spread = inputs[:, :features].mean(axis=0), inputs[:, :features].std(axis=0)
    units = Units(mean, np.where(spread > 0, spread, 1.0), y.mean(axis=0), y.std(axis=0))
    return policy, trained, units.tree(), inputs


def _shaken(tree: Any, rng: np.random.Generator) -> Any:
    """Return parameters as learning might leave them: a start at zero hides most of a formula."""
    if isinstance(tree, dict):
        return {name: _shaken(part, rng) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_shaken(part, rng) for part in tree)
    return np.asarray(tree) + 0.3 * rng.normal(size=np.shape(tree))


def _policy_decides(policy: Policy) -> None:
    """One finite decision for each row by itself, within the limits if there are some."""
    policy, start, units, inputs = _started(policy)
    for trained in (start, _shaken(start, np.random.default_rng(1))):
        decisions = np.asarray(policy.evaluate(trained, units, inputs, np))
        demand(
            decisions.shape == (len(inputs), 1),
            f"decisions must have shape (rows, 1), got {decisions.shape}",
        )
        demand(bool(np.isfinite(decisions).all()), "decisions must be finite")
        alone = policy.evaluate(trained, units, inputs[:1], np)
        close(alone, decisions[:1], "the decision of a row must not depend on other rows")
        if policy.decisions is not None:
            demand(policy.decisions.contains(decisions), "decisions must lie within their limits")


def _policy_starts(policy: Policy) -> None:
    """The start depends on the generator alone."""
    _, first, _, _ = _started(policy)
    _, again, _, _ = _started(policy)
    for one, other in zip(leaves(first).values(), leaves(again).values(), strict=True):
        close(one, other, "initial must depend on the generator alone")


def _policy_in_jax(policy: Policy) -> None:
    """The same formula runs in JAX, and has a derivative that is finite."""
    if importlib.util.find_spec("jax") is None:
        return
    jax = load_jax("A check")
    policy, start, units, inputs = _started(policy)
    for trained in (start, _shaken(start, np.random.default_rng(1))):
        with jax.enable_x64(True):
            put = jax.tree.map(jax.numpy.asarray, trained)
            in_jax = policy.evaluate(put, units, jax.numpy.asarray(inputs), jax.numpy)
            slopes = jax.grad(lambda p: policy.evaluate(p, units, inputs, jax.numpy).sum())(put)
            finite = all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(slopes))
        in_numpy = policy.evaluate(trained, units, inputs, np)
        promise = "a policy must decide the same in numpy and jax.numpy"
        close(in_numpy, np.asarray(in_jax), promise)
        demand(finite, "a policy must have a finite derivative in its parameters")


POLICY_CHECKS = (frozen, saved, _policy_starts, _policy_decides, _policy_in_jax)
