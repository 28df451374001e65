"""What a fitted robust policy does: decide, cost, face the worst case, be reported and saved."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from surefoot.ambiguity import Adversary
from surefoot.certificates import Certificate, make_certificate
from surefoot.engines.choice import adversary_of
from surefoot.engines.engine import Parameters
from surefoot.engines.stream import Stream
from surefoot.estimators.augmentation import Augmentation, augment
from surefoot.estimators.data_warnings import ColumnLabel, far_sentence, plain_labels
from surefoot.estimators.decision_maker import DecisionMaker
from surefoot.estimators.guarantees import SHIFT, guarantee_of
from surefoot.estimators.inputs import check_contexts, check_pairs
from surefoot.estimators.model_file import save_model
from surefoot.estimators.radius_rules import RuledRadius
from surefoot.estimators.radius_selection import RadiusPath
from surefoot.estimators.reporting import Reporting
from surefoot.estimators.row_costs import refuse_levels
from surefoot.estimators.scikit_learn_habits import LinearCoefficients
from surefoot.exceptions import DataWarning, InvalidInputError, warn_user
from surefoot.forecasts import Forecasts, Suspect
from surefoot.nominals import Empirical, Nominal
from surefoot.policies import Policy, Select
from surefoot.problem import Problem
from surefoot.typing import FloatArray
from surefoot.validation import check_number, weight_vector


class FittedPolicy(LinearCoefficients, Reporting, DecisionMaker):
    """A decision maker with the scikit-learn interface. Its score is minus cost."""

    random_state: Any  # a whole number, or None for a new seed in each fit
    seed_: int
    radius_path_: RadiusPath
    radius_rule_: RuledRadius
    suspects_: tuple[Suspect, ...]
    converged_: bool | None
    status_: str
    parameters_: Parameters
    problem_: Problem
    nominal_: Nominal
    fingerprint_: str
    _labels: tuple[ColumnLabel, ...] | None = None
    _certificate: Certificate | None
    _n_outcomes: int
    _single: bool
    _stream: Stream
    _stream_arrays: dict[str, Any]

    def __sklearn_is_fitted__(self) -> bool:
        """A fit that failed after it had seen the columns leaves no policy behind."""
        return hasattr(self, "parameters_")

    def guarantee(self, shift: float = SHIFT) -> str:
        """Return what new days may cost, in one sentence; see the page on automatic decisions.

        The first figure is a confidence bound for the mean cost of decisions on rows that their
        members had not seen; the second is the worst case when, beyond that, outcomes shift.

        Parameters
        ----------
        shift
            In standard deviations of the outcome.

        Examples
        --------
        >>> from surefoot import RobustNewsvendor
        >>> from surefoot.datasets import synthetic
        >>> data = synthetic(n=100, s=5, seed=0)
        >>> print(RobustNewsvendor(1.0, 0.2).fit(data.X, data.y).guarantee())
        With 95 % confidence the expected cost on new days like these is at most 0.429; if outcomes \
