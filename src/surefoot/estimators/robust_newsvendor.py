"""The two-line way in: how much to order."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from surefoot.ambiguity import WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.estimators.batches import refuse_beside_batches
from surefoot.estimators.data_warnings import ColumnLabel, plain_labels
from surefoot.estimators.experiment_log import recorded
from surefoot.estimators.inputs import check_contexts, check_pairs, time_order
from surefoot.estimators.recipe import Recipe, nominal_parts
from surefoot.estimators.robust_estimator import RobustEstimator
from surefoot.estimators.row_costs import (
    SAME,
    DecidesByRowCosts,
    RowCosts,
    between_levels,
    cost_levels,
    joint_outcome,
    warned_once,
    within_levels,
)
from surefoot.estimators.scikit_learn_habits import seed_from
from surefoot.exceptions import InvalidInputError
from surefoot.forecasts import Ensemble, Forecaster
from surefoot.nominals import Nominal, RowBatches
from surefoot.policies import Linear
from surefoot.solvers import Solver
from surefoot.typing import FloatArray
from surefoot.validation import check_number, mass_vector, weight_vector

# What one policy leaves in a model beside its public attributes.
ONE_POLICY = (
    "_certificate", "_multiplier", "_stream", "_stream_arrays", "_ball", "_given_recipe", "_single",
    "_n_outcomes", "_learned_on", "_rolling",
)  # fmt: skip


class RobustNewsvendor(RobustEstimator, DecidesByRowCosts):
    """How much to order, given what is known beforehand.

    Costs of a unit are those of the constructor, or columns of the data: ``fit``, ``predict``,
    ``decide``, ``cost`` and ``score`` take ``backorder`` and ``holding`` of each row.

    Parameters
    ----------
    backorder
        Cost per unit short; one number, or one for each product.
    holding
        Cost per unit left over; one number, or one for each product.
    radius
        "auto" chooses it, and everything else that is left open, from the data; a number is in
        standard deviations of the columns. "profile" and "paper" are rules, see the page on the
        radius.
    order
        Order of the Wasserstein distance, 1 or 2.
    intercept
        Whether the order has a constant part.
    protect
        A shift of contexts to be prepared for, in standard deviations of each column: with 0.5,
        decisions are rehearsed under contexts that have moved by half a standard deviation. Zero
        takes the days to come to be like those seen.
    nominal
        "auto": with an automatic radius and an intercept, an ensemble decides (see the page on
        automatic decisions); with a radius of your own, the empirical distribution, so that the
        number means what it says. None is the empirical distribution in any case: the robust linear
        policy. A ``Forecaster``, which a robust policy corrects, or a nominal is taken as it is.
    frozen
        Columns (names or positions) that an adversary cannot move: categories, calendar flags.
    solver
        None is the quickest that can certify: ``PrimalDual()`` where it can, else ``DASGD()``.
    random_state
        A whole number; the fit depends on it and on the data alone. None draws a new one for each
        fit, which ``seed_`` tells.

    Examples
    --------
    >>> from surefoot import RobustNewsvendor
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=50, s=10, seed=0)
    >>> model = RobustNewsvendor(backorder=1.0, holding=0.2).fit(data.X, data.y)
    >>> orders = model.predict(data.X_test)
    >>> model.cost(data.X_test, data.y_test) < 0.5
    True

    Costs that differ by row:

    >>> backorder = [3.0, 1.0] * 25
    >>> model = RobustNewsvendor(holding=1.0).fit(data.X, data.y, backorder=backorder)
    >>> model.cost_levels_
    array([0.5 , 0.75])
    >>> dear, cheap = model.predict(data.X_test[[0, 0]], backorder=[3.0, 1.0])
    >>> bool(dear > cheap)
    True
    """

    levels_: tuple["RobustNewsvendor", ...]
    cost_levels_: FloatArray

    def __init__(
        self,
        backorder: float | Sequence[float] = 1.0,
        holding: float | Sequence[float] = 0.2,
        *,
        radius: float | str = "auto",
        order: int = 2,
        intercept: bool = True,
        protect: float = 0.0,
        nominal: Nominal | Forecaster | Ensemble | str | None = "auto",
        frozen: Sequence[str | int] = (),
        solver: Solver | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.backorder = backorder
        self.holding = holding
        self.radius = radius
        self.order = order
        self.intercept = intercept
        self.protect = protect
        self.nominal = nominal
        self.frozen = frozen
        self.solver = solver
        self.random_state = random_state

    def _recipe(self) -> Recipe:
        # By default a radius or a policy of the user's own is taken at its word.
        free = isinstance(self.radius, str) and self.radius == "auto" and self.intercept
        own = isinstance(self.nominal, str) and self.nominal == "auto" and not free
        protect = check_number("protect", self.protect, at_least=0)
        if protect > 0.0 and (own or not isinstance(self.nominal, str) or self.solver is not None):
            raise InvalidInputError(
                "protect must be 0 beside a radius, a nominal, a policy or a solver of your own, "
                f"got {protect:g}: it is for radius='auto' and nominal='auto'."
            )
        ball = WassersteinBall(self.radius, order=self.order, frozen=self.frozen)
        return Recipe(
            cost=Newsvendor(self.backorder, self.holding),
            policy=Linear(intercept=self.intercept),
            ball=ball,
            solver=self.solver,
            **nominal_parts(None if own else self.nominal, ball, self.solver, protect),
        ).checked()

    def __sklearn_is_fitted__(self) -> bool:
        """One policy was learned, or one for each level of the costs."""
        return "levels_" in self.__dict__ or super().__sklearn_is_fitted__()

    if not TYPE_CHECKING:  # or the type checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Say where things are that each level has, and the model as a whole has not."""
            levels = self.__dict__.get("levels_", ())
            if name.startswith("__") or not levels or name not in dir(levels[0]):
                return super().__getattribute__(name)  # fails again, for its own reason
            named = "nothing of the kind" if name.startswith("_") else f"no {name}"
            raise AttributeError(
                f"{type(self).__name__} learned a policy for each cost ratio and has {named} as a "
                "whole: ask the policies in levels_, whose ratios are cost_levels_."
            )

    @recorded
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        time: Any = None,
        *,
        backorder: Any = None,
        holding: Any = None,
    ) -> Self:
        """Learn a policy from past pairs.

        Parameters
        ----------
        X
            Contexts, shape (rows, columns): an array, or a pandas or polars frame of numbers. Or rows
            that do not fit into memory, with their outcomes: ``ParquetRows(folder, outcome="sales")``.
        y
            Outcomes, shape (rows,) or (rows, products); None beside rows that have their own.
        sample_weight
            Non-negative, one per row; a weight of 2 counts as the row twice. So whole weights are
            counts of observations; others say only how much rows matter beside each other.
        time
            When each row was: dates or numbers. What is stated about days to come, and a radius that is
            chosen by cross-validation, then rest on rolling origins: blocks of rows, each decided from
            the rows before it. None takes the dates of a pandas index, if there are any, and else the
            rows as draws in no order.
        backorder, holding
            Costs of a unit in each row, shape (rows,), for one product. Where one is None it is the
            constructor's. Rows count by b + h, and for each ratio b / (b + h) a policy of its own is
            learned from all rows; beyond seven ratios at seven levels, between which decisions are
            interpolated. ``levels_`` has the policies, ``cost_levels_`` their ratios; certificates,
            guarantees and worst cases are those of each policy.
        """
        with self._kept_on_failure():
            if backorder is None and holding is None:
                self._forget()
                super().fit(X, y, sample_weight, time)
            else:
                self._fit_levels(X, y, sample_weight, time, (backorder, holding))
        return self

    def _forget(self) -> None:
        """Forget an earlier fit, whatever costs it had."""
        fitted = [name for name in self.__dict__ if name.endswith("_") and not name.startswith("_")]
        for name in (*fitted, *ONE_POLICY):
            self.__dict__.pop(name, None)

    def _fit_levels(
        self, X: Any, y: Any, sample_weight: Any, time: Any, given: tuple[Any, Any]
    ) -> None:
        """Learn a policy at each level of the cost ratio, from all rows weighted by their stakes."""
        if isinstance(self.nominal, Nominal):
            raise InvalidInputError(
                "nominal must be 'auto', None or a Forecaster beside costs of each row, "
                f"got {self.nominal!r}."
            )
        if isinstance(X, RowBatches):
            refuse_beside_batches(backorder=given[0], holding=given[1])
        ball = self._recipe().ball
        self._forget()
        contexts, y = check_pairs(self, X, y, reset=True, min_rows=2)
        when = time_order(time, X, len(y))
        if y.ndim > 1:
            raise InvalidInputError(
                f"y must have shape (rows,) beside costs of each row, got shape {y.shape}."
            )
        masses = mass_vector("sample_weight", sample_weight, len(y))
        costs = self._row_costs(given, len(y))
        levels = cost_levels(costs.ratios[masses > 0.0])
        stake = float(masses @ costs.stakes) / float(masses.sum())
        frozen = tuple(np.flatnonzero(ball.frozen_columns(contexts.shape[1], self._names)).tolist())
        labels = (
            plain_labels(self.n_features_in_, self._names) if self._labels is None else self._labels
        )
        policies, seed = [], seed_from(self.random_state)
        with warned_once():
            for level in levels.tolist():
                model = clone(self).set_params(
                    backorder=stake * level, holding=stake * (1.0 - level), frozen=frozen,
                    random_state=seed,
                )  # fmt: skip
                model.label_columns(labels)
                policies.append(model.fit(contexts, y, costs.masses(masses), when))
        self._take_levels(tuple(policies), levels)
        self.suspects_, self.seed_ = self.levels_[0].suspects_, seed

    def _take_levels(self, policies: tuple["RobustNewsvendor", ...], ratios: FloatArray) -> None:
        """Take policies, one for each cost ratio, and what can be said of all of them."""
        self.levels_, self.cost_levels_ = policies, ratios
        self.converged_, self.status_, self.n_steps_ = joint_outcome(policies)
        self._n_outcomes, self._single = 1, True

    def _row_costs(self, given: tuple[Any, Any], rows: int) -> RowCosts:
        return RowCosts.of(*given, (self.backorder, self.holding), rows)

    def label_columns(self, labels: Sequence[ColumnLabel]) -> None:
        """Call columns by these names and in these units, in warnings and in ``suspects_``.

        For whoever prepared the columns; see ``RobustPolicy.label_columns``.
        """
        super().label_columns(labels)
        for level in self.__dict__.get("levels_", ()):
            level.label_columns(labels)

    def predict(self, X: Any, backorder: Any = None, holding: Any = None) -> FloatArray:
        """Return decisions, shape (rows,) or (rows, products) as y was.

        Parameters
        ----------
        X
            Contexts, shape (rows, columns).
        backorder, holding
            Costs of a unit in each row, if the model learned from such; the ratio decides.
        """
        if backorder is None and holding is None and "levels_" not in self.__dict__:
            return super().predict(X)
        check_is_fitted(self)
        contexts = check_contexts(self, X, reset=False)
        return self._row_decisions(contexts, self._asked_costs(backorder, holding, len(contexts)))

    def _asked_costs(self, backorder: Any, holding: Any, rows: int) -> RowCosts:
        """Return the costs of rows to decide on; they must be told where the ratio decides."""
        levels = self.__dict__.get("cost_levels_", ())
        if backorder is None and holding is None and len(levels) > 1:
            raise InvalidInputError(
                "backorder or holding must be given for each row, as in fit, got None: the decision "
                "depends on their ratio."
            )
        if backorder is None and holding is None:
            level = self.levels_[0]
            return level._row_costs((None, None), rows)
        return self._row_costs((backorder, holding), rows)

    def _row_decisions(self, X: FloatArray, costs: RowCosts) -> FloatArray:
        """Return the decision for each row at its own cost ratio, shape (rows,)."""
        if "levels_" not in self.__dict__:
            self._refuse_other_ratios(costs)
            return super().predict(X)
        levels = self.cost_levels_
        ratios = within_levels(costs.ratios, levels)
        with warned_once():
            decisions = np.column_stack([model.predict(X) for model in self.levels_])
        return between_levels(decisions, ratios, levels)

    def _refuse_other_ratios(self, costs: RowCosts) -> None:
        """Refuse ratios that a single policy was not learned for."""
        learned = self._row_costs((None, None), 1).ratios[0]
        other = np.flatnonzero(np.abs(costs.ratios - learned) > SAME)
        if len(other):
            raise InvalidInputError(
                f"backorder / (backorder + holding) must be {learned:.4g} as in fit, got "
                f"{costs.ratios[other[0]]:.4g} in row {other[0]}: give fit the costs of each row, too."
            )

    def cost(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        backorder: Any = None,
        holding: Any = None,
    ) -> float:
        """Return the mean realised cost of the decisions, summed over products.

        Parameters
        ----------
        X, y, sample_weight
            Contexts, outcomes, and how much rows count.
        backorder, holding
            Costs of a unit in each row, if the model learned from such: they decide, and they are paid.
        """
        if backorder is None and holding is None and "levels_" not in self.__dict__:
            return super().cost(X, y, sample_weight)
        check_is_fitted(self)
        contexts, y = check_pairs(self, X, y, reset=False)
        if y.ndim > 1:
            raise InvalidInputError(f"y must have shape (rows,) as in fit, got shape {y.shape}.")
        weights = weight_vector("sample_weight", sample_weight, len(y))
        costs = self._asked_costs(backorder, holding, len(y))
        return costs.mean(self._row_decisions(contexts, costs), y, weights)
