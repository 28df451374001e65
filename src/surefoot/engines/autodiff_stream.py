"""Any policy and cost on a stream, through the autodiff engine (JAX)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surefoot.costs import AuxiliaryCost
from surefoot.engines.autodiff_forms import (
    ASCENT_STEPS,
    AUTODIFF_STEPS,
    FormBatch,
    default_adam,
    general_parameters,
)
from surefoot.engines.compiling import as_compiled
from surefoot.engines.engine import Options, Parameters
from surefoot.engines.optimizers import Adam
from surefoot.engines.stream import (
    RESTART_ROWS,
    Stream,
    StreamOptions,
    check_columns,
    without_outliers,
)
from surefoot.engines.stream_kernels import SHORT_WINDOW, TAIL, known_rows, scale_rows
from surefoot.exceptions import InvalidInputError
from surefoot.policies import Linear, Units
from surefoot.policies.base import leaves
from surefoot.problem import GeneralForm, Problem, general_form, why_not_general
from surefoot.typing import FloatArray
from surefoot.validation import check_array

# A stream sees each row once, and averages: Adam steps by so many times the learning rate of a fit,
# and by this share of it after one.
FRESH_RATE, FITTED_RATE = 3.0, 0.1
# A column whose running spread is this many times the unit in which the policy sees it gets a new unit.
OUTGROWN = 2.0
# So early in a stream, a row whose best decision lies this many units from the usual one doubles the
# unit of decisions: once a row, so that a single slip of a pen does little.
EARLY_ROWS, FAR_UNITS = 100, 8.0
# Rows go through the compiled step in pieces of these lengths, so that few lengths are compiled.
PIECES = (32, 1)


class AutodiffStream(Stream):
    """Any policy on a stream.

    Attributes
    ----------
    form
        Units, geometry and parts; its rows are of no matter.
    rate
        Adam's learning rate over that of a fit.
    """

    def __init__(self, options: StreamOptions, columns: Any, form: GeneralForm, rate: float) -> None:
        self.options, self._columns, self.form, self.rate = options, columns, form, rate
        self.clock = np.zeros(1)
        own = None if isinstance(form.policy, Linear) else default_adam(AUTODIFF_STEPS)
        if own is not None:
            own = Adam(learning_rate=rate * own.learning_rate, decay=False)
        steps = Options(inner_steps=ASCENT_STEPS, optimizer=options.step.optimizer(own))
        self.engine = FormBatch([form], [options.random_state], steps)
        self._jax, self._steps = self.engine.engine.jax, self.engine.engine.steps
        self._rules = options.rules()
        with self._jax.enable_x64(True):
            state = self.engine.init()
            self._arena, state = self._jax.tree.map(lambda leaf: leaf[0], (self.engine.arena, state))
            self._method = replace(self.engine.method, average=False)
            if options.step.falls:
                falling = self.engine.engine.rules.falling
                rule = falling(options.step.coded()[1], options.window or np.inf)
                self._method = replace(self._method, rule=rule)
                state = state._replace(rule=())
            self._keep((state, state.trained))

    @classmethod
    def start(
        cls, options: StreamOptions, columns: Any, rows: FloatArray, outcomes: FloatArray,
        offsets: FloatArray | None = None,
    ) -> "AutodiffStream":  # fmt: skip
        """Begin at the policy's own start, in the units of these rows, and learn them.

        An outcome far from the others is taken as the nearest that is not, as contexts are: one slip of
        a pen would set the unit of all decisions to come, and the length of all steps.
        """
        outcomes = without_outliers(outcomes)
        known = known_rows(rows, columns)
        question = options.problem(known, outcomes, offsets)
        reason = why_not_general(question)
        if reason is not None:
            raise InvalidInputError(f"the stream must have a best policy, got none: {reason}.")
        stream = cls(options, columns, general_form(question, options.random_state), FRESH_RATE)
        stream._step(rows, outcomes, offsets, running=False)
        return stream

    @classmethod
    def after_fit(
        cls, options: StreamOptions, columns: Any, problem: Problem, parameters: Parameters
    ) -> "AutodiffStream":
        """Go on from a fitted policy in smaller steps, as if the rows had been learned."""
        units = getattr(parameters, "units", None)
        form = general_form(problem, options.random_state, units)
        stream = cls(options, columns, replace(form, policy=options.policy), FITTED_RATE)
        stream.clock[:] = columns["count"][:1] if len(columns) else 1.0
        with stream._jax.enable_x64(True):
            trained = stream._jax.tree.map(
                lambda leaf: stream._jax.numpy.asarray(leaf[0]), stream.engine.joined(parameters)
            )
            count = stream._jax.numpy.asarray(stream.clock[0])
            state = stream._carry[0]._replace(trained=trained, steps=count)
            stream._keep((stream._aged(state, float(stream.clock[0])), trained))
        return stream

    def _aged(self, state: Any, rows: float) -> Any:
        """Return a state whose steps are as small as after so many rows."""
        rule = state.rule
        if not hasattr(rule, "squares"):
            return state
        # Each row would have added about a squared slope: the first distance over a unit of outcome.
        unit = float(np.linalg.norm(self.form.units.unit)) or 1.0
        slope = float(np.abs(self._slope_size())) / unit
        squares = self._jax.tree.map(lambda leaf: leaf + rows * slope**2, rule.squares)
        far = self._jax.tree.map(
            lambda first, p: self._jax.numpy.maximum(first, self._jax.numpy.linalg.norm(p)),
            rule.travelled, state.trained,
        )  # fmt: skip
        return state._replace(rule=rule._replace(squares=squares, travelled=far))

    def _slope_size(self) -> float:
        """Return how much the cost changes when decisions change by their unit."""
        form = self.form
        decisions = np.tile(form.units.centre, (len(form.outcomes), 1))
        costs = [form.cost.evaluate(z, form.outcomes) for z in (decisions, decisions + form.units.unit)]
        return float(np.abs(costs[1] - costs[0]).mean())

    @classmethod
    def restore(cls, options: StreamOptions, arrays: Mapping[str, Any]) -> "AutodiffStream":
        """Return the stream that ``arrays`` describes."""
        units = Units(*(arrays[f"units_{name}"] for name in ("mean", "spread", "centre", "unit")))
        count, box = int(arrays["n_outcomes"][0]), options.ball.support
        outcome = np.zeros((1, count)) if box is None else np.clip(np.zeros((1, count)), *box.outcome)
        decisions = options.cost.n_decisions(count)
        offsets = np.zeros((1, decisions)) if options.policy.n_fixed(decisions) else None
        # At radius zero there is no first multiplier to guess from a row that stands for none.
        question = options.problem(units.mean[None, :], outcome, offsets).at_radius(0.0)
        form = general_form(question, options.random_state, units)
        auxiliary = (arrays["auxiliary_start"], arrays["auxiliary_unit"])
        stream = cls(
            options, arrays["columns"], replace(form, auxiliary=auxiliary), float(arrays["rate"][0])
        )
        stream.put(arrays)
        return stream

    @staticmethod
    def check(
        options: StreamOptions, n_outcomes: int, n_columns: int, arrays: Mapping[str, Any]
    ) -> None:
        """Refuse arrays that are no state of such a stream; JAX is not asked."""
        decisions = options.cost.n_decisions(n_outcomes)
        check_columns("columns", arrays["columns"], n_columns)
        check_array("clock of the state", arrays["clock"], (1,))
        for name, size in (
            ("mean", n_columns), ("spread", n_columns), ("centre", decisions), ("unit", decisions)
        ):  # fmt: skip
            check_array(f"units_{name}", arrays[f"units_{name}"], (size,))
        for name in ("n_outcomes", "rate"):
            check_array(name, arrays[name], (1,))
        own = arrays["auxiliary_start"]
        check_array("auxiliary_start", own, (len(own),))
        check_array("auxiliary_unit", arrays["auxiliary_unit"], own.shape)
        trained = options.policy.initial(np.random.default_rng(0), n_columns, decisions)
        like = {(), (len(own),), *(np.shape(leaf) for leaf in leaves(trained).values())}
        for name in [name for name in arrays if name.startswith("leaf_")]:
            shape, kind = np.shape(arrays[name]), arrays[name].dtype.kind
            check_array(name, arrays[name], shape, int if kind == "i" else float)
            if shape not in like:
                raise InvalidInputError(f"{name} of the state must fit the policy, got {shape}.")

    def _keep(self, carry: Any) -> None:
        """Remember where the engine stands, and the policy that decides."""
        self._carry = carry
        self._decider = self._jax.tree.map(np.asarray, carry[1]["policy"])

    @property
    def block(self) -> int:
        """Rows between two looks at drift."""
        return 1

    @property
    def columns(self) -> Any:
        """What is known of each column."""
        return self._columns

    def put(self, arrays: Mapping[str, FloatArray]) -> None:
        """Go back to what ``arrays`` describes."""
        self._columns, self.clock = arrays["columns"].copy(), arrays["clock"].copy()
        with self._jax.enable_x64(True):
            held, structure = self._jax.tree.flatten(self._carry)
            count = sum(name.startswith("leaf_") for name in arrays)
            leaves = [self._jax.numpy.asarray(arrays[f"leaf_{k}"]) for k in range(count)]
            if [leaf.shape for leaf in leaves] != [leaf.shape for leaf in held]:
                raise InvalidInputError("the state must fit the policy, got arrays of other shapes.")
            self._keep(self._jax.tree.unflatten(structure, leaves))

    # --- learning and deciding --------------------------------------------------------------------

    def learn(
        self, rows: FloatArray, outcomes: FloatArray, offsets: FloatArray | None = None
    ) -> FloatArray:
        """Take one update for each row."""
        return self._step(rows, outcomes, offsets, running=True)

    def _step(
        self, rows: FloatArray, outcomes: FloatArray, offsets: FloatArray | None, *, running: bool
    ) -> FloatArray:
        columns, clock, rows = self._columns.copy(), self.clock.copy(), as_compiled(rows)
        filled, scales, movable, means, spreads = (np.empty_like(rows) for _ in range(5))
        scale_rows(rows, columns, self._rules, running, filled, scales, movable, means, spreads)
        means, spreads = self._followed(means, spreads)
        units = self._unit_followed(outcomes, offsets)
        inputs = self.options.policy.inputs(filled, offsets)
        fixed = inputs.shape[1] - rows.shape[1]
        scales = np.hstack([scales, np.ones((len(rows), fixed))])
        movable = np.hstack([movable, np.zeros((len(rows), fixed))])
        seen = clock[0] + 1.0 + np.arange(len(rows))
        window = self.options.window
        time = np.minimum(seen, window) if window else seen
        share = (1.0 + TAIL) / (time + TAIL) if self.options.step.averages else np.ones(len(rows))
        # A sum is cut after the row that fills the window, as the compiled kernel does it.
        keep = np.where((window > 0) & (seen - 1.0 > window), 1.0 - 1.0 / max(window, 1.0), 1.0)
        # A short window forgets how far the policy once was, after the row that fills it.
        short = 0 < window < SHORT_WINDOW * rows.shape[1]
        far = np.where(short & (seen > window), 1.0 - 1.0 / max(window, 1.0), 1.0)
        radii = np.array([self.options.radius_at(t) for t in time])
        block = self._steps.StreamRows(
            inputs, outcomes, radii, scales, movable, means, spreads, units, share, keep, far
        )
        carry, decided = self._follow(block, len(rows))
        clock[0] += len(rows)
        self._keep(carry)
        self._columns, self.clock = columns, clock
        newest = replace(self.form.units, mean=means[-1], spread=spreads[-1], unit=units[-1])
        self.form = replace(self.form, units=newest)
        return decided

    def _followed(self, means: FloatArray, spreads: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the units of contexts at each row: those so far, until a column has outgrown its own.

        Parameters stay as they are in the new unit. What was learned within a narrow range says nothing
        of the wider one, and a slope that was learned there would be far too steep for it.
        """
        mean, spread = self.form.units.mean.copy(), self.form.units.spread.copy()
        followed = np.empty_like(means), np.empty_like(spreads)
        started = np.asarray(self._columns["deviations"] > 0.0)
        for i in range(len(means)):
            fresh = ~started & (spreads[i] > 0.0)  # until now it never varied
            outgrown = fresh | (spreads[i] > OUTGROWN * spread)
            started |= fresh
            mean[outgrown], spread[outgrown] = means[i, outgrown], spreads[i, outgrown]
            followed[0][i], followed[1][i] = mean, spread
        return followed

    def _unit_followed(self, outcomes: FloatArray, offsets: FloatArray | None) -> FloatArray:
        """Return the unit of decisions at each row: it grows while first rows turn out to be narrow."""
        unit, limits = self.form.units.unit.copy(), self.options.policy.decisions
        followed = np.tile(unit, (len(outcomes), 1))
        fixed = offsets is not None or (limits is not None and not limits.in_units)
        if fixed or isinstance(self.options.policy, Linear):  # whose decisions know no unit
            return followed
        for i in range(min(len(outcomes), EARLY_ROWS - int(self.clock[0]))):
            try:
                best, _ = self.options.cost.typical(outcomes[i : i + 1], np.ones(1))
            except InvalidInputError:  # a row that has no best decision of its own
                continue
            unit = np.where(np.abs(best - self.form.units.centre) > FAR_UNITS * unit, 2.0 * unit, unit)
            followed[i:] = unit
        return followed

    def _follow(self, block: Any, count: int) -> tuple[Any, FloatArray]:
        """Take rows through the compiled update, in pieces of few lengths."""
        carry, place, decided = self._carry, 0, []
        with self._jax.enable_x64(True):
            run = self._steps.compiled_stream(self._method)
            while place < count:
                size = next(piece for piece in PIECES if piece <= count - place)
                part = self._jax.tree.map(lambda leaf, k=place, n=size: leaf[k : k + n], block)
                carry, (decisions, info) = run(self._arena, carry, part)
                place += size
                decided.append(np.asarray(decisions))
                leaves = self._jax.tree.leaves((carry[0].trained, carry[0].log_multiplier, info[0]))
                if not all(bool(np.isfinite(np.asarray(leaf)).all()) for leaf in leaves):
                    raise InvalidInputError(
                        "the cost and its derivative must be finite, got NaN or infinity at a row of "
                        "the stream; none of these rows was learned."
                    )
        return carry, np.concatenate(decided)

    def decide(self, rows: FloatArray, offsets: FloatArray | None = None) -> FloatArray:
        """Return the averaged policy's decisions, without JAX."""
        policy = self.options.policy
        inputs = policy.inputs(known_rows(rows, self._columns), offsets)
        return np.asarray(policy.evaluate(self._decider, self.form.units.tree(), inputs, np))

    def parameters(self) -> Parameters:
        """Return the averaged policy in the user's units."""
        return general_parameters(self.form, self._decider, self._auxiliary())

    def _auxiliary(self) -> FloatArray:
        start, unit = self.form.auxiliary
        return np.asarray(start + unit * np.asarray(self._carry[1]["auxiliary"]))

    def realised(self, decisions: FloatArray, outcomes: FloatArray) -> FloatArray:
        """Return what decisions have cost, at the cost's own variables where it has some."""
        cost = self.options.cost
        if not isinstance(cost, AuxiliaryCost):
            return super().realised(decisions, outcomes)
        return cost.evaluate_at(decisions, self._auxiliary(), outcomes)

    def restart(self) -> None:
        """Take larger steps again, from where the parameters stand."""
        kept = min(1.0, RESTART_ROWS / float(self.clock[0]))
        with self._jax.enable_x64(True):
            state = self._steps.forget(self._carry[0], kept)
            steps = self._jax.numpy.minimum(state.steps, RESTART_ROWS)
            self._keep((state._replace(steps=steps), self._carry[1]))
        self.clock = np.minimum(self.clock, RESTART_ROWS)

    def arrays(self) -> dict[str, FloatArray]:
        """Return all that the next update needs."""
        leaves: Sequence[Any] = self._jax.tree.leaves(self._carry)
        arrays = {f"leaf_{k}": np.array(leaf) for k, leaf in enumerate(leaves)}
        arrays |= {f"units_{name}": value.copy() for name, value in self.form.units.tree().items()}
        return arrays | {
            "columns": self._columns.copy(),
            "clock": self.clock.copy(),
            "auxiliary_start": self.form.auxiliary[0],
            "auxiliary_unit": self.form.auxiliary[1],
            "n_outcomes": np.array([float(self.form.outcomes.shape[1])]),
            "rate": np.array([self.rate]),
        }
