"""Problems side by side for the autodiff engine: compiled code, first states, worst cases."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from surefoot.engines.engine import Options, Parameters
from surefoot.engines.multiplier_search import (
    CHECK_HALVINGS,
    CHECK_ROWS,
    CHUNK,
    JUDGE_STEPS,
    LAST_HALVINGS,
    LAST_ROWS,
    Judged,
    best_multiplier,
    judged_rows,
    padded,
    weighted_mean,
    whole_multiplier,
)
from surefoot.engines.optimizers import SGD, Adam
from surefoot.exceptions import InvalidInputError
from surefoot.policies import Linear, LinearParameters, PolicyParameters
from surefoot.problem import GeneralForm
from surefoot.random import rng_for
from surefoot.tracing import keep_compiled, load_jax
from surefoot.typing import BoolArray, FloatArray

# Most steps and ascent steps where the user sets none.
AUTODIFF_STEPS, ASCENT_STEPS = 20_000, 10
# Steps between two looks from the host: one compiled block serves runs of every length.
BLOCK = 250
# Adam's own learning rate is for runs of so many steps; others lie between these two.
USUAL_STEPS, RATES = 20_000, (1e-3, 3e-2)
# The longest move that is tried as a start, in radii and in the columns' spread: the longer counts.
FAR_RADII, FAR_SPREADS = 64.0, 32.0
# Rehearsals take this share of the steps of a fit.
ROUGH_SHARE = 0.5


def load_engine() -> Any:
    """Return the engine's JAX modules, or say which command installs what they need."""
    jax = load_jax("A policy or cost beyond Linear and Newsvendor")
    keep_compiled(jax)
    names = {"steps": "autodiff_steps", "judging": "judging", "rules": "optimizer_rules"}
    modules = {
        name: importlib.import_module(f"surefoot.engines.{file}") for name, file in names.items()
    }
    return SimpleNamespace(jax=jax, jnp=jax.numpy, **modules)


def default_adam(max_steps: int) -> Adam:
    """Return Adam with a first step size that suits the length of the run: fewer steps, longer ones."""
    rate = Adam().learning_rate * np.sqrt(USUAL_STEPS / max_steps)
    return Adam(learning_rate=float(np.clip(rate, *RATES)))


