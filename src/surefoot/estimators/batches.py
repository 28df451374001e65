"""Fitting to rows that do not fit into memory: what is checked, and what cannot be had with them."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from surefoot.estimators.recipe import Recipe
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import RowBatches


def check_batches(estimator: BaseEstimator, rows: RowBatches) -> None:
    """Remember the columns of rows that come in batches, as scikit-learn does those of a frame."""
    estimator.n_features_in_ = rows.n_columns
    estimator._outcome_names = None
    if rows.names is not None:
        estimator.feature_names_in_ = np.array(rows.names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def refuse_beside_batches(**given: Any) -> None:
    """Refuse what would have to say something of each row."""
    for name, value in given.items():
        if value is not None:
            raise InvalidInputError(
                f"{name} must be None beside rows in batches, which have their outcomes and equal "
                f"weights, got {type(value).__name__}."
            )


def refuse_parts_beside_batches(recipe: Recipe) -> None:
    """Refuse parts of an estimator that need all rows at hand."""
    if recipe.nominal is not None:
        raise InvalidInputError(
            f"nominal must be None beside rows in batches, which are one, got {recipe.nominal!r}."
        )
    if recipe.forecaster is not None or isinstance(recipe.ball.radius, str):
        raise InvalidInputError(
            "radius must be a number beside rows in batches, and nominal None, got "
            f"radius={recipe.ball.radius!r}: forecasts and cross-validation need all rows at hand."
        )
