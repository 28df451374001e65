"""A policy that decides first and learns when the outcome is known, one sample at a time."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from surefoot.ambiguity import WassersteinBall
from surefoot.costs import Cost
from surefoot.engines.choice import why_no_stream
from surefoot.engines.step_rules import AdaptiveStep, DecayingRadius, StepRule
from surefoot.engines.stream import START_ROWS
from surefoot.estimators import RobustEstimator
from surefoot.estimators.row_costs import refuse_levels
from surefoot.exceptions import DataWarning, InvalidInputError, InvalidTypeError, warn_user
from surefoot.online.columns import Column, Columns
from surefoot.online.contexts import (
    array_columns,
    has_text,
    is_frame,
    new_columns,
    numeric_matrix,
    one_outcome,
    outcome_rows,
    records,
    spread_out,
)
from surefoot.online.drift import Restart, Window
from surefoot.online.following import Following
from surefoot.online.memory import Memory, Pending
from surefoot.online.settings import Settings, refuse_difference
from surefoot.policies import Linear, Policy
from surefoot.typing import FloatArray
from surefoot.validation import check_instance

FORMAT, FORMAT_VERSION = "surefoot-online", 2


class OnlinePolicy:
    r"""Decide, see the outcome, learn: DA-SGD with the stream in the place of draws.

    Each pair (x, y) is moved adversarially and then steps the parameters, once:

    .. math:: \theta \leftarrow \theta - \alpha_t \nabla_\theta c(f(\theta; x_{adv}), y_{adv})

    Linear policies with newsvendor costs go through the compiled kernels of ``fit``, any other policy
    and cost through the autodiff engine (JAX). What is kept does not grow with the stream.

    The first 16 samples are kept and decided on by the best constant decision; then learning starts
    where ``fit`` would start. Columns are scaled by their running mean and standard deviation. A
    value far outside what its column has shown (beyond its range and six standard deviations) is
    taken as the nearest that is not; ``n_cut`` counts such values. Parameters are in the user's
    units, so a change of the scale moves no decision (a general policy keeps the units of its first
    samples; distances follow the running scale).

    Keys of a context are columns:

    - a missing key, or None, says nothing: the column stands at its running mean;
    - a new key becomes a column when it is learned; its parameter starts at zero and moves once the
      key was seen 8 times. A decision ignores keys that were never learned. Policies other than
      ``Linear``, and feature maps, keep the columns of the first 16 samples and ignore later ones with
      a warning;
    - a text makes an indicator column "key=text" that the adversary never moves;
    - a column that the ball freezes must be among those of the first 16 samples;
    - NaN and infinity are refused by key.

    Parameters
    ----------
    cost
        What a decision costs, for example ``Newsvendor(backorder=1.0, holding=0.2)``.
    policy
        How a context becomes a decision; None is ``Linear()``.
    ball
        Which distributions to withstand, with a number as radius; with ``scale=True`` distances are in
        running standard deviations. None is radius 1 with ``DecayingRadius()``: 1/sqrt(t).
    radius
        ``DecayingRadius(rows)``, or None: the ball's radius stays.
    step
        ``AdaptiveStep()`` (None), ``ConstantStep(size)`` or ``DecayingStep(size)``.
    drift
        ``Restart(detector)``, ``Window(rows)`` or None.
    memory
        Bounds on columns and on decisions that wait for their outcome; None is ``Memory()``.
    random_state
        A whole number, for policies that start at random.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot.costs import Newsvendor
    >>> policy = OnlinePolicy(Newsvendor(backorder=1.0, holding=0.2))
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(500):
    ...     x = {"heat": rng.normal(20.0, 5.0)}
    ...     z = policy.decide_one(x)
    ...     policy.learn_one(x, 10.0 + 2.0 * x["heat"] + rng.normal())
    >>> 50.0 < policy.decide_one({"heat": 20.0}) < 52.0
    True
    >>> z, number = policy.decide_one({"heat": 25.0}, tracked=True)
    >>> policy.learn_one(id=number, y=61.0)
    """

    def __init__(
        self,
        cost: Cost,
        policy: Policy | None = None,
        *,
        ball: WassersteinBall | None = None,
        radius: DecayingRadius | None = None,
        step: StepRule | None = None,
        drift: Restart | Window | None = None,
        memory: Memory | None = None,
        random_state: int = 0,
    ) -> None:
        if ball is None:
            ball, radius = WassersteinBall(1.0), DecayingRadius() if radius is None else radius
        self.settings = Settings(
            cost=cost,
            policy=Linear() if policy is None else policy,
            ball=ball,
            radius=radius,
            step=AdaptiveStep() if step is None else step,
            drift=drift,
            memory=Memory() if memory is None else memory,
            random_state=random_state,
        )
        self._columns = Columns(self.settings.memory.columns)
        self._pending = Pending(self.settings.memory.pending)
        self._following = Following(self.settings)
        self._outcomes: int | None = None
        self._single = True

    @classmethod
    def from_model(
        cls,
        model: RobustEstimator,
        *,
        radius: DecayingRadius | None = None,
        step: StepRule | None = None,
        drift: Restart | Window | None = None,
        memory: Memory | None = None,
    ) -> Self:
        """Return a policy that goes on from a fitted ``RobustPolicy`` or ``RobustNewsvendor``.

        It starts at the model's parameters, scale and radius, with steps as small as if the model's
        rows had been learned one by one. Decisions are the model's up to rounding, except that contexts
        far outside the rows seen are cut to their range. The model itself is not changed.

        Examples
        --------
        >>> from surefoot import RobustNewsvendor
        >>> from surefoot.datasets import synthetic
        >>> data = synthetic(n=50, s=3, seed=0)
        >>> model = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
        >>> policy = OnlinePolicy.from_model(model)
        >>> bool(abs(policy.decide(data.X) - model.predict(data.X)).max() < 1e-12)
        True
        """
        check_instance("model", model, RobustEstimator, "a fitted RobustPolicy or RobustNewsvendor")
        refuse_levels(model, "model")
        if not hasattr(model, "parameters_"):
            raise InvalidInputError(f"model must be fitted, got {model!r} before fit.")
        window = 0.0 if drift is None else float(drift.window)
        told = model.stream_options(radius, step, window)
        policy = cls(
            told.cost, told.policy, ball=told.ball, radius=radius, step=step, drift=drift,
            memory=memory, random_state=model.seed_,
        )  # fmt: skip
        names = getattr(model, "feature_names_in_", None)
        columns: list[Column] = array_columns(model.n_features_in_)
        if names is not None:
            columns = [(str(name), None) for name in names]
        policy._columns.refuse_excess(columns)
        policy._columns = policy._columns.with_new(columns)
        policy._following.stream = model.new_stream(told)
        policy._outcomes, policy._single = model.n_outcomes, model.single
        return policy

    @property
    def n_rows(self) -> int:
        """Samples learned so far."""
        return self._following.rows

    @property
    def n_restarts(self) -> int:
        """How often a rise of the costs was found."""
        return self._following.restarts

    @property
    def n_cut(self) -> dict[str, int]:
        """How many values of each column were taken as the nearest ordinary one; none is left out."""
        stream = self._following.stream
        if stream is None:
            return {}
        counts = stream.columns["cut"].astype(int).tolist()
        return {name: n for name, n in zip(self.columns, counts, strict=True) if n}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns seen so far."""
        return self._columns.names

    # --- deciding ---------------------------------------------------------------------------------

    def decide_one(self, x: Mapping[str, Any], *, tracked: bool = False) -> Any:
        """Return the decision for one context; nothing is learned.

        Parameters
        ----------
        x
            Numbers (or texts) by name.
        tracked
            True: return (decision, id) and keep the context until ``learn_one(id=..., y=...)``.

        Returns
        -------
        A float, or an array with one number per product.
        """
        z = self._following.decide(self._columns.row(x))[0]
        answer = float(z[0]) if self._single else z
        return (answer, self._pending.keep(x, z.tolist())) if tracked else answer

    def decide(self, X: Any) -> FloatArray:
        """Return decisions for rows of an array or frame, shape (rows,) or (rows, products)."""
        if is_frame(X) and has_text(X):
            rows = np.concatenate([self._columns.row(x) for x in records(X)])
        else:
            names, rows = numeric_matrix(X)
            if len(self._columns):
                new_columns(names, rows.shape[1], self._columns)
                rows = spread_out(names, rows, self._columns)
        return self._shaped(self._following.decide(rows))

    def _shaped(self, decisions: FloatArray) -> FloatArray:
        return decisions[:, 0] if self._single else decisions

    # --- learning ---------------------------------------------------------------------------------

    def learn_one(
        self, x: Mapping[str, Any] | None = None, y: Any = None, *, id: int | None = None
    ) -> None:
        """Learn from one context and its outcome.

        Parameters
        ----------
        x
            The context; leave it out where ``id`` names a decision that was tracked.
        y
            The outcome: a number, or one per product.
        id
            What ``decide_one(x, tracked=True)`` handed back. Outcomes may come late and in any order.
        """
        if (x is None) == (id is None):
            raise InvalidTypeError(
                "learn_one must be given x or the id of a tracked decision, got "
                f"{'neither' if x is None else 'both'}."
            )
        made = None
        if x is None:
            x, made = self._pending.find(id)
        outcome = one_outcome(y)
        self._check_products(outcome.shape[1])
        columns, row = self._columns, self._columns.ordinary_row(x)
        if row is None:
            columns = self._grown(columns.new(x))
            row = columns.row(x)
        self._take(columns, row, outcome, type(y) is float or np.ndim(y) == 0, made)
        if id is not None:
            self._pending.drop(id)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from rows in order: an array, or a pandas or polars frame.

        Columns of an array that comes first are named x0, x1, ...; dictionaries may be mixed in.
        """
        self.decide_and_learn(X, y)
        return self

    def decide_and_learn(self, X: Any, y: Any) -> FloatArray:
        """Decide on each row, then learn it, in order; return the decisions, shaped as y.

        Progressive validation: every decision is made before its outcome is known.
        """
        if is_frame(X) and has_text(X):
            return self._one_by_one(X, y)
        names, matrix = numeric_matrix(X)
        outcomes = outcome_rows(y, len(matrix))
        self._check_products(outcomes.shape[1])
        columns = self._grown(new_columns(names, matrix.shape[1], self._columns))
        rows = spread_out(names, matrix, columns)
        return self._shaped(self._take(columns, rows, outcomes, np.ndim(y) == 1))

    def _one_by_one(self, X: Any, y: Any) -> FloatArray:
        """Decide and learn a frame with texts, whose columns grow with its rows."""
        outcomes = outcome_rows(y, len(X))
        self._check_products(outcomes.shape[1])
        contexts, checked = records(X), self._columns
        for x in contexts:  # all are looked at before any is learned
            new = checked.new(x)
            checked = checked.with_new(new) if new else checked
            checked.row(x)
        decided = []
        for x, outcome in zip(contexts, outcomes, strict=True):
            columns = self._grown(self._columns.new(x))
            decided.append(self._take(columns, columns.row(x), outcome[None, :], np.ndim(y) == 1))
        return self._shaped(np.concatenate(decided))

    def _check_products(self, products: int) -> None:
        """Refuse another number of products than before."""
        if self._outcomes is None:
            reason = why_no_stream(self.settings.stream_options, products)
            if reason is not None:
                raise InvalidInputError(f"the stream must have a best policy, got none: {reason}.")
        elif products != self._outcomes:
            raise InvalidInputError(
                f"y must have {self._outcomes} product{'s'[: self._outcomes > 1]} as before, "
                f"got {products}."
            )

    def _grown(self, new: list[Column]) -> Columns:
        """Return the columns with new ones, where the policy can still take them."""
        if not new:
            return self._columns
        if self._following.takes_new_columns:
            return self._columns.with_new(new)
        warn_user(
            f"The key {new[0][0]!r} is new and will be ignored: only a Linear policy without features "
            f"takes new columns after the first {START_ROWS} samples.",
            DataWarning,
        )
        return self._columns

    def _take(
        self, columns: Columns, rows: FloatArray, outcomes: FloatArray, single: bool, made: Any = None
    ) -> FloatArray:
        """Learn checked rows, and only then remember their columns and shape."""
        decided = self._following.learn(columns, len(self._columns), rows, outcomes, made)
        self._columns = columns
        if self._outcomes is None:
            self._outcomes = outcomes.shape[1]
            joint = self._outcomes > 1 and self.settings.cost.n_decisions(self._outcomes) == 1
            self._single = single or joint
        return decided

    # --- saving -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return all that was learned: plain values (as JSON holds them), and arrays under "arrays"."""
        values, arrays = self._following.state(len(self._columns))
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "settings": self.settings.described(),
            "columns": [list(column) for column in self._columns.columns],
            "outcomes": self._outcomes,
            "single": self._single,
            "next_id": self._pending.following,
            "pending": [[number, x, z] for number, (x, z) in self._pending.waiting.items()],
            **values,
            "arrays": arrays,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on exactly where ``state_dict`` was taken; other settings are refused by name."""
        if not isinstance(state, Mapping) or state.get("format") != FORMAT:
            raise InvalidInputError("state must come from OnlinePolicy.state_dict, got something else.")
        try:
            self._take_state(state)
        except KeyError as error:
            raise InvalidInputError(f"state must have the part {error}, got none.") from error

    def _take_state(self, state: Mapping[str, Any]) -> None:
        if state["version"] != FORMAT_VERSION:
            raise InvalidInputError(
                f"state must have version {FORMAT_VERSION}, got {state['version']}: upgrade Surefoot."
            )
        refuse_difference(self.settings.described(), state["settings"])
        arrays = {name: np.array(array) for name, array in state["arrays"].items()}
        following = Following.restore(self.settings, state, arrays)
        pending = Pending(self.settings.memory.pending, int(state["next_id"]))
        pending.waiting = {int(number): (dict(x), list(z)) for number, x, z in state["pending"]}
        columns = [(str(key), None if text is None else str(text)) for key, text in state["columns"]]
        outcomes, single = state["outcomes"], bool(state["single"])
        self._columns = Columns(self.settings.memory.columns, columns)
        self._following, self._pending = following, pending
        self._outcomes, self._single = outcomes, single