shift by 0.3 standard deviations, at most 0.598.
        """
        check_is_fitted(self)
        refuse_levels(self, "guarantee")
        shift = check_number("shift", shift, at_least=0)
        return guarantee_of(self, [shift]).sentence(shift)

    def label_columns(self, labels: Sequence[ColumnLabel]) -> None:
        """Call columns by these names and in these units, in warnings and in ``suspects_``.

        For whoever prepared the columns: the user knows them by other names and in other units.

        Examples
        --------
        >>> import warnings
        >>> from surefoot import RobustNewsvendor
        >>> from surefoot.datasets import synthetic
        >>> from surefoot.estimators.data_warnings import ColumnLabel
        >>> data = synthetic(n=40, s=1, seed=0)
        >>> data.X[3] = 500.0
        >>> model = RobustNewsvendor(1.0, 0.2)
        >>> model.label_columns([ColumnLabel("'price'", 2.0)])
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     print(model.fit(data.X, data.y).suspects_[0])
        row 3, 'price': 1000 (expected about 0.802)
        """
        self._labels = tuple(labels)

    def _column_labels(self) -> tuple[ColumnLabel, ...]:
        plain = plain_labels(self.n_features_in_, self._names)
        return plain if self._labels is None else self._labels

    def _fitted_policy(self) -> Policy:
        return self.problem_.policy

    @property
    def _names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    @property
    def drift_(self) -> Any:
        """What recent errors add to every decision, a number or one for each product.

        Not zero only for the default that was told when its rows were, and found its errors to last.

        Examples
        --------
        >>> import numpy as np
        >>> from surefoot import RobustNewsvendor
        >>> rng = np.random.default_rng(0)
        >>> weekday, walk = np.eye(7)[np.arange(140) % 7], np.cumsum(rng.normal(size=140))
        >>> sales = 50.0 + weekday @ np.arange(7) + walk + rng.normal(size=140)
        >>> model = RobustNewsvendor(1.0, 0.2).fit(weekday, sales, time=np.arange(140))
        >>> round(model.drift_), round(walk[-7:].mean() - walk.mean())
        (3, 4)
        """
        check_is_fitted(self)
        offset = getattr(self.problem_.policy, "offset", None)
        shifts = offset.shifts if isinstance(offset, Forecasts) else np.zeros(self._n_outcomes)
        return self._per_product(shifts)

    @property
    def scale_(self) -> FloatArray:
        """The unit of each column (of each feature, if the policy has a feature map)."""
        check_is_fitted(self)
        return self.problem_.ball.column_scale(np.zeros(self._n_features))

    @property
    def movable_(self) -> Any:
        """Which columns (features) the adversary may move."""
        check_is_fitted(self)
        return ~self.problem_.ball.frozen_columns(self._n_features)

    @property
    def _n_features(self) -> int:
        row = np.zeros((1, self.problem_.nominal.n_columns))
        return int(self.problem_.policy.transform(row).shape[1])

    @property
    def _offset(self) -> Any:
        """What decisions are beside their linear part, None if there is nothing."""
        return getattr(self.problem_.policy, "offset", None)

    def _per_product(self, values: FloatArray) -> Any:
        return float(values[0]) if self._single else values

    def predict(self, X: Any) -> FloatArray:
        """Return decisions, shape (rows,) or (rows, products) as y was."""
        check_is_fitted(self)
        X = check_contexts(self, X, reset=False)
        self._warn_of_far_contexts(X)
        decisions = self._decisions(X)
        return decisions[:, 0] if self._single else decisions

    def _warn_of_far_contexts(self, X: FloatArray) -> None:
        """Name columns that are far outside what was seen."""
        if not isinstance(self._offset, Forecasts):
            return
        far = self._offset.far(X)
        if far.any():
            warn_user(far_sentence(far, X, self._column_labels()), DataWarning)

    def _decisions(self, X: FloatArray) -> FloatArray:
        """Return decisions of shape (rows, decisions)."""
        return self.problem_.policy.decide(self.parameters_, X)

    def cost(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean realised cost of the decisions, summed over products."""
        check_is_fitted(self)
        X, y = check_pairs(self, X, y, reset=False)
        weights = weight_vector("sample_weight", sample_weight, len(X))
        return self.problem_.cost.mean(self._decisions(X), self._outcomes(y), weights)

    def _outcomes(self, y: FloatArray) -> FloatArray:
        """Return outcomes as (rows, products), refusing another number of products."""
        y, products = y.reshape(len(y), -1), self._n_outcomes
        if y.shape[1] != products:
            raise InvalidInputError(
                f"y must have {products} product{'s'[: products > 1]} as in fit, got {y.shape[1]}."
            )
        return y

    def worst_case(
        self, X: Any, y: Any, *, radius: float | None = None, sample_weight: Any = None
    ) -> Adversary:
        """Return the worst distribution in the ball around (X, y) for this policy, without refitting.

        Its ``value`` is the worst case of the decisions as they are made. Where they are cut to a
        ``Box`` it is exact, too, but for a support that stops the adversary and for one adversary of
        several products: there it is an upper bound, that of decisions before they are cut. Where
        outcomes move as well (a finite ``outcome_cost``) it is what gradient ascent finds.
        ``certificate_.upper`` of a solver is that bound, and its message says "at most".

        Parameters
        ----------
        X, y
            Data that take the place of the nominal.
        radius
            Radius of the ball; None is the fitted one.
        """
        check_is_fitted(self)
        refuse_levels(self, "worst_case")
        X, y = check_pairs(self, X, y, reset=False)
        rho = self.radius_ if radius is None else check_number("radius", radius, at_least=0)
        rows = Empirical(X, self._outcomes(y), sample_weight)
        moved = adversary_of(self.problem_.around(rows).at_radius(rho), self.parameters_)
        features = self.problem_.policy.features
        own = (moved.rows >= 0).all()
        if own and isinstance(self._offset, Forecasts) and isinstance(features, Select):
            # Frozen columns are none of the correction's: they come back as they are.
            contexts, kept = X[moved.rows].copy(), list(features.columns)
            contexts[:, kept] = moved.contexts[:, : len(kept)]
            moved = moved._replace(contexts=contexts)
        return moved

    def augmentation(
        self, X: Any = None, y: Any = None, *, radius: float | None = None
    ) -> Augmentation:
        """Return what the adversary of this policy does, column by column.

        Parameters
        ----------
        X, y
            Data that take the place of the nominal; None is the data of the fit, or the newest rows
            that ``partial_fit`` has learned.
        radius
            Radius of the ball; None is the fitted one.
        """
        check_is_fitted(self)
        refuse_levels(self, "augmentation")
        rho = self.radius_ if radius is None else check_number("radius", radius, at_least=0)
        if (X is None) != (y is None):
            raise InvalidInputError("X and y must be given together, got only one of them.")
        if X is not None:
            X, y = check_pairs(self, X, y, reset=False)
            nominal: Nominal = Empirical(X, self._outcomes(y), names=self._names)
        elif hasattr(self, "nominal_"):
            nominal = self.nominal_
        else:
            raise InvalidInputError(
                "X and y must be given: a model from a file does not hold its training data, got None."
            )
        return augment(self.problem_.around(nominal).at_radius(rho), self.parameters_)

    @property
    def certificate_(self) -> Certificate:
        """What is proved about the policy; after ``partial_fit``, its worst case on the newest rows."""
        if self._certificate is None:
            self._certificate = self._judge_newest()
        return self._certificate

    @property
    def multiplier_(self) -> Any:
        """The optimal gamma, one for each product if y was a matrix."""
        if self._multiplier is None:
            self._judge_newest()
        return self._multiplier

    def _judge_newest(self) -> Certificate:
        adversary = adversary_of(self.problem_.around(self.nominal_), self.parameters_)
        self._multiplier = self._per_product(adversary.multiplier)
        floor = self.problem_.cost.floor(self._n_outcomes)
        return make_certificate(adversary.value, floor, 0.0, "estimate")

    @property
    def learned_on(self) -> bool:
        """Whether rows came after the fit: the model then remembers the newest of them alone."""
        return getattr(self, "_learned_on", False)

    @property
    def n_outcomes(self) -> int:
        """How many numbers an outcome has."""
        return self._n_outcomes

    @property
    def single(self) -> bool:
        """Whether decisions are plain numbers."""
        return self._single

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file: JSON and arrays, nothing that could run code."""
        check_is_fitted(self)
        save_model(self, path)
