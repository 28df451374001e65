"""A policy together with the preparation of its columns."""

from collections.abc import Sequence
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from surefoot.ambiguity import Adversary, WassersteinBall
from surefoot.estimators.augmentation import Augmentation
from surefoot.estimators.data_warnings import ColumnLabel
from surefoot.estimators.decision_maker import DecisionMaker
from surefoot.estimators.experiment_log import recorded
from surefoot.estimators.guarantees import SHIFT
from surefoot.estimators.inputs import time_order
from surefoot.estimators.model_file import prepared_parts
from surefoot.estimators.preparation.blocks import assemble
from surefoot.estimators.preparation.plan import (
    Plan,
    column_position,
    learn_plan,
    warn_of_oddities,
)
from surefoot.estimators.preparation.refusals import checked_categories, refuse_own_geometry
from surefoot.estimators.preparation.table import Table, read_table
from surefoot.estimators.reporting import Reporting
from surefoot.estimators.robust_estimator import RobustEstimator
from surefoot.estimators.row_costs import DecidesByRowCosts, told_costs
from surefoot.exceptions import (
    DataWarning,
    InvalidInputError,
    InvalidTypeError,
    ModelFileError,
    UnsupportedProblemError,
    warn_user,
)
from surefoot.forecasts import Suspect
from surefoot.io import write_archive
from surefoot.policies import Select
from surefoot.typing import FloatArray
from surefoot.validation import check_flag, check_instance, check_integer, mass_vector