class FormBatch:
    """Problems that share cost, policy, order and sizes: compiled code, starts, and worst cases.

    All arrays have a leading problem axis.
    """

    def __init__(self, forms: Sequence[GeneralForm], seeds: Sequence[int], options: Options) -> None:
        self.engine, self.forms, self.options = load_engine(), list(forms), options
        self.max_steps = AUTODIFF_STEPS if options.max_steps is None else options.max_steps
        if options.rough:
            self.max_steps = max(BLOCK, int(ROUGH_SHARE * self.max_steps))
        self.seeds, first = list(seeds), self.forms[0]
        self.optimizer = options.optimizer
        if self.optimizer is None and not isinstance(first.policy, Linear):
            self.optimizer = default_adam(self.max_steps)
        self.method = self.engine.steps.StepMethod(
            cost=first.cost,
            policy=replace(first.policy, features=None),  # contexts are features already
            order=first.order,
            outcomes_move=first.outcomes_move,
            inner_steps=options.inner_steps or ASCENT_STEPS,
            rule=self._rule(),
            batch=options.minibatch,
            boxed=any(_stopped(form) for form in self.forms),
            average=options.optimizer is None and isinstance(first.policy, Linear),
            in_units=isinstance(options.optimizer, Adam) and isinstance(first.policy, Linear),
        )
        with self.engine.jax.enable_x64(True):
            self.arena = self._stack([self._arena(form) for form in self.forms])

    def _rule(self) -> Any:
        rules, optax, chosen = self.engine.rules, self.engine.rules.optax, self.optimizer
        if chosen is None:
            return rules.distance_over_gradients()
        if not isinstance(chosen, Adam | SGD):
            return rules.given(chosen)
        direction = optax.scale_by_adam if isinstance(chosen, Adam) else optax.identity
        return rules.scaled(direction, chosen.learning_rate, decay=chosen.decay)

    def _arena(self, form: GeneralForm) -> Any:
        kappa = form.outcome_cost if form.outcomes_move else 1.0
        return self.engine.steps.Arena(
            radius=np.float64(form.radius),
            longest=np.float64(_longest_start(form)),
            outcome_unit=np.float64(np.sqrt(kappa) if form.order == 2 else kappa),
            scale=form.scale,
            inside=form.movable * float(form.radius > 0.0),
            lower=form.lower,
            upper=form.upper,
            outcome_bounds=np.array(form.outcome_bounds),
            units=form.units.tree(),
            auxiliary_centre=form.auxiliary[0],
            auxiliary_unit=form.auxiliary[1],
            total_steps=np.float64(self.max_steps),
            restart=np.float64(0.0),
        )

    def _stack(self, trees: Sequence[Any]) -> Any:
        jnp = self.engine.jnp
        return self.engine.jax.tree.map(
            lambda *leaves: jnp.stack([jnp.asarray(leaf, dtype=float) for leaf in leaves]), *trees
        )

    def init(self) -> Any:
        """Return the state before the first step, at each policy's own start."""
        engine, jnp = self.engine, self.engine.jnp
        with engine.jax.enable_x64(True):
            trained, firsts = [], []
            for form, seed in zip(self.forms, self.seeds, strict=True):
                rng = rng_for(seed, "general", "start")
                tree = {
                    "policy": form.policy.initial(rng, form.n_features, form.n_decisions),
                    "auxiliary": np.zeros(len(form.auxiliary[0])),
                }
                trained.append(tree)
                firsts.append(engine.jax.tree.map(lambda leaf, f=form: _first_distance(leaf, f), tree))
            stacked, count = self._stack(trained), len(self.forms)
            rule = engine.jax.vmap(self.method.rule.init)(stacked)
            if isinstance(rule, engine.rules.Travel):
                rule = rule._replace(travelled=self._stack(firsts))
            gammas = np.array([self._first_multiplier(i, trained[i]) for i in range(count)])
            zeros = jnp.zeros(count)
            return engine.steps.AutodiffState(
                trained=stacked,
                rule=rule,
                log_multiplier=jnp.log(jnp.asarray(gammas)),
                multiplier_squares=zeros,
                curvature=zeros,
                average=stacked,
                averaged=zeros,
                steps=zeros,
            )

    def _first_multiplier(self, number: int, trained: Any) -> float:
        """Guess gamma from the slopes of the cost in the samples, at the first policy."""
        form = self.forms[number]
        if form.radius == 0.0:
            return 1.0
        rows = slice(0, CHECK_ROWS)
        slopes = self.engine.judging.slopes_of(
            self.method,
            self.engine.jax.tree.map(lambda leaf: leaf[number], self.arena),
            trained, form.contexts[rows], form.outcomes[rows],
        )  # fmt: skip
        slope = float(np.sqrt(np.mean(np.square(slopes).sum(axis=1))))
        if not np.isfinite(slope):
            raise InvalidInputError(
                "the cost must have a finite derivative at the first policy, got NaN or infinity: "
                "check the cost function and the units of the outcomes."
            )
        if slope == 0.0:  # a constant policy: as if the policy spread the decisions as outcomes are
            decisions = form.decisions(trained["policy"], form.contexts[rows])
            outcomes = form.outcomes[rows]
            shifted = decisions + form.units.unit
            cost = [form.cost.evaluate(z, outcomes) for z in (decisions, shifted)]
            slope = float(np.abs(cost[1] - cost[0]).mean()) / np.sqrt(len(form.units.spread)) or 1.0
        return slope if form.order == 1 else slope / (2.0 * form.radius)

    def judge_policies(
        self, state: Any, trained: Any, *, last: bool = False, whole: bool = False
    ) -> Judged:
        """Estimate the worst-case expected cost of a policy for each problem.

        ``last`` looks at more rows and closer, ``whole`` at all of them, in blocks.
        """
        gamma = np.exp(np.asarray(state.log_multiplier))
        if not whole:
            rows, halvings = (LAST_ROWS, LAST_HALVINGS) if last else (CHECK_ROWS, CHECK_HALVINGS)
            return self._judged(trained, gamma, rows, halvings)
        some = self._judged(trained, gamma, LAST_ROWS, LAST_HALVINGS)
        if max(len(form.weights) for form in self.forms) <= LAST_ROWS:
            return some
        return self._judged(trained, some.multiplier, None, None)

    def judge_closely(self, gamma: FloatArray, trained: Any) -> Judged:
        """Judge policies near given multipliers, on all rows if they are few."""
        return self._judged(trained, gamma, LAST_ROWS, LAST_HALVINGS)

    def parameter_slopes(
        self, trained: Any, contexts: FloatArray, outcomes: FloatArray
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return each row's cost and its slopes in every array of parameters, of the first problem."""
        with self.engine.jax.enable_x64(True):
            first = self.engine.jax.tree.map(lambda leaf: leaf[0], (self.arena, trained))
            slopes = self.engine.judging.compiled_slopes(self.method)
            costs, tree = slopes(*first, contexts, outcomes)
            return np.asarray(costs), [np.asarray(leaf) for leaf in self.engine.jax.tree.leaves(tree)]

    def _judged(
        self, trained: Any, gamma: FloatArray, rows: int | None, halvings: int | None
    ) -> Judged:
        """Judge so many rows (None: all) at a multiplier that suits them (None: one near ``gamma``)."""
        samples = [judged_rows(form, rows) for form in self.forms]
        X, Y, weights = (padded([sample[part] for sample in samples]) for part in range(3))
        budgets = np.array([form.radius**form.order for form in self.forms])
        method = replace(self.method, inner_steps=JUDGE_STEPS, restart=False)
        with self.engine.jax.enable_x64(True):
            compiled = self.engine.judging.compiled_judge(method)

            def look(gamma: FloatArray) -> Any:
                chunks = [
                    compiled(self.arena, trained, gamma, X[:, k : k + CHUNK], Y[:, k : k + CHUNK])
                    for k in range(0, X.shape[1], CHUNK)
                ]
                return self.engine.jax.tree.map(
                    lambda *parts: np.concatenate([np.asarray(part) for part in parts], axis=1), *chunks
                )

            if halvings is None:
                gamma, verdict, beyond = whole_multiplier(look, gamma, budgets, weights)
            else:
                gamma, verdict, beyond = best_multiplier(look, gamma, budgets, weights, halvings)
        values = gamma * budgets + weighted_mean(weights, verdict.value)
        return Judged(values, gamma, verdict, beyond, weights, X, Y)

    def non_concave(self, judged: Judged) -> FloatArray:
        """Return the share of rows whose inner problem is not concave, for each problem."""
        bend = 2.0 * judged.multiplier[:, None] if self.method.order == 2 else 0.0
        # Rounding leaves a straight cost a trace of curvature.
        curved = np.asarray(judged.verdict.curvature) > bend * (1.0 + 1e-9) + 1e-9
        affected = curved | np.asarray(judged.verdict.several)
        moving = np.array([form.radius > 0.0 for form in self.forms])
        return np.where(moving, (judged.weights * affected).sum(axis=1), 0.0)

    def use_restarts(self, chosen: BoolArray) -> None:
        """Look at both sides of each sample of the chosen problems from now on."""
        with self.engine.jax.enable_x64(True):
            before = np.asarray(self.arena.restart)
            restart = self.engine.jnp.asarray(np.maximum(before, chosen.astype(float)))
            self.arena = self.arena._replace(restart=restart)
        self.method = replace(self.method, restart=True)

    def split(self, trained: Any, number: int) -> tuple[Any, FloatArray]:
        """Return one problem's parameters, and the cost's own variables in the user's units."""
        form = self.forms[number]
        tree = self.engine.jax.tree.map(lambda leaf: np.asarray(leaf[number]), trained)
        return tree["policy"], form.auxiliary[0] + form.auxiliary[1] * tree["auxiliary"]

    def joined(self, parameters: Parameters) -> Any:
        """Return parameters in the user's units as the engine has them, for a batch of one."""
        form = self.forms[0]
        auxiliary = parameters.auxiliary if len(parameters.auxiliary) else form.auxiliary[0]
        unit = np.where(form.auxiliary[1] != 0.0, form.auxiliary[1], 1.0)
        tree = {
            "policy": trained_parameters(form, parameters),
            "auxiliary": (auxiliary - form.auxiliary[0]) / unit,
        }
        return self.engine.jax.tree.map(lambda leaf: np.asarray(leaf)[None], tree)


def _longest_start(form: GeneralForm) -> float:
    """Return the longest move that is tried as a start, in units of transport.

    A small share of the mass may go far at any radius, so it is measured in the columns' spread, too.
    """
    features = slice(0, form.n_features)
    movable = form.movable[features]
    lengths = (form.units.spread / form.scale[features])[movable]
    spread = float(np.sqrt(np.mean(lengths**2))) if lengths.size else 1.0
    return max(FAR_RADII * form.radius, FAR_SPREADS * spread)


def _stopped(form: GeneralForm) -> bool:
    """Whether the support has a bound anywhere; a column that stands still may move later."""
    outcome = form.outcomes_move and bool(np.isfinite(form.outcome_bounds).any())
    return outcome or bool(np.isfinite(form.lower).any() or np.isfinite(form.upper).any())


def _first_distance(leaf: Any, form: GeneralForm) -> float:
    """Return how far an array of parameters may be expected to travel."""
    unit = float(np.linalg.norm(form.units.unit))
    if leaf.ndim == 2:
        return 0.5 * unit / float(np.sqrt(leaf.shape[0]))
    return 0.5 * unit


def general_parameters(form: GeneralForm, trained: Any, auxiliary: FloatArray) -> Parameters:
    """Return parameters as the policy takes them, in the user's units."""
    policy = form.policy
    if isinstance(policy, Linear):
        linear = policy.in_user_units(trained, form.units.tree())
        return replace(linear, auxiliary=auxiliary)
    return PolicyParameters(trained, form.units, auxiliary)


def trained_parameters(form: GeneralForm, parameters: Parameters) -> Any:
    """Return parameters in the user's units as arrays by name, in the units of the form."""
    if isinstance(parameters, LinearParameters) and isinstance(form.policy, Linear):
        return form.policy.from_user_units(parameters, form.units.tree())
    assert isinstance(parameters, PolicyParameters)  # of a policy that is not linear
    return parameters.trained
