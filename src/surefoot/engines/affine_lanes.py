"""Affine problems side by side: the batched form of the update, on a GPU if there is one."""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.ambiguity import AffineForm, WassersteinForm
from surefoot.engines.affine import Policy, first_numbers
from surefoot.engines.affine_kernels import AVERAGE_EVERY
from surefoot.engines.arrangement import Arrangement
from surefoot.tracing import keep_compiled, load_jax
from surefoot.typing import FloatArray


def why_not_batch(form: AffineForm) -> str | None:
    """Return why an affine form cannot join a batch, or None."""
    if not isinstance(form, WassersteinForm):
        return "a batch needs a Wasserstein ball; use engine='threads'"
    if form.boxed or form.pieces.smoothing > 0 or not form.pieces.two:
        return (
            "a batch has no box support, and costs of two lines without smoothing; use engine='threads'"
        )
    if not form.movable.all():
        return "a batch has no frozen or constant columns; use engine='threads'"
    return None


class AffineBatch:
    """Affine problems of one order, with or without intercept, stepping together."""

    def __init__(self, forms: Sequence[WassersteinForm], dtype: Any = np.float64) -> None:
        self.jax = load_jax("A batch of problems")
        keep_compiled(self.jax)
        self.engine = importlib.import_module("surefoot.engines.affine_batch")
        self.forms = list(forms)
        self.arrangements = [Arrangement.of(form, form.movable, rotate=False) for form in self.forms]
        self.rows = [at.rows(form.contexts) for at, form in zip(self.arrangements, forms, strict=True)]
        self.steps = 0
        with self.jax.enable_x64(True):
            self.instances = self._instances(dtype)
            self.state = self._start(dtype)

    def _instances(self, dtype: Any) -> Any:
        rows = max(len(form.outcomes) for form in self.forms)
        gram = np.zeros((len(self.forms), rows, rows), dtype=dtype)
        outcomes = np.zeros((len(self.forms), rows), dtype=dtype)
        for k, (form, rows_of) in enumerate(zip(self.forms, self.rows, strict=True)):
            gram[k, : len(rows_of), : len(rows_of)] = rows_of @ rows_of.T
            outcomes[k, : len(rows_of)] = form.outcomes
        jnp = self.jax.numpy
        numbers = {
            "up": [p.pieces.up for p in self.forms],
            "down": [p.pieces.down for p in self.forms],
            "radius": [p.radius for p in self.forms],
            "pull": [p.pull for p in self.forms],
        }
        return self.engine.Instances(
            gram=jnp.asarray(gram),
            outcomes=jnp.asarray(outcomes),
            **{name: jnp.asarray(values, dtype=dtype) for name, values in numbers.items()},
        )

    def _start(self, dtype: Any) -> Any:
        jnp = self.jax.numpy
        states = [first_numbers(f, rows)[0] for f, rows in zip(self.forms, self.rows, strict=True)]
        wide = jnp.zeros(self.instances.outcomes.shape, dtype=dtype)
        zero = jnp.zeros(len(states), dtype=dtype)

        def each(name: str) -> Any:
            return jnp.asarray([state[name] for state in states], dtype=dtype)

        return self.engine.BatchState(
            coefficients=wide, decisions=wide, average=wide, average_intercept=zero,
            slope_sums=wide, visits=wide,
            intercept=each("intercept"), start=each("start"), squared=zero,
            square_slope=each("square_slope"), travelled=each("travelled"),
            intercept_travelled=each("intercept_travelled"),
            squares=zero, intercept_squares=zero, steps=zero,
        )  # fmt: skip

    def draw(self, rngs: Sequence[np.random.Generator], steps: int) -> FloatArray:
        """Draw row numbers, shape (steps, problems); steps are rounded up to whole groups."""
        count = -(-steps // AVERAGE_EVERY) * AVERAGE_EVERY
        columns = [
            rng.choice(len(p.outcomes), size=count, p=p.weights)
            for p, rng in zip(self.forms, rngs, strict=True)
        ]
        return np.stack(columns, axis=1).astype(np.int32)

    def run(self, draws: Any, *, average: bool) -> None:
        """Take one step of every problem for each row of draws."""
        first = self.forms[0]
        compiled = self.engine.compiled_batch(first.order, intercept=first.intercept, average=average)
        with self.jax.enable_x64(True):
            self.state = compiled(self.state, self.jax.numpy.asarray(draws), self.instances)
        self.steps += len(draws)
        self.averaged = len(draws) // AVERAGE_EVERY if average else 0

    def answers(self) -> list[tuple[Policy, FloatArray]]:
        """Return the average policy of each form (where it stands if none was taken), and slopes."""
        count = self.averaged
        wide = np.asarray(self.state.average) / count if count else np.asarray(self.state.coefficients)
        intercepts = np.asarray(self.state.average_intercept if count else self.state.intercept)
        sums, visits = np.asarray(self.state.slope_sums), np.asarray(self.state.visits)
        answers = []
        for k, (form, at) in enumerate(zip(self.forms, self.arrangements, strict=True)):
            rows = slice(0, len(form.outcomes))
            theta = self.rows[k].T @ wide[k, rows].astype(np.float64)
            policy = at.original(theta, float(intercepts[k]) / max(count, 1))
            slopes = form.pieces.slope_at(form.residuals(*policy))
            seen = visits[k, rows] > 0
            slopes = np.where(seen, sums[k, rows] / np.maximum(visits[k, rows], 1.0), slopes)
            answers.append((policy, slopes))
        return answers
