"""Any policy and cost on a stream, through the general engine (JAX)."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from surefoot.costs import AuxiliaryCost
from surefoot.engines.online import scale_rows
from surefoot.engines.online_constants import COUNT, MEAN, TAIL
from surefoot.estimators.general_learner import STREAM_RATE_SHARE, GeneralLearner
from surefoot.exceptions import InvalidInputError
from surefoot.online.learner import RESTART_ROWS, StreamLearner, kernel_options
from surefoot.online.settings import Settings
from surefoot.policies import Linear, Units
from surefoot.problem import GeneralProblem, general_problem, why_not_general
from surefoot.solvers import DASGD
from surefoot.solvers.general_run import GeneralRun, default_adam
from surefoot.solvers.optimizers import Adam
from surefoot.typing import FloatArray

# A stream sees each row once, and averages: Adam steps by so many times the learning rate of a fit.
FRESH_RATE = 3.0
# Rows go through the compiled step in pieces of these lengths, so that few lengths are compiled.
PIECES = (32, 1)


@dataclass(eq=False)
class GeneralStream(StreamLearner):
    """Where the general engine stands.

    Attributes
    ----------
    table
        Shape (6, columns): running mean, summed squared deviations, count, frozen, lower, upper.
    clock
        Shape (1,): rows since the start or the last restart.
    units
        What the policy computes in, from the first rows, and fixed: parameters keep their meaning.
    auxiliary
        Where the cost's own variables start, and their unit.
    n_outcomes
        Numbers in an outcome.
    rate
        Adam's learning rate over that of a fit: less than one after a fit.
    """

    block: ClassVar[int] = 1

    settings: Settings
    table: FloatArray
    clock: FloatArray
    units: Units
    auxiliary: tuple[FloatArray, FloatArray]
    n_outcomes: int
    rate: float = FRESH_RATE

    @classmethod
    def start(
        cls, settings: Settings, table: FloatArray, rows: FloatArray, outcomes: FloatArray
    ) -> "GeneralStream":
        """Begin at the policy's own start, in the units of these rows, and learn them."""
        filled = np.where(np.isnan(rows), table[MEAN], rows)
        question = settings.problem(filled, outcomes)
        reason = why_not_general(question)
        if reason is not None:
            raise InvalidInputError(f"the stream must have a best policy, got none: {reason}.")
        problem = general_problem(question)
        stream = cls(settings, table, np.zeros(1), problem.units, problem.auxiliary, outcomes.shape[1])
        stream._build(problem)
        stream._step(rows, outcomes, running=False)
        return stream

    @classmethod
    def after_fit(
        cls, settings: Settings, table: FloatArray, fitted: GeneralLearner, n_outcomes: int
    ) -> "GeneralStream":
        """Go on from a fitted policy, with its multiplier, in smaller steps."""
        stream = cls(
            settings,
            table,
            table[COUNT, :1].copy(),
            fitted.units,
            fitted.start,
            n_outcomes,
            STREAM_RATE_SHARE,
        )
        stream.build_empty()
        unit = np.where(fitted.start[1] != 0.0, fitted.start[1], 1.0)
        decider = {
            "policy": fitted.trained, "auxiliary": (fitted.auxiliary - fitted.start[0]) / unit,
        }  # fmt: skip
        stream._resume(fitted.leaves, decider)
        return stream

    @classmethod
    def restore(cls, settings: Settings, arrays: Mapping[str, FloatArray]) -> "GeneralStream":
        """Return the stream that ``arrays`` describes."""
        names = ("mean", "spread", "centre", "unit")
        units = Units(*(arrays[f"units_{name}"] for name in names))
        auxiliary = (arrays["auxiliary_start"], arrays["auxiliary_unit"])
        count, rate = int(arrays["n_outcomes"][0]), float(arrays["rate"][0])
        stream = cls(settings, arrays["table"], arrays["clock"], units, auxiliary, count, rate)
        stream.build_empty()
        stream.put(arrays)
        return stream

    # --- the engine -------------------------------------------------------------------------------

    def build_empty(self) -> None:
        """Prepare the compiled step without rows; the state is filled in afterwards."""
        box = self.settings.ball.support
        outcome = np.zeros((1, self.n_outcomes))
        if box is not None:
            outcome = np.clip(outcome, *box.outcome)
        question = self.settings.problem(self.units.mean[None, :], outcome)
        # At radius zero there is no first multiplier to guess from a row that stands for none.
        question = replace(question, ball=replace(question.ball, radius=0.0))
        scale, movable = np.ones(len(self.units.mean)), np.ones(len(self.units.mean), dtype=bool)
        problem = general_problem(question, 0, scale, movable, self.units)
        self._build(replace(problem, auxiliary=self.auxiliary))

    def _build(self, problem: GeneralProblem) -> None:
        """Prepare the compiled step and its first state."""
        step, window = self.settings.step, self.settings.window
        options = DASGD().general_settings()
        own = None if isinstance(problem.policy, Linear) else default_adam(options.max_steps)
        if own is not None:
            own = Adam(learning_rate=self.rate * own.learning_rate, decay=False)
        options = replace(options, minibatch=1, optimizer=step.optimizer(own))
        run = GeneralRun([problem], options, [self.settings.random_state])
        self._jax = run.engine.jax
        self._stream = importlib.import_module("surefoot.engines.online_general")
        self._options = kernel_options(self.settings, self.table)
        with self._jax.enable_x64(True):
            self._arena, state = self._jax.tree.map(lambda leaf: leaf[0], (run.arena, run.state))
            self._method = replace(run.method, average=False)
            if step.falls:
                rule = self._stream.FallingStep(step.coded()[1], window or np.inf)
                self._method = replace(self._method, rule=rule)
                state = state._replace(rule=())
            self._keep(self._stream.Carry(state, state.trained))

    def _resume(self, leaves: Sequence[FloatArray], decider: Any) -> None:
        """Go on from the state of a fit; where it stepped by another rule, from its policy alone."""
        tree, state = self._jax.tree, self._carry.state
        with self._jax.enable_x64(True):
            decider = tree.map(self._jax.numpy.asarray, decider)
            found, places = tree.leaves(state), tree.structure(state)
            if [leaf.shape for leaf in found] == [np.shape(leaf) for leaf in leaves]:
                state = tree.unflatten(places, [self._jax.numpy.asarray(leaf) for leaf in leaves])
            else:
                state = state._replace(trained=decider)
            state = state._replace(steps=self._jax.numpy.asarray(self.clock[0]))
            self._keep(self._stream.Carry(state, decider))

    def _keep(self, carry: Any) -> None:
        """Remember where the engine stands, and the policy that decides."""
        self._carry = carry
        self._decider = self._jax.tree.map(np.asarray, carry.average["policy"])

    def put(self, arrays: Mapping[str, FloatArray]) -> None:
        """Go back to what ``arrays`` describes."""
        self.table, self.clock = arrays["table"].copy(), arrays["clock"].copy()
        with self._jax.enable_x64(True):
            structure = self._jax.tree.structure(self._carry)
            count = sum(name.startswith("leaf_") for name in arrays)
            leaves = [self._jax.numpy.asarray(arrays[f"leaf_{k}"]) for k in range(count)]
            self._keep(self._jax.tree.unflatten(structure, leaves))

    # --- learning and deciding --------------------------------------------------------------------

    def learn(self, rows: FloatArray, outcomes: FloatArray) -> FloatArray:
        """Take one update for each row."""
        return self._step(rows, outcomes, running=True)

    def _step(self, rows: FloatArray, outcomes: FloatArray, *, running: bool) -> FloatArray:
        table, clock = self.table.copy(), self.clock.copy()
        filled, scales, movable = (np.empty_like(rows) for _ in range(3))
        scale_rows(rows, table, self._options, running, filled, scales, movable)
        seen = clock[0] + 1.0 + np.arange(len(rows))
        window = self.settings.window
        time = np.minimum(seen, window) if window else seen
        share = (1.0 + TAIL) / (time + TAIL) if self.settings.step.averages else np.ones(len(rows))
        # A sum is cut after the row that fills the window, as the compiled kernel does it.
        keep = np.where((window > 0) & (seen - 1.0 > window), 1.0 - 1.0 / max(window, 1.0), 1.0)
        radii = np.array([self.settings.radius_at(t) for t in time])
        block = self._stream.Row(filled, outcomes, radii, scales, movable, share, keep)
        carry, place, decided = self._carry, 0, []
        with self._jax.enable_x64(True):
            run = self._stream.compiled_stream(self._method)
            while place < len(rows):
                size = next(piece for piece in PIECES if piece <= len(rows) - place)
                part = self._jax.tree.map(lambda leaf, k=place, n=size: leaf[k : k + n], block)
                carry, (decisions, info) = run(self._arena, carry, part)
                place += size
                decided.append(np.asarray(decisions))
                self._refuse_failure(carry, info)
            self._keep(carry)
        clock[0] += len(rows)
        self.table, self.clock = table, clock
        return np.concatenate(decided)

    def _refuse_failure(self, carry: Any, info: Any) -> None:
        leaves = self._jax.tree.leaves((carry.state.trained, carry.state.log_multiplier, info.cost))
        if not all(bool(np.isfinite(np.asarray(leaf)).all()) for leaf in leaves):
            raise InvalidInputError(
                "the cost and its derivative must be finite, got NaN or infinity at a row of the "
                "stream; none of these rows was learned."
            )

    def decide(self, rows: FloatArray) -> FloatArray:
        """Return the averaged policy's decisions, without JAX."""
        filled = np.where(np.isnan(rows), self.table[MEAN], rows)
        policy = self.settings.policy
        return np.asarray(policy.evaluate(self._decider, self.units.tree(), filled, np))

    def decide_row(self, row: FloatArray) -> FloatArray:
        """Return the averaged policy's decision for one row."""
        decision: FloatArray = self.decide(row[None, :])[0]
        return decision

    def realised(self, decisions: FloatArray, outcomes: FloatArray) -> FloatArray:
        """Return what decisions have cost, at the cost's own variables where it has some."""
        cost = self.settings.cost
        if not isinstance(cost, AuxiliaryCost):
            return super().realised(decisions, outcomes)
        start, unit = self.auxiliary
        own = start + unit * np.asarray(self._carry.average["auxiliary"])
        return cost.evaluate_at(decisions, own, outcomes)

    def restart(self) -> None:
        """Take larger steps again, from where the parameters stand."""
        kept = min(1.0, RESTART_ROWS / float(self.clock[0]))
        with self._jax.enable_x64(True):
            state = self._stream.forget(self._carry.state, kept)
            steps = self._jax.numpy.minimum(state.steps, RESTART_ROWS)
            self._keep(self._carry._replace(state=state._replace(steps=steps)))
        self.clock = np.minimum(self.clock, RESTART_ROWS)

    def arrays(self) -> dict[str, FloatArray]:
        """Return all that the next update needs."""
        leaves = [np.array(leaf) for leaf in self._jax.tree.leaves(self._carry)]
        arrays = {f"leaf_{k}": leaf for k, leaf in enumerate(leaves)}
        arrays |= {f"units_{name}": value.copy() for name, value in self.units.tree().items()}
        return arrays | {
            "table": self.table.copy(),
            "clock": self.clock.copy(),
            "auxiliary_start": self.auxiliary[0],
            "auxiliary_unit": self.auxiliary[1],
            "n_outcomes": np.array([float(self.n_outcomes)]),
            "rate": np.array([self.rate]),
        }
