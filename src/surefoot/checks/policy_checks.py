"""What policies must keep."""

import importlib.util
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from surefoot.checks.demands import (
    close,
    demand,
    frozen,
    numbers_of,
    reason_of,
    saved,
    some_rows,
)
from surefoot.policies import Policy, Units
from surefoot.policies.base import leaves
from surefoot.tracing import load_jax
from surefoot.typing import FloatArray


class _Start(NamedTuple):
    """A policy for so many decisions, where learning starts, and what it decides from."""

    policy: Policy
    decisions: int
    trained: Any
    units: dict[str, FloatArray]
    inputs: FloatArray


def _starts(policy: Policy) -> Iterator[_Start]:
    """Yield the policy for one decision and for two, if it takes so many."""
    for count in (1, 2):
        X, y = some_rows(products=count)
        reason = reason_of(policy.why_not(X.shape[1], count))
        demand(count > 1 or reason is None, f"why_not must be None for one decision, got {reason!r}")
        if reason is not None or (count > 1 and policy.n_fixed(count)):  # fixed values are for one
            continue
        ready = policy.fitted(X)
        demand(isinstance(ready, Policy), f"fitted must return a policy, got {ready!r}")
        inputs = ready.inputs(X)
        features = inputs.shape[1] - ready.n_fixed(count)
        trained = ready.initial(np.random.default_rng(0), features, count)
        mean, spread = inputs[:, :features].mean(axis=0), inputs[:, :features].std(axis=0)
        units = Units(mean, np.where(spread > 0, spread, 1.0), y.mean(axis=0), y.std(axis=0))
        yield _Start(ready, count, trained, units.tree(), inputs)


def _shaken(tree: Any, rng: np.random.Generator) -> Any:
    """Return parameters as learning might leave them: a start at zero hides most of a formula."""
    if isinstance(tree, dict):
        return {name: _shaken(part, rng) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_shaken(part, rng) for part in tree)
    return np.asarray(tree) + 0.3 * rng.normal(size=np.shape(tree))


def _policy_starts(policy: Policy) -> None:
    """The start is arrays of finite floats that depend on the generator alone."""
    for first, again in zip(_starts(policy), _starts(policy), strict=True):
        parts = leaves(first.trained)
        demand(bool(parts), f"initial must return at least one array, got {first.trained!r}")
        for name, part in parts.items():
            array = numbers_of(part, f"each part of what initial returns ({name or 'the whole'})")
            demand(bool(np.isfinite(array).all()), f"initial must be finite, got {array}")
        for one, other in zip(parts.values(), leaves(again.trained).values(), strict=True):
            close(one, other, "initial must depend on the generator alone")


def _policy_decides(policy: Policy) -> None:
    """One finite decision for each row by itself, within the limits if there are some."""
    for start in _starts(policy):
        learned = _shaken(start.trained, np.random.default_rng(1))
        for trained in (start.trained, learned):
            _decisions(start, trained)
        first, later = (_decided(start, trained) for trained in (start.trained, learned))
        demand(not np.array_equal(first, later), "decisions must change with the parameters")


def _decided(start: _Start, trained: Any) -> FloatArray:
    policy, _, _, units, inputs = start
    return numbers_of(policy.evaluate(trained, units, inputs, np), "decisions")


def _decisions(start: _Start, trained: Any) -> None:
    """Raise unless decisions at some parameters are those of each row alone."""
    policy, count, _, units, inputs = start
    held = [inputs, *leaves(trained).values(), *units.values()]
    before = [np.array(array) for array in held]
    decisions = _decided(start, trained)
    for array, kept in zip(held, before, strict=True):
        close(array, kept, "a policy must not change contexts, units or parameters")
    shape = len(inputs), count
    demand(
        decisions.shape == shape,
        f"decisions must have shape (rows, {count}), here {shape}, got {decisions.shape}",
    )
    demand(bool(np.isfinite(decisions).all()), "decisions must be finite")
    close(_decided(start, trained), decisions, "decisions must depend on their arguments alone")
    alone = policy.evaluate(trained, units, inputs[:1], np)
    close(alone, decisions[:1], "the decision of a row must not depend on other rows")
    for axes, asked in (((2, 3), inputs[:6].reshape(2, 3, -1)), ((), inputs[0])):
        kept = np.asarray(policy.evaluate(trained, units, asked, np))
        wanted = decisions[:6].reshape(2, 3, -1) if axes else decisions[0]
        demand(
            kept.shape == wanted.shape,
            f"decisions must keep leading axes: contexts of shape {asked.shape} need decisions of "
            f"shape {wanted.shape}, got {kept.shape}",
        )
        close(kept, wanted, "decisions must keep leading axes")
    if policy.decisions is not None:
        demand(policy.decisions.contains(decisions), "decisions must lie within their limits")


def _policy_in_jax(policy: Policy) -> None:
    """The same formula runs in JAX, and has a derivative that is finite."""
    if importlib.util.find_spec("jax") is None:
        return
    jax = load_jax("A check")
    policy, _, start, units, inputs = next(_starts(policy))
    for trained in (start, _shaken(start, np.random.default_rng(1))):
        with jax.enable_x64(True):
            put = jax.tree.map(jax.numpy.asarray, trained)
            in_jax = jax.jit(lambda p, x: policy.evaluate(p, units, x, jax.numpy))(put, inputs)
            # The adversary moves contexts, so both have derivatives.
            slopes = jax.grad(
                lambda p, x: policy.evaluate(p, units, x, jax.numpy).sum(), argnums=(0, 1)
            )(put, jax.numpy.asarray(inputs))
            finite = all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(slopes))
        in_numpy = policy.evaluate(trained, units, inputs, np)
        promise = "a policy must decide the same in numpy and jax.numpy"
        close(in_numpy, np.asarray(in_jax), promise)
        demand(finite, "a policy must have a finite derivative in its parameters and contexts")


POLICY_CHECKS = (frozen, saved, _policy_starts, _policy_decides, _policy_in_jax)
