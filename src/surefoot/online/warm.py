"""A fitted model as the start of a stream."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot.ambiguity import WassersteinBall
from surefoot.costs import Cost
from surefoot.engines.online_constants import (
    COUNT,
    DEVIATIONS,
    FROZEN,
    LOWER,
    MEAN,
    SETTLED_ROWS,
    TABLE_ROWS,
    UPPER,
)
from surefoot.estimators.affine_learner import AffineLearner
from surefoot.estimators.base import RobustEstimator
from surefoot.estimators.general_learner import GeneralLearner
from surefoot.estimators.learner import Learner
from surefoot.exceptions import InvalidInputError
from surefoot.online.affine import AffineStream
from surefoot.online.columns import Column
from surefoot.online.contexts import array_columns
from surefoot.online.featured import FeatureStream
from surefoot.online.general import GeneralStream
from surefoot.online.learner import StreamLearner
from surefoot.online.settings import Settings
from surefoot.policies import Policy
from surefoot.solvers.adaptive import pack
from surefoot.typing import FloatArray
from surefoot.validation import check_instance

# The general engine does not remember how many rows it was fitted to: it counts as so many.
FITTED_ROWS = 1_000.0


@dataclass(frozen=True, eq=False)
class FittedModel:
    """What a stream takes over from a fitted estimator."""

    cost: Cost
    policy: Policy
    ball: WassersteinBall
    columns: list[Column]
    n_outcomes: int
    single: bool
    learned: Learner

    @classmethod
    def of(cls, model: Any) -> "FittedModel":
        """Return the parts of a fitted model, or refuse one that is not fitted."""
        check_instance("model", model, RobustEstimator, "a fitted RobustPolicy or RobustNewsvendor")
        if not hasattr(model, "parameters_"):
            raise InvalidInputError(f"model must be fitted, got {model!r} before fit.")
        if model.centre_ is not None:
            raise InvalidInputError(
                "model must be fitted with nominal=None to become a stream, which has no forecast, "
                "got one that starts from a forecast."
            )
        recipe = model._fitted_recipe
        names = getattr(model, "feature_names_in_", None)
        columns: list[Column] = array_columns(model.n_features_in_)
        if names is not None:
            columns = [(str(name), None) for name in names]
        return cls(
            recipe.cost, recipe.policy, replace(recipe.ball, radius=model.radius_), columns,
            model._n_outcomes, model._single, model._learner,
        )  # fmt: skip

    def learner(self, settings: Settings) -> StreamLearner:
        """Return the learner that goes on from here."""
        behind = settings.without_features()
        if isinstance(self.learned, AffineLearner):
            stream = self.learned.streams[0]
            scale, rows = self.learned.scale, float(stream.state.steps)
            table = self._table(stream.arrangement.mean * scale, scale, rows)
            numbers = np.array([pack(stream.state) for stream in self.learned.streams])
            learner: StreamLearner = AffineStream.after_fit(
                behind, table, self.learned.parameters, numbers
            )
        else:
            assert isinstance(self.learned, GeneralLearner)  # the only other kind
            units = self.learned.units
            table = self._table(units.mean, units.spread, FITTED_ROWS)
            learner = GeneralStream.after_fit(behind, table, self.learned, self.n_outcomes)
        if self.policy.features is None:
            return learner
        unseen = np.zeros((TABLE_ROWS, len(self.columns)))
        return FeatureStream(settings, unseen, np.zeros((1, len(self.columns))), learner)

    def _table(self, mean: FloatArray, spread: FloatArray, rows: float) -> FloatArray:
        """Return what the fit knew of each column (feature)."""
        size, featured = len(mean), self.policy.features is not None
        names = None if featured else [name for name, _ in self.columns]
        frozen = self.ball.frozen_mask(size, names)
        constant = ~self.learned.movable & ~frozen
        table = np.zeros((TABLE_ROWS, size))
        table[MEAN] = mean
        centred = isinstance(self.learned, GeneralLearner) or getattr(self.policy, "intercept", False)
        table[COUNT] = rows if centred else SETTLED_ROWS
        table[DEVIATIONS] = np.where(constant, 0.0, spread**2) * table[COUNT]
        table[FROZEN], table[LOWER], table[UPPER] = frozen, -np.inf, np.inf
        if self.ball.support is not None:
            table[LOWER], table[UPPER] = self.ball.support.arrays(size)
        return table