class PreparedPolicy(Reporting, DecidesByRowCosts):
    """A policy for tables with numbers, categories, dates and gaps.

    Before the policy sees them,

    - numbers are divided by their standard deviation; gaps become the median, and a 0/1 column says
      where they were, if there were any in training;
    - categories (text, categorical and boolean columns, and those named in ``categories``) become one
      0/1 column for each level, of two levels for one of them; a gap is a level of its own, "missing";
    - dates become two categories, the weekday and the month;
    - columns that never varied are left out, with a warning; if none is left, the policy is a constant.

    An adversary moves numbers only: 0/1 columns are frozen. At decision time a level that training
    never saw counts as the average of the known levels (each 0/1 column holds the share of its level),
    and a gap in a column that had none is the median; both raise a ``DataWarning``.

    Parameters
    ----------
    model
        The policy: ``RobustNewsvendor``, ``RobustPolicy`` or a baseline. Its own ``frozen`` columns
        are names or positions of the columns of X, before any preparation.
    categories
        Columns (names or positions) that hold categories although they look like numbers.
    freeze
        Whether 0/1 columns are frozen for the adversary; False lets it move all columns.
    scale
        Whether numbers are divided by their standard deviation. Only policies that look at units
        notice: ``ERM`` with a penalty, ``Shapley``, and balls with ``scale=False``.
    min_rows
        Levels (and gaps) seen in fewer training rows than this are too rare to learn from: they count
        as levels that training never saw, without a warning.

    Attributes
    ----------
    model_
        The fitted policy, with its radius, parameters and certificate.
    plan_
        What became of each column; print it.
    transformer_
        The scikit-learn ``ColumnTransformer`` underneath.

    Examples
    --------
    >>> from surefoot import RobustNewsvendor
    >>> X = [[20.0, "Sat"], [21.0, "Mon"], [25.0, "Sat"], [18.0, "Mon"], [26.0, "Mon"], [19.0, "Sat"]]
    >>> y = [30.0, 11.0, 36.0, 8.0, 14.0, 29.0]
    >>> policy = PreparedPolicy(RobustNewsvendor(backorder=1.0, holding=0.2, radius=0.1))
    >>> model = policy.fit(X, y)
    >>> model.prepared_names
    ('0', '1=Sat')
    >>> model.predict([[22.0, "Sat"]]) > model.predict([[22.0, "Mon"]])
    array([ True])
    """

    plan_: Plan

    def __init__(
        self,
        model: Any = None,
        *,
        categories: Sequence[str | int] = (),
        freeze: bool = True,
        scale: bool = True,
        min_rows: int = 3,
    ) -> None:
        self.model = model
        self.categories = categories
        self.freeze = freeze
        self.scale = scale
        self.min_rows = min_rows

    def __sklearn_is_fitted__(self) -> bool:
        """A fit that failed leaves no policy behind."""
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        """Gaps and text are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    @property
    def prepared_names(self) -> tuple[str, ...]:
        """One name per prepared column."""
        check_is_fitted(self)
        return self.plan_.names

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
        """Learn the preparation and the policy from past pairs.

        Parameters
        ----------
        X
            Contexts: a pandas or polars frame, or rows of numbers and text.
        y
            Outcomes, shape (rows,) or (rows, products).
        sample_weight
            Non-negative, one per row; a weight of 2 counts as the row twice.
        time
            When each row was, dates or numbers, as the model's ``fit`` takes it. To the default, which
            then follows a level that drifts, the month of a date counts once every month was seen.
        backorder, holding
            Costs of a unit in each row, as ``RobustNewsvendor.fit`` takes them.
        """
        when = time_order(time, X)
        model, matrix = self._prepared_model(X, sample_weight, in_order=when is not None)
        known = {} if sample_weight is None else {"sample_weight": sample_weight}
        known |= told_costs(model, backorder, holding)
        if when is not None and "time" in signature(model.fit).parameters:
            known["time"] = when
        elif time is not None:
            raise InvalidInputError(
                f"time must be None for a model that takes no order, got {type(model).__name__}."
            )
        model.fit(matrix, y, **known)
        self.model_ = model
        return self

    def _prepared_model(
        self, X: Any, sample_weight: Any = None, *, in_order: bool = False
    ) -> tuple[Any, FloatArray]:
        """Learn the preparation; return a fresh model for it and the prepared contexts."""
        categories = self.check_options()
        if hasattr(self, "model_"):
            del self.model_
        table = self._read(X, reset=True)
        masses = mass_vector("sample_weight", sample_weight, len(table))
        seen = np.flatnonzero(masses)  # a row of weight zero is a row that is not there
        if len(seen) < 2:
            raise InvalidInputError(f"X must have at least 2 rows, got n_samples = {len(seen)}.")
        follows = in_order and isinstance(self.model, RobustEstimator) and self.model.follows_level
        plan = learn_plan(
            table.take(seen), masses[seen], categories,
            scale=bool(self.scale), min_rows=int(self.min_rows), in_order=follows,
        )  # fmt: skip
        warn_of_oddities(plan, len(seen))
        model = self._frozen(table, plan)
        self.plan_, self._given = plan, self.options()
        self._label_columns(model)
        return model, self.plan_.transform(plan.encode(table)[0])

    def _label_columns(self, model: Any) -> None:
        """Let a model speak of its columns by the names and in the units of X."""
        if not isinstance(model, RobustEstimator) or not self.plan_.names:
            return
        named, plan = hasattr(self, "feature_names_in_"), self.plan_
        words = [repr(name) if named else f"column {name}" for name in plan.names]
        model.label_columns(list(map(ColumnLabel, words, map(float, plan.units))))

    @property
    def transformer_(self) -> Any:
        """The preparation as scikit-learn has it."""
        return assemble(*self.plan_.blocks())

    def options(self) -> dict[str, Any]:
        """Return the parameters beside the model."""
        return {
            "categories": tuple(self.categories),
            "freeze": bool(self.freeze),
            "scale": bool(self.scale),
            "min_rows": int(self.min_rows),
        }

    def check_options(self) -> tuple[str | int, ...]:
        """Refuse parameters that cannot be, by name; return the columns that are categories."""
        check_instance(
            "model", self.model, DecisionMaker, "a policy such as RobustNewsvendor(1.0, 0.2)"
        )
        if isinstance(self.model, PreparedPolicy):
            raise InvalidTypeError("model must not be prepared already, got a PreparedPolicy.")
        check_flag("freeze", self.freeze)
        check_flag("scale", self.scale)
        check_integer("min_rows", self.min_rows, at_least=1)
        return checked_categories(self.categories)

    def _read(self, X: Any, *, reset: bool) -> Table:
        """Return X as a table with the columns of fit."""
        table = read_table(X)
        if not isinstance(X, Table):
            validate_data(self, X, reset=reset, skip_check_array=True)
        elif reset:
            self.n_features_in_ = len(table.columns)
            self.feature_names_in_ = np.array(table.names, dtype=object)
        elif table.names != tuple(getattr(self, "feature_names_in_", table.names)):
            raise InvalidInputError(
                f"X must have the columns of fit ({', '.join(self.feature_names_in_)}) in their order, "
                f"got {', '.join(table.names)}."
            )
        return table

    def _frozen(self, table: Table, plan: Plan) -> Any:
        """Return a fresh model whose adversary leaves 0/1 columns alone; baselines have none."""
        model = clone(self.model)
        given = model.get_params(deep=False)
        if not isinstance(model, RobustEstimator):
            return model
        ball = given.get("ball", None) or WassersteinBall("auto")
        refuse_own_geometry(given, ball, freeze=bool(self.freeze))
        named = given.get("frozen", ball.frozen)
        own = {column_position(table, entry, "frozen") for entry in named}
        positions = set(plan.flags) if self.freeze else set()
        positions |= {k for k, source in enumerate(plan.sources) if source in own}
        frozen = tuple(sorted(positions))
        if "frozen" in given:
            return model.set_params(frozen=frozen)
        if all(field.name != "frozen" for field in fields(cast(Any, ball))):
            return model  # a set such as Contamination freezes no column
        return model.set_params(ball=replace(ball, frozen=frozen))

    @property
    def coef_(self) -> FloatArray:
        """What the policy multiplies the prepared columns by, if it is linear."""
        coefficients: FloatArray = self._checked().coef_
        return coefficients

    @property
    def intercept_(self) -> Any:
        """The constant part of the decision, if the policy is linear."""
        return self._checked().intercept_

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the prepared columns; ``input_features`` is there for scikit-learn."""
        del input_features
        return np.asarray(self.prepared_names, dtype=object)

    def _named_outcomes(self) -> list[str] | None:
        return getattr(self._checked(), "_outcome_names", None)

    def prepare(self, X: Any) -> FloatArray:
        """Return the numbers that the policy sees, shape (rows, prepared columns)."""
        check_is_fitted(self)
        table = self._read(X, reset=False)
        matrix, surprises = self.plan_.encode(table)
        if surprises:
            warn_user(f"Not seen by the fit: {'; '.join(surprises)}.", DataWarning)
        return self.plan_.transform(matrix)

    def predict(self, X: Any, backorder: Any = None, holding: Any = None) -> FloatArray:
        """Return decisions, shape (rows,) or (rows, products) as y was."""
        model = self._checked()
        costs = told_costs(model, backorder, holding)
        decisions: FloatArray = model.predict(self.prepare(X), **costs)
        return decisions

    def cost(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        backorder: Any = None,
        holding: Any = None,
    ) -> float:
        """Return the mean realised cost of the decisions, summed over products."""
        model = self._checked()
        costs = told_costs(model, backorder, holding)
        return float(model.cost(self.prepare(X), y, sample_weight, **costs))

    @property
    def suspects_(self) -> tuple[Suspect, ...]:
        """Numbers of the fit that look like errors, by the columns of X and as written there."""
        return self._robust("suspects_").suspects_

    @property
    def drift_(self) -> Any:
        """What recent errors add to every decision; see ``RobustNewsvendor.drift_``."""
        return self._robust("drift_").drift_

    def guarantee(self, shift: float = SHIFT) -> str:
        """Return what new days may cost, in one sentence; see ``RobustNewsvendor.guarantee``.

        Examples
        --------
        >>> from surefoot import RobustNewsvendor
        >>> X = [[20.0 + k % 7, ("Sat", "Mon")[k % 2]] for k in range(40)]
        >>> y = [30.0 + k % 7 - 9.0 * (k % 2) + (k * k) % 5 for k in range(40)]
        >>> PreparedPolicy(RobustNewsvendor(1.0, 0.5)).fit(X, y).guarantee()[:42]
        'With 95 % confidence the expected cost on '
        """
        return self._robust("guarantee").guarantee(shift)

    def worst_case(
        self, X: Any, y: Any, *, radius: float | None = None, sample_weight: Any = None
    ) -> Adversary:
        """Return the worst distribution around (X, y), its contexts as prepared columns."""
        model = self._robust("worst_case")
        return model.worst_case(self.prepare(X), y, radius=radius, sample_weight=sample_weight)

    def augmentation(
        self, X: Any = None, y: Any = None, *, radius: float | None = None
    ) -> Augmentation:
        """Return what the adversary does, column by prepared column and by their names."""
        model = self._robust("augmentation")
        moves = model.augmentation(None if X is None else self.prepare(X), y, radius=radius)
        return moves if not self.plan_.names else replace(moves, columns=self._kept_names(moves, model))

    def _kept_names(self, moves: Augmentation, model: RobustEstimator) -> tuple[str, ...]:
        """Return the prepared columns that the model's policy looks at, maybe not all."""
        features = model.problem_.policy.features
        kept = features.columns if isinstance(features, Select) else range(len(self.plan_.names))
        names = tuple(self.plan_.names[j] for j in kept)
        return names if len(names) == len(moves.columns) else moves.columns

    def _partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from new pairs in order; the preparation stays as the first call learned it."""
        if hasattr(self, "model_"):
            self.model_.partial_fit(self.prepare(X), y)
            return self
        model, matrix = self._prepared_model(X)
        self.model_ = model.partial_fit(matrix, y)
        return self

    # Baselines learn from all rows at once, and a policy around one has no such method.
    partial_fit = available_if(lambda self: isinstance(self.model, RobustEstimator))(_partial_fit)

    def save(self, path: str | Path) -> None:
        """Write the preparation and the fitted model to a file: JSON and arrays, nothing to run."""
        write_archive(path, *self.parts())

    def parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return header and arrays of a model file, for whoever has more to write into it."""
        self._robust("save")
        if self.options() != self._given:
            raise ModelFileError(
                "The parameters must be those of the fit to be saved, got others: call fit again."
            )
        return prepared_parts(self)

    def _checked(self) -> Any:
        check_is_fitted(self)
        return self.model_

    def _robust(self, what: str) -> RobustEstimator:
        model = self._checked()
        if not isinstance(model, RobustEstimator):
            raise UnsupportedProblemError(
                f"{what} needs a robust model such as RobustNewsvendor, got {type(model).__name__}."
            )
        return model
